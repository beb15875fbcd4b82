"""Cursors: the position of an item in a list, as one word of an address.

Knows nothing of lists.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from proctor.api.refusals import InvalidError


def encode_cursor(*position: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def decode_cursor(cursor: str | None, *kinds: Any) -> tuple[Any, ...] | None:
    """The position that a cursor encodes: one value of each type."""
    if not cursor:
        return None
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        values = msgspec.json.decode(raw, type=list[Any])
        return tuple(msgspec.convert(value, kind) for value, kind in zip(values, kinds, strict=True))
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise InvalidError("This cursor does not come from this list.", field="cursor") from None
