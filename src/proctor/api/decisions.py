"""What a run decides: a policy checked, an evaluation designed from it, its recipe over time."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from proctor.api.bounds import Name
from proctor.api.runs import RunInfo

LONGEST_POLICY = 8_000
"""It travels in the address, so that a link to a verdict has the rules with it."""
MOST_HISTORY = 200

PolicyText = Annotated[str, Meta(min_length=1, max_length=LONGEST_POLICY)]
Positive = Annotated[float, Meta(gt=0, lt=1e12)]


class GateQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules that a run is checked against."""

    policy: PolicyText
    """As in the TOML file of `proctor eval gate`."""
    baseline: Name | None = None
    """The run to compare with, for rules that need one."""


class PlanQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What you want to show, or what you have: one of the first four, or what as many rollouts as the run
    scored can show."""

    halfwidth: Positive | None = None
    """Know the mean reward to within this much."""
    difference: Positive | None = None
    """Find a true difference of this much between two models."""
    budget: Positive | None = None
    """What so many dollars can show."""
    rollouts: Annotated[int, Meta(ge=2, le=10**9)] | None = None
    """What so many rollouts can show."""
    rollouts_per_task: Annotated[list[Annotated[int, Meta(ge=1, le=10_000)]], Meta(max_length=20)] = []
    most_tasks: Annotated[int, Meta(ge=2)] | None = None
    """There are no more."""
    level: Annotated[float, Meta(ge=0.5, le=0.999)] = 0.95
    power: Annotated[float, Meta(gt=0.5, le=0.999)] = 0.8
    correlation: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """Between the task scores of two models, where no second run tells it."""
    against: Name | None = None
    """A run of the other model, which tells how the two differ."""


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MOST_HISTORY)] = 50


class RunHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that belong together with one run, the newest first."""

    by: Literal["recipe", "environment"]
    """`recipe`: nothing differs but the commit or the branch. `environment`: the same environment, model and
    agent, whose settings may differ."""
    config_hash: str | None
    environment: str
    model: str
    items: list[RunInfo]
    total: int
