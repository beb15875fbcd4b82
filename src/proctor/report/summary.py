"""The summary of a run: every number that a report shows."""

from __future__ import annotations

import msgspec

from proctor.report.causes import ErrorGroup
from proctor.report.lines import ReusedReplies
from proctor.stats.mean import MeanEstimate
from proctor.stats.spread import Histogram, Spread
from proctor.trace import Usage


class Bounds(msgspec.Struct, frozen=True):
    """The mean if every unscored rollout had failed, and if every one had passed."""

    low: float
    high: float


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """How attempts fared, each counted once; those left out by the environment are in no denominator."""

    attempts: int = 0
    """Finished and not skipped: what rates are shares of."""
    graded: int = 0
    passed: int = 0
    failed: int = 0
    """Without a reward, whatever the reason."""
    skipped: int = 0
    pass_rate: float | None = None
    """Passed ÷ attempts: a failed attempt did not pass."""
    reward_over_graded: float | None = None
    reward_over_all: float | None = None
    """The same, where a failed attempt counts as 0."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run. `--json` prints it unchanged."""

    tasks: int
    rollouts_per_task: int
    planned: int | None
    finished: int
    scored: int
    timed_out: int
    """Of the scored, those whose agent ran out of time."""
    coverage: float | None
    outcomes: dict[str, int]
    reward: MeanEstimate
    bounds: Bounds | None
    metrics: dict[str, MeanEstimate]
    pass_threshold: float
    scores: Scores = Scores()
    pass_at_k: dict[str, float]
    pass_hat_k: dict[str, float]
    stop_conditions: dict[str, int]
    seconds: Spread | None
    usage: Usage
    other_usage: dict[str, Usage]
    cost_usd: float | None
    unpriced_models: tuple[str, ...]
    errors: tuple[ErrorGroup, ...]
    cleanup_errors: tuple[ErrorGroup, ...]
    retried: int
    members: dict[str, Summary] = {}
    """The same for each of several environments that ran as one."""
    reused_replies: dict[str, ReusedReplies] = {}
    """By model: replies of a cache or of an earlier run. Their tokens are in `usage`, not in the cost."""
    saved_usd: float | None = None
    """What they would have cost."""
    rewards: Histogram | None = None
    """Of all scored rollouts, if not every reward is 0 or 1."""


def compute_coverage(scored: int, planned: int | None, excluded: int) -> float | None:
    """Share of the rollouts that count which were scored."""
    if planned is None:
        return None
    wanted = planned - excluded
    return scored / wanted if wanted > 0 else 1.0
