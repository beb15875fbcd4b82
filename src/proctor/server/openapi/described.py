"""What a route cannot say with its types, for the OpenAPI document: the `opt` of a handler.

Knows nothing of the document.
"""

from __future__ import annotations

from typing import Any

import msgspec

BINARY = "application/octet-stream"
KEY = "described"


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What to say about a route besides its types."""

    response: Any = None
    """The type of the answer or, for streams, of each of its items."""
    body: Any = None
    """The type of a body that the handler reads by itself."""
    body_type: str = "application/json"
    is_file: bool = False
    """The answer is bytes of no type that the API describes."""
    nothing: bool = False
    """It may also answer 204, without content."""
    is_open: bool = False
    """It needs no token; what it shows may depend on one."""


def describe(**fields: Any) -> dict[str, Any]:
    """As the `opt` of a handler, or a part of it."""
    return {KEY: Description(**fields)}


OPEN = describe(is_open=True)
