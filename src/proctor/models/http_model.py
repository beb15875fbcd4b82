"""What all models behind an HTTP API have in common. A client type adds its requests and its replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

from proctor.config.endpoints import Endpoint
from proctor.errors import MalformedReplyError
from proctor.models.http_client import HttpClient, error_for_status
from proctor.trace import Reply
from proctor.wires.codec import UNREADABLE
from proctor.wires.errors import ErrorInReplyError, UnusableReplyError

SAMPLE_BYTES = 120


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

    def read(self, content: bytes, decode: Callable[[bytes], Reply]) -> Reply:
        """Decode a reply. Raises a ModelError that names the endpoint if the reply holds no answer."""
        url = self.endpoint.url
        try:
            return decode(content)
        except UNREADABLE as error:
            sample = content[:SAMPLE_BYTES].decode(errors="replace")
            raise MalformedReplyError(
                f"{url} did not answer with {self.expected} ({error}): {sample!r}"
            ) from error
        except ErrorInReplyError as error:
            raise error_for_status(error.status, error.content, {}, self.endpoint) from error
        except UnusableReplyError as error:
            raise error.kind(f"{url} {error}") from error
