"""Money: prices, balances and what was used."""

from __future__ import annotations

from typing import Literal

import msgspec

from proctor.api.bounds import Name, Sentence
from proctor.api.runs import RunScore

EntryKind = Literal["grant", "charge", "adjustment"]


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model that the server's gateway offers."""

    id: str
    provider: str
    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    cached_usd_per_million: float | None = None
    context_tokens: int | None = None
    """Prompt and answer together; None if the server's registry does not say."""
    is_default: bool = False
    """Used where no model is named."""
    last: LastRun | None = None
    """Its newest run of the requested environment."""


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """The newest finished run of a model on an environment, of those that the caller may see."""

    run: str
    at: float
    score: RunScore | None = None
    usd_per_rollout: float | None = None
    """None if no price was known, and to others than its owner."""


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """The balance of an account. Without a balance it has no limit; use is counted all the same."""

    owner: str
    balance_usd: float | None = None
    held_usd: float = 0.0
    available_usd: float | None = None
    spent_usd: float = 0.0
    granted_by: list[str] = []
    """Of one account: admins who can grant it more, some of them if there are many."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    owner: str
    kind: EntryKind
    amount_usd: float
    """Positive: added; negative: taken."""
    run: str | None = None
    note: str = ""
    at: float


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    owner: Name
    amount_usd: float
    note: Sentence = ""


UsageGroup = Literal["model", "run", "user"]
UsagePeriod = Literal["day"]


class UsageTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What was used: of one model, by one run or by one user, in all or on one day."""

    day: str | None = None
    """In UTC, such as 2026-11-17; None for all days."""
    model: str | None = None
    run: str | None = None
    """None also for requests outside runs."""
    user: str | None = None
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cost_usd: float | None = None
    estimated_requests: int = 0
    """Requests whose tokens and cost are estimates, because the provider reported no usage."""


class NewPrice(msgspec.Struct, frozen=True, kw_only=True):
    input_usd_per_million: float
    output_usd_per_million: float
    cached_usd_per_million: float | None = None


class ModelPrice(NewPrice, frozen=True, kw_only=True):
    """A price that an admin set."""

    model: str
    overridden_by: NewPrice | None = None
    """The price in the server's endpoint registry, if there is one: it takes precedence."""
