"""A connection to a served environment, from the side that plays it.

Knows the protocol. Knows nothing of agents, or of where the environment came from.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from proctor.channel.frame_stream import FrameConnection
from proctor.channel.frames import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    TASK_FAILED,
    UNAUTHORIZED,
    FrameError,
    Id,
    RemoteError,
)
from proctor.channel.grades import encode_failure
from proctor.channel.server import SPEAKS
from proctor.contracts import Seat
from proctor.errors import ConfigError, EnvError, EnvLostError, InfraError
from proctor.trace import ToolSpec

UNIX = "unix://"
CONNECT_SECONDS = 30.0
GOODBYE_SECONDS = 2.0
MOST_AT_ONCE = 64
"""Model calls that an environment may request concurrently."""


class Binding(msgspec.Struct, frozen=True):
    """A capability that an environment offers: a server of its own behind the channel."""

    name: str
    protocol: str
    url: str
    params: dict[str, Any] = {}


class Greeting(msgspec.Struct, frozen=True):
    """How a served environment describes itself."""

    session_id: str
    env: dict[str, Any]
    bindings: list[Binding] = []
    speaks: int = 0
    """Version of our additions that it speaks; 0 for none."""


class Channel:
    """One connection, and its session."""

    def __init__(self, wire: FrameConnection, url: str, token: str | None) -> None:
        self.wire = wire
        self.url = url
        self.token = token
        self.greeting = Greeting("", {})
        self.seat: Seat | None = None
        """The seat whose model answers when the environment asks for one."""
        self._answering: set[asyncio.Task[None]] = set()
        wire.owner = self

    @property
    def is_peer(self) -> bool:
        return self.greeting.speaks > 0

    async def hello(self, session: str | None = None) -> Greeting:
        """Say hello; with a session, resume it."""
        params: dict[str, Any] = {"speaks": SPEAKS}
        if session is not None:
            params["session_id"] = session
        if self.token is not None:
            params["token"] = self.token
        self.greeting = msgspec.convert(await self.wire.ask("hello", params), Greeting)
        return self.greeting

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """RemoteError if refused, EnvLostError if the connection is lost, EnvError if it is not JSON."""
        try:
            return await self.wire.ask(method, params)
        except ConnectionError as error:
            raise EnvLostError(f"the connection to the environment at {self.url} was lost") from error
        except (FrameError, TypeError, ValueError, RecursionError) as error:
            raise EnvError(f"{method} cannot be sent to {self.url}: {error}") from error

    async def close(self) -> None:
        """Say bye; the other side would park a session that is merely dropped."""
        if not self.wire.is_closed:
            try:
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self.wire.ask("bye", {})
            except (RemoteError, ConnectionError, TimeoutError):
                pass
        self.wire.close()

    # RequestHandler of the wire

    def handle_request(self, id: Id, method: str, params: Any) -> None:  # noqa: A002
        """The environment asks for the model, on behalf of a judge."""
        if method != "model.complete" or self.seat is None or not isinstance(params, Mapping):
            self.wire.refuse(id, METHOD_NOT_FOUND, f"method not found: {method}")
            return
        if len(self._answering) >= MOST_AT_ONCE:
            self.wire.refuse(id, INVALID_REQUEST, f"{method}: {MOST_AT_ONCE} calls are running; wait for one")
            return
        task = asyncio.ensure_future(self._complete(id, self.seat, params))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _complete(self, id: Id, seat: Seat, params: Mapping[str, Any]) -> None:  # noqa: A002
        try:
            request = msgspec.convert(params, CompleteParams)
            reply = await seat.complete(
                request.messages, tools=request.tools, sampling=request.sampling, role=request.role
            )
            self.wire.answer(id, msgspec.to_builtins(msgspec.structs.replace(reply, logprobs=None)))
        except Exception as error:
            self.wire.refuse(id, TASK_FAILED, str(error), encode_failure(error))

    def give_up_seat(self) -> None:
        """The rollout is over; stop answering what the environment still asks on its behalf."""
        self.seat = None
        for task in self._answering:
            task.cancel()

    def handle_disconnect(self, error: Exception | None) -> None:  # noqa: ARG002
        self.give_up_seat()


class CompleteParams(msgspec.Struct, frozen=True):
    """Parameters of `model.complete`."""

    messages: list[dict[str, Any]]
    tools: Sequence[ToolSpec] = ()
    sampling: dict[str, Any] = {}
    role: str = "judge"


async def connect(url: str, token: str | None = None) -> Channel:
    """Connect and say hello; InfraError if nothing answers, ConfigError if the token is wrong."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            wire = await open_wire(url)
            channel = Channel(wire, url, token)
            try:
                await channel.hello()
            except BaseException:
                wire.close()
                raise
    except RemoteError as error:
        if error.code == UNAUTHORIZED:
            problem = "requires a token" if token is None else "refuses the token"
            raise ConfigError(
                f"The environment at {url} {problem}; set PROCTOR_SERVE_TOKEN to the one it was started with."
            ) from error
        raise InfraError(f"{url} refuses the connection: {error}") from error
    except msgspec.ValidationError as error:
        raise InfraError(f"what answers at {url} is not a served environment: {error}") from error
    except TimeoutError as error:
        raise InfraError(f"{url} did not answer within {CONNECT_SECONDS:g} s") from error
    except OSError as error:
        raise InfraError(
            f"cannot connect to {url}: {describe_os_error(error)}; is the environment served there?"
        ) from error
    return channel


async def open_wire(url: str) -> FrameConnection:
    loop = asyncio.get_running_loop()
    if url.startswith(UNIX):
        return (await loop.create_unix_connection(FrameConnection, url.removeprefix(UNIX)))[1]
    host, port = parse_host_and_port(url)
    secure = ssl.create_default_context() if url.startswith("tls:") else None
    return (await loop.create_connection(FrameConnection, host, port, ssl=secure))[1]


def parse_host_and_port(url: str) -> tuple[str, int]:
    """Host and port of `tcp://host:port`, or a ConfigError."""
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in ("tcp", "tls") or not host or not port:
        raise ConfigError(f"{url!r} is not the address of a served environment; write tcp://host:port.")
    return host, port


def describe_os_error(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
