"""What changes on a server, as one stream of server-sent events per browser.

A feed says what changed and how far it is; clients that show more request that.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from proctor.api.audit import AuditAction
from proctor.api.runs import Cause, Progress, RunInfo, RunScore, RunVisibility
from proctor.run import RunStatus

FeedKind = Literal[
    "run",
    "run_deleted",
    "labels",
    "check",
    "environment",
    "balance",
    "source",
    "dataset",
    "change",
    "resync",
]
"""`labels`: rollouts of a run were labelled. `environment`: it was changed, shared, checked or deleted.
`change`: something else was changed, by you, in one of your teams or, for admins, by anyone. `resync`: events
may be missing, so everything shown should be asked for again."""


class FeedEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change. Changes of one run are combined, so that it is announced at most four times a second."""

    kind: FeedKind
    at: float
    run: RunChange | None = None
    run_id: str | None = None
    environment: str | None = None
    version: str | None = None
    balance_usd: float | None = None
    action: AuditAction | None = None
    """Of a `change`, as in the audit log."""
    target: str | None = None
    source: str | None = None
    """The id of a source that was added, removed or synced, or is being synced."""
    dataset: str | None = None
    """The owner/name of a dataset that was pushed, changed or deleted."""


class RunChange(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands now."""

    id: str
    status: RunStatus
    name: str = ""
    tags: list[str] = []
    visibility: RunVisibility = "private"
    revision: int = 0
    """Of its name, tags, visibility and comments."""
    progress: Progress
    score: RunScore | None = None
    cost_usd: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    last_seq: int = 0
    """The last number of its event log: lines and rollouts up to it can be read."""
    cause: Cause | None = None
    ended_at: float | None = None


def describe_change(info: RunInfo) -> RunChange:
    return RunChange(**{name: getattr(info, name) for name in RunChange.__struct_fields__})
