"""JSON and server-sent events, as every API uses them. Knows nothing of any API."""

from __future__ import annotations

import msgspec

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding JSON may raise, whatever the other side sent."""

NOTHING = msgspec.Raw(b"")
"""A field that was not sent. (`Raw | None` would accept nothing but null.)"""

encode_json = msgspec.json.Encoder().encode


def copy_if_present(field: msgspec.Raw) -> msgspec.Raw | None:
    """A copy of a field, so that the rest of the reply can be freed; None if it is missing or null."""
    return field.copy() if field and bytes(field) != b"null" else None


def encode_event(data: object, event: str | None = None) -> bytes:
    """One event of a stream."""
    head = b"" if event is None else b"event: " + event.encode() + b"\n"
    return head + b"data: " + encode_json(data) + b"\n\n"


def event_data(event: bytes) -> bytes:
    """The data of one event; several lines are joined."""
    lines = event.split(b"\n")
    return b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
