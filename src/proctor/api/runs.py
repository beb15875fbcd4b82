"""Runs on a server: requests, descriptions, and the events of a followed run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from proctor.api.bounds import (
    MetadataTable,
    Name,
    Paragraph,
    ProgramText,
    Sentence,
    SettingsTable,
    Variables,
)
from proctor.api.secrets import RunSecret
from proctor.run import EndedStatus, RunStatus
from proctor.stats.interval import Interval
from proctor.stats.prediction import PredictedTotal

RunKind = Literal["hosted", "local"]
"""`local` runs were played elsewhere and uploaded."""

RunVisibility = Literal["private", "team", "readers", "link"]
"""Who may read a run: its owner; its team; also the readers of its environment; anyone with its link."""

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
    """What a hosted run may do besides calling the model; nothing unless it is granted."""

    sandboxes: bool = False
    instances: bool = False
    network: bool = False


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run failed or was stopped."""

    code: CauseCode
    message: ProgramText
    next_step: ProgramText = ""


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a hosted run."""

    environment: Name
    """`owner/name`, or `owner/name@version`; without a version the newest is used, and recorded."""
    model: Name | None = None
    """As listed by the server's `/v1/models`; None for the server's default."""
    settings: SettingsTable = {}
    """Settings of an evaluation, by their names in docs/settings.md, that make sense on a server."""
    name: Name = ""
    team: Name | None = None
    """The team that owns and pays for the run; None for yourself."""
    permissions: Permissions = Permissions()
    timeout_minutes: int = DEFAULT_TIMEOUT_MINUTES
    max_cost_usd: float | None = None
    custom_secrets: Variables = {}
    visibility: RunVisibility | None = None
    """None: the team's, if it has one, or else private."""


class RunVisibilityChange(msgspec.Struct, frozen=True, kw_only=True):
    visibility: RunVisibility
    new_link: bool = False
    """Replace the link by another one; the old one stops working."""


LONGEST_TAG = 50
MOST_TAGS = 50
Tag = Annotated[str, Meta(min_length=1, max_length=LONGEST_TAG)]
Tags = Annotated[list[Tag], Meta(max_length=MOST_TAGS)]


class RunTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name and note of a run, as last read."""

    name: Name | None = None
    note: Paragraph | None = None


class RunEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What people say about a run; omitted fields stay as they are."""

    name: Name | None = None
    note: Paragraph | None = None
    add_tags: Tags = []
    remove_tags: Tags = []
    before: RunTexts | None = None
    """What you last read. If one of these texts was changed since, your change of it is refused."""


class RunSharing(msgspec.Struct, frozen=True, kw_only=True):
    """Who may read a run."""

    visibility: RunVisibility
    link: str | None = None
    """The address that anyone may read the run at, if it is shared by link."""


MOST_RUNS_AT_ONCE = 200


class NewRuns(msgspec.Struct, frozen=True):
    """A request for several hosted runs: all of them are started, or none."""

    runs: Annotated[list[NewRun], Meta(min_length=1, max_length=MOST_RUNS_AT_ONCE)]


class StartedRuns(msgspec.Struct, frozen=True):
    """The runs of such a request, in its order."""

    runs: list[RunInfo]


class NewUpload(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is or was played elsewhere."""

    client_run_id: Name
    """Its id there; the same owner uploading the same id continues the same run."""
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
    """The progress of a run, counted from its rows."""

    planned: int | None = None
    settled: int = 0
    scored: int = 0
    failed: int = 0
    mean_reward: float | None = None


Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
DataFormat = Literal["jsonl", "csv", "parquet"]


class RunDataset(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a dataset whose rows a recipe plays."""

    owner: Name
    name: Name
    format: DataFormat
    sha256: Sha256
    selected_rows: Annotated[int, Meta(ge=1, le=2**31)]
    """How many of its rows the recipe selects."""
    prompt_characters: float | None = None
    """Of a prompt, on average, for the estimate."""


class RunOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the code and the data of a submitted run come from."""

    source: str
    """owner/name."""
    repository: str
    rollout: str
    entrypoint: str
    commit_sha: str
    branch: str
    dataset: RunDataset
    config_hash: str
    recipe: Mapping[str, Any] = {}
    """In lists it is left out."""


class RunScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of a run as lists show it: computed by the function that computes the report."""

    mean: float | None
    interval: Interval | None = None
    tasks: int = 0
    coverage: float | None = None
    """The share of planned rollouts that were scored."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as the API describes it."""

    id: str
    kind: RunKind
    name: str = ""
    owner: str
    """The user who started it."""
    agent: str | None = None
    """What worked on the tasks; None where the environment owns its turns."""
    runtime: str = ""
    """Where the environment was: `hosted`, or of an uploaded run its `--runtime`; empty for in process."""
    client_run_id: str | None = None
    """The id of an uploaded run where it was played."""
    team: str | None = None
    visibility: RunVisibility = "private"
    environment: str
    version: str | None = None
    content_hash: str | None = None
    model: str
    status: RunStatus
    cause: Cause | None = None
    progress: Progress = Progress()
    score: RunScore | None = None
    """So far, while it is played."""
    suite: str | None = None
    """The id of the sweep that it belongs to."""
    tags: list[str] = []
    note: str = ""
    """In lists it is left out."""
    revision: int = 0
    """Grows with every change of its name, note, tags, visibility and comments."""
    may_change: bool = False
    """Whether you may stop, resume, edit, share and delete it."""
    rescored_from: str | None = None
    """The id of the run whose rollouts were scored again, as `proctor eval rescore` does."""
    permissions: Permissions = Permissions()
    timeout_minutes: int | None = None
    max_cost_usd: float | None = None
    cost_usd: float | None = None
    """What it cost so far; None if no price is known."""
    input_tokens: int = 0
    output_tokens: int = 0
    attempt: int = 0
    """How often it was started; more than once after crashes."""
    queue_place: int | None = None
    """How many runs are before it, while it is pending."""
    waiting_because: str = ""
    """Why it will not start by itself, while it is pending: no host is connected."""
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    last_seq: int = 0
    settings: Mapping[str, Any] = {}
    resolved: Mapping[str, Any] = {}
    """What the run used, wherever each setting came from, as `resolved` of docs/results.md."""
    summary: Mapping[str, Any] | None = None
    """The report, as `summary` of docs/results.md; so far, while the run is played. In lists it is left
    out."""
    origin: RunOrigin | None = None
    """Of a run that was submitted from a repository."""


def run_page(server_url: str, run_id: str) -> str:
    """The address of a run's page in the dashboard."""
    return f"{server_url}/runs/{run_id}"


RowOrder = Literal["arrival", "task"]
"""Of a run's rows: as they ended, or by task and rollout."""


EventKind = Literal["log", "status", "progress", "rollout"]


class RunEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a run's log. Sequence numbers of a run start at 1 and have no gaps."""

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
    """One finished rollout in brief."""

    task: str
    number: int
    outcome: str
    reward: float | None = None
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    error: str = ""


class Events(msgspec.Struct, frozen=True):
    """Events after a sequence number, for polling."""

    items: list[RunEvent]
    last_seq: int
    """The last number in use; request what comes after the last item."""
    ended: bool
    """The run has ended, and these events reach to its end."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may take and show, before it starts."""

    rollouts: int | None
    """None if the number of tasks is unknown."""
    tasks: int | None = None
    rollouts_per_task: int = 0
    low_usd: float | None = None
    likely_usd: float | None = None
    high_usd: float | None = None
    basis: str
    """Where the figures in dollars come from, or why there are none."""
    calls: PredictedTotal | None = None
    """Of the model."""
    input_tokens: PredictedTotal | None = None
    output_tokens: PredictedTotal | None = None
    minutes: PredictedTotal | None = None
    """With as many rollouts at once as the settings allow."""
    volume_basis: str = ""
    """Where calls, tokens and minutes come from, or why there are none."""
    payer: str = ""
    available_usd: float | None = None
    """What the payer has; None for no limit."""
    after_usd: float | None = None
    """What they will probably have left."""
    halfwidth: float | None = None
    """Of the 95 % interval of the mean reward that so many tasks and rollouts will give."""
    halfwidth_is_bound: bool = False
    """It is the worst case, because no earlier run tells more."""
    halfwidth_basis: str = ""


class RunProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run cannot be started as it is requested."""

    field: str = ""
    """Its path in the request, such as `settings.num_examples`; empty for what no field could change."""
    code: str
    message: str
    ask: list[str] = []
    """The users who could grant what is missing."""


class RunDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """How large a run is unless the request says otherwise."""

    num_examples: int
    rollouts_per_example: int
    from_package: bool
    """The environment's package says so."""


class RunCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What starting a run would do, without starting it."""

    may_start: bool
    problems: list[RunProblem] = []
    """All of them; without any, the run would start."""
    environment: str | None = None
    """owner/name, if there is such an environment."""
    version: str | None = None
    model: str | None = None
    payer: str
    secrets: list[RunSecret] = []
    """Those that the caller may know of."""
    permissions: Permissions = Permissions()
    defaults: RunDefaults | None = None
    takes_agent: bool | None = None
    """Its tasks leave open who works on them; None if its check lists no tasks."""
    agents: list[str] = []
    """The agents to choose from, if it does."""


class StopRequest(msgspec.Struct, frozen=True):
    """A request to stop a run: rollouts in flight are dropped, finished ones are kept."""

    reason: Sentence = ""


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to resume a run; omitted values stay as they were."""

    timeout_minutes: int | None = None
    max_cost_usd: float | None = None
    """In total, including what was spent before."""
