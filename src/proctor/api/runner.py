"""What a server says to the machines that play its runs, and what they report."""

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
)
from proctor.api.runs import Cause, Permissions

# Between the server and the process that plays a run, whose token is valid for one attempt of it.


class BaselineScore(msgspec.Struct, frozen=True, kw_only=True):
    """One scored rollout of the run that another is compared with; field names are those of a row."""

    example_id: int | str
    rollout: int
    outcome: str
    reward: float
    task_hash: str = ""


class LogText(msgspec.Struct, frozen=True):
    level: Name
    text: LogLine
    at: float


OF_ROWS = {"items": {"$ref": "#/components/schemas/Row"}}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report from the process that plays a run. Each has a number, so that sending it twice adds
    nothing."""

    batch: int
    logs: Annotated[list[LogText], Meta(max_length=MOST_LOG_LINES)] = []
    rows: Annotated[list[msgspec.Raw], Meta(max_length=MOST_ROWS, extra_json_schema=OF_ROWS)] = []
    """Rows as they are in results.jsonl."""
    planned: int | None = None
    metadata: MetadataTable | None = None
    """The run's metadata.json, if it is new: rows omit what it says once for all."""


class ReportReply(msgspec.Struct, frozen=True, kw_only=True):
    """The server's answer to a report: it was stored, and this is what to do."""

    stop: bool = False
    """Drop what is in flight and end."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The final report of the process that plays a run."""

    status: Literal["finished", "failed", "stopped"]
    cause: Cause | None = None
    metadata: MetadataTable = {}


# Between the server and a host: the machine where runs are played, which may be the server's own.


class ClaimRequest(msgspec.Struct, frozen=True):
    host: Name
    """The host's name, for people to read; no other process has the same."""
    delegate: bool = False
    """Another machine will play the run, and needs a token to stand in for the host."""


class RunAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """A run for a host to play."""

    run_id: str
    attempt: int
    token: str
    """The token of this attempt."""
    environment: str
    version: str
    content_hash: str | None = None
    module: str
    """The argument of `proctor eval run` inside: the package's name."""
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
    delegate_token: str = ""
    """For the machine that stands in for the host, if the claim asked for one: renews the lease of this
    attempt, reports its loss and fetches its wheel. It never enters the sandbox."""


class Lease(msgspec.Struct, frozen=True):
    """The answer to a host's heartbeat."""

    stop: bool = False
    lost: bool = False
    """The run no longer belongs to this host: end it and report nothing."""


class LostRun(msgspec.Struct, frozen=True):
    """A host reports that the process of a run is gone without a final report."""

    cause: Cause
    retry: bool = True
    """Another attempt may succeed."""
    blameless: bool = False
    """The host ended it for reasons of its own."""


class LeftoverRuns(msgspec.Struct, frozen=True):
    """Runs whose folders a host still has; in the answer, those that no host will continue."""

    runs: Annotated[list[Name], Meta(max_length=10_000)]


class HostAttemptId(msgspec.Struct, frozen=True):
    """An attempt that a host has placed on another machine."""

    run_id: Name
    attempt: int


class PlacedAttempts(msgspec.Struct, frozen=True):
    """Attempts that are played on other machines; in the answer, those that are over."""

    attempts: Annotated[list[HostAttemptId], Meta(max_length=10_000)]


class NewHost(msgspec.Struct, frozen=True):
    """A machine that will play runs."""

    name: Name


class HostToken(msgspec.Struct, frozen=True):
    name: str
    token: str
    """For `proctor runner`; it is shown only once."""
