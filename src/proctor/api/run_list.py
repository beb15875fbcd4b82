"""Lists of runs: filters, the score of each, and what the filters could be set to.

The same over a server's runs and over run folders, which have no owner, no team and no version.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from proctor.api.runs import RunInfo, RunKind
from proctor.run import RunStatus

RunSort = Literal["created", "ended", "score", "coverage", "cost", "duration", "environment", "model", "name"]

MOST_RUNS_LISTED = 1_000


class RunListQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs, in which order. A filter with several values accepts any of them."""

    status: list[RunStatus] = []
    kind: list[RunKind] = []
    environment: list[str] = []
    """`owner/name`, or `owner/name@version`; of run folders, the environment's name."""
    version: list[str] = []
    """Of the environment."""
    model: list[str] = []
    agent: list[str] = []
    owner: list[str] = []
    team: list[str] = []
    dataset: list[str] = []
    tag: list[str] = []
    rescored_from: list[str] = []
    """Runs that scored the rollouts of this run again; of an uploaded run, also by its id elsewhere."""
    suite: str | None = None
    name: str | None = None
    """Text that the name contains, in these very letters."""
    repository: str | None = None
    config_hash: str | None = None
    commit_sha: str | None = None
    since: float | None = None
    """Created at this time or later, in seconds since 1970."""
    until: float | None = None
    q: str | None = None
    """Text that the id, name, environment, model or owner contains."""
    sort: RunSort = "created"
    descending: bool = True
    limit: Annotated[int, Meta(ge=1, le=MOST_RUNS_LISTED)] = 20
    cursor: str | None = None


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    items: list[RunInfo]
    total: int
    """Of all pages."""
    next_cursor: str | None = None
    """None on the last page."""


class FacetValue(msgspec.Struct, frozen=True):
    value: str
    count: int


class RunFacets(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs each value of a filter has, the most frequent first, given the other filters."""

    total: int
    status: list[FacetValue]
    kind: list[FacetValue]
    environment: list[FacetValue]
    version: list[FacetValue]
    model: list[FacetValue]
    agent: list[FacetValue]
    owner: list[FacetValue]
    team: list[FacetValue]
    dataset: list[FacetValue]
    tag: list[FacetValue]


class SuiteInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep: runs that were started together, as a matrix."""

    id: str
    name: str = ""
    created_at: float
    axes: dict[str, list[str]] = {}
    """The settings in which its runs differ, and their values."""
    cells: list[SuiteCell] = []


class SuiteCell(msgspec.Struct, frozen=True, kw_only=True):
    run: RunInfo
    at: dict[str, str]
    """Its value on each axis."""
