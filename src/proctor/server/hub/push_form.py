"""Receive a push: its form, its wheel and its source, each stored in a file as it is read.

The parts come in this order, so that callers who may not push are refused before they send the files. Knows
nothing of what is in them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from multipart import (  # type: ignore[import-untyped]
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
    parse_options_header,
)

from proctor.api.field_problems import find_body_problems, refuse
from proctor.api.hub import PushForm
from proctor.server.problems import InvalidError, TooLargeError
from proctor.server.requests import HttpRequest
from proctor.server.storage.blobs import Blob, Blobs

PARTS = ("form", "wheel", "source")
LARGEST_FORM = 2**20


class ReceivedPush(msgspec.Struct, frozen=True, kw_only=True):
    """A push that arrived completely."""

    form: PushForm
    wheel_name: str
    wheel: Blob
    source: Blob


class PushReceiver:
    """Receives one push."""

    def __init__(self, request: HttpRequest, blobs: Blobs, most_bytes: int) -> None:
        self.blobs = blobs
        self.most_bytes = most_bytes
        self.kept: list[str] = []
        """Hashes of the files so far, also if the push breaks off."""
        self._events = parse_multipart(request)

    async def receive(self, check: Callable[[PushForm, str], Awaitable[None]]) -> ReceivedPush:
        """Receive all of it; `check` gets the form and the wheel's name before any file is received."""
        await self._part("form")
        form = await self._form()
        wheel_name = str((await self._part("wheel")).filename or "")
        await check(form, wheel_name)
        wheel = await self._file()
        await self._part("source")
        return ReceivedPush(form=form, wheel_name=wheel_name, wheel=wheel, source=await self._file())

    async def _part(self, name: str) -> MultipartSegment:
        segment = await anext(self._events, None)
        if not isinstance(segment, MultipartSegment) or segment.name != name:
            raise InvalidError(
                f"A push is multipart/form-data with the parts {', '.join(PARTS)}, in this order."
            )
        return segment

    async def _form(self) -> PushForm:
        data = bytearray()
        async for chunk in self._content():
            data += chunk
            if len(data) > LARGEST_FORM:
                raise TooLargeError("The form part of this push is too large.", most_bytes=LARGEST_FORM)
        try:
            form = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidError(f"The form part of this push is malformed: {error}.") from error
        refuse(find_body_problems(form, PushForm))
        return msgspec.convert(form, PushForm, strict=False)

    async def _file(self) -> Blob:
        blob = await self.blobs.receive(self._content(), self.most_bytes)
        self.kept.append(blob.sha256)
        return blob

    async def _content(self) -> AsyncIterator[bytes]:
        """To the end of the part; a body that ends earlier is incomplete."""
        async for event in self._events:
            if event is None:
                return
            yield bytes(event)
        raise InvalidError("The push broke off; send it again.")


async def parse_multipart(request: HttpRequest) -> AsyncIterator[MultipartSegment | bytearray | None]:
    """The beginning of each part, its content, and None at its end."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != "multipart/form-data" or not options.get("boundary"):
        raise InvalidError("Send a push as multipart/form-data.")
    try:
        with PushMultipartParser(options["boundary"].encode(), max_segment_count=len(PARTS)) as parser:
            async for chunk in request.stream():
                for event in parser.parse(chunk):
                    yield event
    except MultipartError as error:
        raise InvalidError(f"The multipart/form-data of this push is malformed: {error}.") from error
