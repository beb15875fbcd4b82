"""Runs on a server: what is asked for, what is told of them, and the events that are followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from proctor.api.bounds import (
    MOST_LOG_LINES,
    MOST_ROWS,
    LogLine,
    MetadataTable,
    Name,
    Paragraph,
    ProgramText,
    Sentence,
    SettingsTable,
    Variables,
)
from proctor.run import EndedStatus, RunStatus

RunKind = Literal["hosted", "local"]
"""`local` runs were played elsewhere and uploaded."""

CauseCode = Literal[
    "environment_error",
    "install_failed",
    "missing_permission",
    "missing_secret",
    "time_limit",
    "balance",
    "budget",
    "provider",
    "crashed",
    "limit_exceeded",
    "stopped_by_user",
    "internal",
]
"""Why a run did not simply finish; docs/hosted.md explains each."""

DEFAULT_TIMEOUT_MINUTES = 120
LONGEST_TIMEOUT_MINUTES = 1440


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """What a hosted run may do beside asking the model; nothing unless it is granted."""

    sandboxes: bool = False
    instances: bool = False
    network: bool = False


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run failed or was stopped."""

    code: CauseCode
    message: ProgramText
    next_step: ProgramText = ""


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A hosted run that is asked for."""

    environment: Name
    """`owner/name`, or `owner/name@version`; without a version the newest is taken, and recorded."""
    model: Name | None = None
    """As the server's `/v1/models` lists them; None: what the server has as its default."""
    settings: SettingsTable = {}
    """Settings of an evaluation, by their names in docs/settings.md, that make sense on a server."""
    name: Name = ""
    team: Name | None = None
    """Whose run it is and who pays; None: one's own."""
    permissions: Permissions = Permissions()
    timeout_minutes: int = DEFAULT_TIMEOUT_MINUTES
    max_cost_usd: float | None = None
    custom_secrets: Variables = {}


class NewUpload(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is or was played elsewhere."""

    client_run_id: Name
    """What it is called there; the same owner uploading the same id goes on with the same run."""
    environment: Name
    model: Name
    name: Name = ""
    team: Name | None = None
    metadata: MetadataTable = {}
    """Its metadata.json."""
    planned: int | None = None
    started_at: float | None = None


class UploadEnd(msgspec.Struct, frozen=True, kw_only=True):
    status: EndedStatus
    note: Paragraph = ""
    metadata: MetadataTable = {}


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run came, counted from its rows."""

    planned: int | None = None
    settled: int = 0
    scored: int = 0
    failed: int = 0
    mean_reward: float | None = None


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the API tells of it."""

    id: str
    kind: RunKind
    name: str = ""
    owner: str
    """The user who started it."""
    team: str | None = None
    environment: str
    version: str | None = None
    content_hash: str | None = None
    model: str
    status: RunStatus
    cause: Cause | None = None
    progress: Progress = Progress()
    permissions: Permissions = Permissions()
    timeout_minutes: int | None = None
    max_cost_usd: float | None = None
    cost_usd: float | None = None
    """What it came to so far; None where no price is known."""
    input_tokens: int = 0
    output_tokens: int = 0
    attempt: int = 0
    """How often it was started; more than once after crashes."""
    queue_place: int | None = None
    """How many are before it, while it is pending."""
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    last_seq: int = 0
    settings: Mapping[str, Any] = {}
    summary: Mapping[str, Any] | None = None
    """The report, as `summary` of docs/results.md, once the run has ended."""


EventKind = Literal["log", "status", "progress", "rollout"]


class RunEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a run's story. Sequence numbers of a run begin at 1 and leave none out."""

    seq: int
    at: float
    kind: EventKind
    level: str = ""
    """Of a log line."""
    text: str = ""
    status: RunStatus | None = None
    cause: Cause | None = None
    progress: Progress | None = None
    rollout: RolloutBrief | None = None


class RolloutBrief(msgspec.Struct, frozen=True, kw_only=True):
    """One finished rollout in short."""

    task: str
    number: int
    outcome: str
    reward: float | None = None
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    error: str = ""


class Events(msgspec.Struct, frozen=True):
    """Events after a sequence number, for who polls."""

    items: list[RunEvent]
    last_seq: int
    """The last number that is taken; ask for what comes after the last item."""
    ended: bool
    """No more will come: the run has ended, and these reach to its end."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may cost, before it starts."""

    rollouts: int | None
    """None where nobody knows how many tasks there are."""
    low_usd: float | None = None
    likely_usd: float | None = None
    high_usd: float | None = None
    basis: str
    """Where the figures come from, or why there are none."""
    available_usd: float | None = None
    """What the payer has; None: no limit."""


class StopRequest(msgspec.Struct, frozen=True):
    """How a run is ended by somebody: what is in flight is dropped; what was finished is kept."""

    reason: Sentence = ""


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How a run goes on; what is not given stays as it was."""

    timeout_minutes: int | None = None
    max_cost_usd: float | None = None
    """In all, with what was spent before."""


# What the process that plays a run says, and is told. Its token is good for one attempt of one run.


class LogText(msgspec.Struct, frozen=True):
    level: Name
    text: LogLine
    at: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """News from where a run is played. Each batch has a number, so that sending it twice adds nothing."""

    batch: int
    logs: Annotated[list[LogText], Meta(max_length=MOST_LOG_LINES)] = []
    rows: Annotated[list[msgspec.Raw], Meta(max_length=MOST_ROWS)] = []
    """Rows as they stand in results.jsonl."""
    planned: int | None = None
    metadata: MetadataTable | None = None
    """The run's metadata.json, where it is new: rows leave out what it says once for all."""


class ReportReply(msgspec.Struct, frozen=True, kw_only=True):
    """The server's answer to a report: it was kept, and this is what to do."""

    stop: bool = False
    """Leave what is in flight and end."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The last word of who plays a run."""

    status: Literal["finished", "failed", "stopped"]
    cause: Cause | None = None
    metadata: MetadataTable = {}


# What a host of runs asks for: the machine where runs are played, which may be the server's own.


class ClaimRequest(msgspec.Struct, frozen=True):
    host: Name
    """Its name, for people to read; no other process has the same."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A run for a host to play."""

    run_id: str
    attempt: int
    token: str
    """Of this attempt, for whoever plays it."""
    environment: str
    version: str
    module: str
    """What is given to `proctor eval run` inside: the package's name."""
    wheel_name: str
    wheel_sha256: str
    lock: str | None = None
    """What was installed when this version was checked, to be installed again."""
    model: str
    settings: Mapping[str, Any] = {}
    permissions: Permissions = Permissions()
    variables: Mapping[str, str] = {}
    """Environment variables and secrets of the run."""
    deadline_at: float
    lease_seconds: float


class Lease(msgspec.Struct, frozen=True):
    """The answer to a heartbeat of a host."""

    stop: bool = False
    lost: bool = False
    """The run is no longer this host's: end it and say nothing."""


class LostRun(msgspec.Struct, frozen=True):
    """A host tells that the process of a run is gone without a last word."""

    cause: Cause
    retry: bool = True
    """Another attempt may go better."""
    blameless: bool = False
    """The host ended it for reasons of its own."""


class LeftoverRuns(msgspec.Struct, frozen=True):
    """Runs of which a host still has the folders; in the answer, those that nobody goes on with."""

    runs: Annotated[list[Name], Meta(max_length=10_000)]


class NewHost(msgspec.Struct, frozen=True):
    """A machine that will play runs."""

    name: Name


class HostToken(msgspec.Struct, frozen=True):
    name: str
    token: str
    """For `proctor runner`; it is shown this once."""
