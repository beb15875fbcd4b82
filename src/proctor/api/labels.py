"""Labels of a run over the API: what people say of its rollouts."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from proctor.api.bounds import Paragraph, TaskText

MOST_LABELS = 500


class NewLabel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rollout, scored by the caller."""

    example_id: int | TaskText
    rollout: Annotated[int, Meta(ge=0)]
    score: float | None = None
    """None skips it; a later label of the same rollout replaces an earlier one."""
    note: Paragraph = ""


class NewLabels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    labels: Annotated[list[NewLabel], Meta(min_length=1, max_length=MOST_LABELS)]


class SavedLabels(msgspec.Struct, frozen=True, kw_only=True):
    saved: int


class RunLabel(msgspec.Struct, frozen=True, kw_only=True):
    """What one person says of one rollout."""

    example_id: int | str
    rollout: int
    person: str
    score: float | None
    """None if the person skipped it."""
    note: str
    at: float
    """When, in seconds since the epoch."""
