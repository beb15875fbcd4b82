"""The providers' side of the gateway: every endpoint is opened once, with its key, and kept open.

This includes runs' own endpoints, with keys from the runs' secrets and connections restricted by `outbound`.
Knows nothing of users or wires.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from types import TracebackType

from proctor.config.api_addresses import host_of
from proctor.config.endpoints import EMBEDDED_CLIENTS, Endpoint
from proctor.contracts import Model
from proctor.endpoints.endpoint import open_model
from proctor.endpoints.rate_limit import CHARACTERS_PER_TOKEN, UNKNOWN_ANSWER_TOKENS, RateLimitedModel
from proctor.endpoints.replicas import ReplicatedModel
from proctor.errors import ConfigError
from proctor.models.http_client import HttpClient, ResponseContext
from proctor.models.http_model import HttpModel
from proctor.models.http_pool import HttpResponse
from proctor.server.gateway.outbound import open_public_socket

LARGEST_ANSWER = 64 * 2**20
"""The largest answer of a run's own endpoint, in bytes."""
MOST_ANSWER_VALUES = 1_000_000
"""JSON values in such an answer. Decoding this many takes a fifth of a second."""
MOST_OPEN = 512
"""Endpoints of the server kept open at once: clients can make up any number of model names."""
MOST_OWN = 256
"""Runs' own endpoints kept open at once."""


class UpstreamServer:
    """One server to forward bytes to."""

    def __init__(self, http: HttpClient, metered: RateLimitedModel | None) -> None:
        self.http = http
        self.metered = metered
        self.in_flight = 0


class Forwarding(ResponseContext):
    """One request to a server, counted while it is under way."""

    def __init__(
        self, server: UpstreamServer, path: str, body: bytes, headers: Mapping[str, str] | None
    ) -> None:
        super().__init__(server.http, path, body, headers)
        self._server = server

    async def __aenter__(self) -> HttpResponse:
        server = self._server
        server.in_flight += 1
        try:
            if server.metered is not None:
                await server.metered.turn(len(self._body) / CHARACTERS_PER_TOKEN + UNKNOWN_ANSWER_TOKENS)
            self._response = await server.http.begin(self._path, self._body, self._headers)
            return self._response
        except BaseException:
            server.in_flight -= 1
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.in_flight -= 1
        await super().__aexit__(kind, error, trace)


class Upstream:
    """An open endpoint: takes neutral requests, or bytes in its own wire."""

    def __init__(self, endpoint: Endpoint, model: Model) -> None:
        self.endpoint = endpoint
        self.model = model
        each = (
            [replica.model for replica in model.replicas] if isinstance(model, ReplicatedModel) else [model]
        )
        self.servers = [server for one in each if (server := find_upstream_server(one)) is not None]

    def speaks(self, client_type: str) -> bool:
        """Whether requests in the wire of this client type can be forwarded as they are."""
        return self.endpoint.client_type == client_type and bool(self.servers)

    @property
    def in_flight(self) -> int:
        return sum(server.in_flight for server in self.servers)

    def passing(self, path: str, body: bytes, headers: Mapping[str, str] | None) -> Forwarding:
        """The response of the least busy replica, as `async with`."""
        server = self.servers[0]
        if len(self.servers) > 1:
            server = min(self.servers, key=lambda each: each.in_flight)
        return Forwarding(server, path, body, headers)

    async def whole(self, response: HttpResponse) -> bytes:
        return await self.servers[0].http.whole(response)

    def check_size(self, size: int) -> None:
        """Raise ModelError if a stream is longer than this endpoint may send."""
        self.servers[0].http.check_size(size)

    def without_keys(self, content: bytes) -> bytes:
        """A provider's text, without any key that was sent to it."""
        for server in self.servers:
            if key := server.http.endpoint.key(server.http.environ):
                content = content.replace(key.encode(), b"(hidden)")
        return content

    async def close(self) -> None:
        await self.model.close()


class Upstreams:
    """All open endpoints."""

    def __init__(self, allowed_hosts: Collection[str]) -> None:
        self._allowed_hosts = allowed_hosts
        self._open: OrderedDict[str, Upstream] = OrderedDict()
        self._own: OrderedDict[str, Upstream] = OrderedDict()

    async def of(self, name: str, endpoint: Endpoint) -> Upstream:
        """The server's endpoint of this name."""
        upstream = self._open.get(name)
        if upstream is None:
            upstream = self._open[name] = Upstream(endpoint, open_model(endpoint))
            await close_idle(self._open, MOST_OPEN)
        self._open.move_to_end(name)
        return upstream

    def own(self, run_id: str) -> Upstream | None:
        """The run's own endpoint, if it is open."""
        upstream = self._own.get(run_id)
        if upstream is not None:
            self._own.move_to_end(run_id)
        return upstream

    async def open_own(self, run_id: str, endpoint: Endpoint, variables: Mapping[str, str]) -> Upstream:
        if endpoint.client_type in EMBEDDED_CLIENTS:
            raise ConfigError(f"A run's own endpoint cannot be of the client type {endpoint.client_type!r}.")
        model = open_model(endpoint)
        if not isinstance(model, HttpModel):
            raise ConfigError(f"A run's own endpoint cannot be of the client type {endpoint.client_type!r}.")
        for http in list_http_clients(model):
            http.environ = variables
            http.most_bytes = LARGEST_ANSWER
            http.most_values = MOST_ANSWER_VALUES
            if host_of(endpoint.url) not in self._allowed_hosts:
                http.socket_factory = open_public_socket
        upstream = self._own[run_id] = Upstream(endpoint, model)
        await close_idle(self._own, MOST_OWN)
        return upstream

    async def close_own(self, run_id: str) -> None:
        upstream = self._own.pop(run_id, None)
        if upstream is not None:
            await upstream.close()

    async def close(self) -> None:
        for upstream in (*self._open.values(), *self._own.values()):
            await upstream.close()


async def close_idle(opened: OrderedDict[str, Upstream], most: int) -> None:
    """Close the oldest until at most this many are open, except the newest and those in use."""
    idle = [name for name, upstream in list(opened.items())[:-1] if not upstream.in_flight]
    for name in idle[: max(0, len(opened) - most)]:
        await opened.pop(name).close()


def find_upstream_server(model: Model) -> UpstreamServer | None:
    metered = model if isinstance(model, RateLimitedModel) else None
    inner = metered.model if metered is not None else model
    return UpstreamServer(inner.http, metered) if isinstance(inner, HttpModel) else None


def list_http_clients(model: HttpModel) -> list[HttpClient]:
    """Every HTTP client of a model."""
    return [each for each in vars(model).values() if isinstance(each, HttpClient)]
