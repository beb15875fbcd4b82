"""Labels of a run over the API: people's scores of its rollouts."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from proctor.api.bounds import Name, Paragraph, TaskText

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
    """What one person says about one rollout."""

    example_id: int | str
    rollout: int
    person: str
    score: float | None
    """None if the person skipped it."""
    note: str
    at: float
    """When, in seconds since the epoch."""


class AgreementQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which judge, and whose labels."""

    metric: Name | None = None
    """The judge's score is this metric; the reward if None."""
    labels: Name | None = None
    """Use the labels of this run, whose rollouts the run scored again."""
    level: Annotated[float, Meta(ge=0.5, le=0.9999)] = 0.95


MOST_QUEUED = 200


class LabellingQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left to label."""

    person: Name | None = None
    """Leave out what this person has labelled or skipped."""
    only: Literal["open", "all"] = "open"
    """`all`: with what this person has labelled, in the same order."""
    seed: Annotated[int, Meta(ge=-(2**31), lt=2**31)] = 0
    """Of the random order; the same for everybody, so that people label the same rollouts."""
    limit: Annotated[int, Meta(ge=1, le=MOST_QUEUED)] = 50


class QueuedRollout(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout to label: where it is, and nothing of its score."""

    key: str
    """Of its task, in addresses."""
    example_id: int | str
    rollout: int
    is_labelled: bool = False
    """By that person, or skipped."""
    score: float | None = None
    """What that person gave it."""
    note: str = ""


class LabellingPerson(msgspec.Struct, frozen=True, kw_only=True):
    person: str
    scored: int
    skipped: int


class LabellingQueue(msgspec.Struct, frozen=True, kw_only=True):
    """The scored rollouts of a run in a random order, for people who label them blind."""

    total: int
    labelled: int
    """By that person, or skipped."""
    people: list[LabellingPerson]
    """Everyone who has labelled something."""
    items: list[QueuedRollout]


class BlindMessage(msgspec.Struct, frozen=True, kw_only=True):
    role: str
    text: str
    left_out: int = 0
    """Characters at its end that were too many to send."""


class BlindRollout(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout without anything that could bias the person who scores it: no score, no model, no id."""

    prompt: list[BlindMessage]
    completion: list[BlindMessage]
    answer: str | None
    """In the dataset, if it has one."""
    left_out: int = 0
    """Messages that were too many to send."""
