"""Requests and answers of the reading routes, whatever the web framework."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from proctor.api.refusals import NotFoundError
from proctor.reading.library import RunLibrary

JSON = "application/json"
NDJSON = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"
IMAGE = "image/*"
ANY_FILE = "application/octet-stream"


class ReadRequest(msgspec.Struct, frozen=True):
    path: Mapping[str, str] = {}
    """The parameters in the path."""
    query: Any = None
    """The route's query struct; None if it has none."""

    def number(self, name: str) -> int:
        """A parameter of the path that is a whole number."""
        word = self.path[name]
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            raise NotFoundError(f"{name} is a whole number, and {word[:80]!r} is none.")
        return int(word)


class Download(msgspec.Struct, frozen=True):
    """An answer that is not made of a struct: bytes, or a stream of them."""

    media_type: str
    body: bytes | AsyncIterator[bytes]
    headers: Mapping[str, str] = {}


Handler = Callable[[RunLibrary, ReadRequest], Awaitable[Any]]


class ReadingRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One reading route."""

    path: str
    """Under /api/v1, with parameters in braces."""
    name: str
    summary: str
    answer: Any
    """The type of the answer; of a stream, that of each item."""
    handler: Handler
    query: type[msgspec.Struct] | None = None
    media_type: str = JSON
    """A handler of another type returns a Download."""
    writes_files: bool = False
    """Whether an answer takes as much disk as its run until it was sent: few may be under way at once."""
    computes_stream: bool = False
    """Whether each chunk of the stream takes time to compute, rather than to wait for."""
