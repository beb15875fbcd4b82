"""What changes on a server, as one stream of server-sent events per browser.

A feed says what changed and how far it is; whoever shows more of it asks for that again.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from proctor.api.runs import Cause, Progress, RunScore
from proctor.run import RunStatus

FeedKind = Literal["run", "run_deleted", "check", "balance", "resync"]
"""`resync`: events may be missing, so everything shown should be asked for again."""


class FeedEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change. Changes of one run are combined, so that it is announced at most four times a second."""

    kind: FeedKind
    at: float
    run: RunChange | None = None
    run_id: str | None = None
    environment: str | None = None
    version: str | None = None
    balance_usd: float | None = None


class RunChange(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands now."""

    id: str
    status: RunStatus
    progress: Progress
    score: RunScore | None = None
    cost_usd: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    last_seq: int = 0
    """The last number of its event log: lines and rollouts up to it can be read."""
    cause: Cause | None = None
    ended_at: float | None = None
