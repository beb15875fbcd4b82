"""Lists in pages: where a page ends, and how the next one is requested.

Knows nothing of HTTP or of what is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from proctor.api.bounds import MEGABYTE
from proctor.api.common import Page
from proctor.api.cursors import decode_cursor as decode_cursor
from proctor.api.cursors import encode_cursor as encode_cursor
from proctor.api.refusals import InvalidError

MOST_ITEMS = 1000
MOST_BYTES = 4 * MEGABYTE
T = TypeVar("T")


def build_page(items: Sequence[T], limit: int, position_of: Callable[[T], Sequence[Any]]) -> Page[T]:
    """A page, built from one item more than it shows if there is one; it ends early if its items are long,
    because an answer is built and sent as a whole."""
    shown: list[T] = []
    size = 0
    for item in items[:limit]:
        size += len(msgspec.json.encode(item))
        if shown and size > MOST_BYTES:
            break
        shown.append(item)
    more = encode_cursor(*position_of(shown[-1])) if len(items) > len(shown) else None
    return Page(shown, more)


def check_limit(limit: int) -> int:
    if not 1 <= limit <= MOST_ITEMS:
        raise InvalidError(f"limit must be between 1 and {MOST_ITEMS}.", field="limit")
    return limit
