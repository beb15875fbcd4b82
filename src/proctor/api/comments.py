"""Comments on a run and on its rollouts over the API."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

LONGEST_COMMENT = 10_000
MOST_COMMENTS = 1_000
"""Of one run; deleted ones count, because their places stay."""
MOST_COMMENTS_BY_ONE = 200
"""Of one person on one run."""

CommentText = Annotated[str, Meta(min_length=1, max_length=LONGEST_COMMENT)]


class RolloutPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rollout, or a step of it. A rollout that is played or uploaded again has the same place."""

    key: Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
    """Of its task, as in addresses."""
    number: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    step: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    """The number of its event; None: the rollout as a whole."""


class NewComment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: CommentText
    """Markdown; HTML in it is text."""
    rollout: RolloutPlace | None = None
    """None: the run as a whole."""


class CommentEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: CommentText


class RunComment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment on a run."""

    id: str
    rollout: RolloutPlace | None = None
    author: str
    text: str
    """Empty once it was deleted."""
    created_at: float
    edited_at: float | None = None
    deleted_at: float | None = None
    deleted_by: str | None = None
    may_edit: bool = False
    """Whether it is yours."""
    may_delete: bool = False
    """Whether it is yours, or you may change the run."""
