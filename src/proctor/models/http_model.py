"""What all models behind an HTTP API have in common. A client type adds its requests and its replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import MalformedReplyError, UnreachableError
from proctor.models.http_client import HttpClient, error_for_status
from proctor.trace import Reply
from proctor.wires.codec import UNREADABLE, encode_json
from proctor.wires.errors import ErrorInReplyError, UnusableReplyError
from proctor.wires.wire import StreamAssembler

SAMPLE_BYTES = 120


class StreamingRoute(msgspec.Struct, frozen=True):
    """How a stream is requested from an API, and how it is read."""

    assembler: Callable[[], StreamAssembler]
    parameters: Mapping[str, Any] = {}
    """Added to the body."""
    path: str = ""
    """Where it differs from the route of whole replies."""


class HttpModel:
    """A model behind an HTTP API that lists its models at `/models`."""

    expected: ClassVar[str] = "a readable reply"
    """What a reply should be, for the error about one that is not."""

    def __init__(self, endpoint: Endpoint, http: HttpClient | None = None) -> None:
        self.endpoint = endpoint
        self.http = http or HttpClient(endpoint)

    @classmethod
    def at(cls, endpoint: Endpoint) -> Self:
        return cls(endpoint)

    @property
    def name(self) -> str:
        return self.endpoint.model

    async def check(self) -> None:
        await self.http.check("/models")

    async def close(self) -> None:
        await self.http.close()

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        request: Request,
        decode: Callable[[bytes], Reply],
        streaming: StreamingRoute | None = None,
    ) -> Reply:
        """Send a body and decode the reply; as a stream, if the request wants pieces and there is a way."""
        if request.pieces is None or streaming is None:
            content = await self.http.post(path, encode_json(body), request.headers)
            return self.read(content, decode)
        assembler = streaming.assembler()
        sent = encode_json({**body, **streaming.parameters})
        whole = await self.http.stream(
            streaming.path or path,
            sent,
            request.headers,
            lambda event: self._pass_on(event, assembler, request),
        )
        if whole is not None:
            return self.read(whole, decode)
        if not assembler.is_whole:
            raise UnreachableError(f"{self.endpoint.url} ended its stream before the end of its answer.")
        return self.read(assembler.whole(), decode)

    def _pass_on(self, event: bytes, assembler: StreamAssembler, request: Request) -> None:
        assert request.pieces is not None
        try:
            pieces = assembler.feed(event)
        except UNREADABLE as error:
            raise self._malformed_error(event, error) from error
        for piece in pieces:
            request.pieces(piece)

    def _malformed_error(self, content: bytes, error: Exception) -> MalformedReplyError:
        sample = content[:SAMPLE_BYTES].decode(errors="replace")
        return MalformedReplyError(
            f"{self.endpoint.url} did not answer with {self.expected} ({error}): {sample!r}"
        )

    def read(self, content: bytes, decode: Callable[[bytes], Reply]) -> Reply:
        """Decode a reply. Raises a ModelError that names the endpoint if the reply holds no answer."""
        url = self.endpoint.url
        try:
            return decode(content)
        except UNREADABLE as error:
            raise self._malformed_error(content, error) from error
        except ErrorInReplyError as error:
            raise error_for_status(error.status, error.content, {}, self.endpoint) from error
        except UnusableReplyError as error:
            raise error.kind(f"{url} {error}") from error
