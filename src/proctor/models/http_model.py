"""What all models behind an HTTP API have in common. A client type adds how it asks and how it reads."""

from __future__ import annotations

from typing import Self

from proctor.config.endpoints import Endpoint
from proctor.models.http_client import HttpClient


class HttpModel:
    """A model behind an HTTP API that lists its models at `/models`."""

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
