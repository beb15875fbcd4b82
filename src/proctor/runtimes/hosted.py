"""HostedRuntime: environments that run on a Proctor server, reached through it.

    POST   {url}/api/v1/runtime/sessions              {"environment", "task"} → {"id", "status", "token"?}
    GET    {url}/api/v1/runtime/sessions/{id}         → {"id", "status", "message"?, "token"?}
    GET    {url}/api/v1/runtime/sessions/{id}/tunnel  a WebSocket; binary frames are the channel's bytes
    DELETE {url}/api/v1/runtime/sessions/{id}
    GET    {url}/api/v1/runtime/sessions              the caller's own; used to check the key

A session is `starting`, then `ready` or `failed`. Each connection to the environment is a tunnel of its own.
A refusal is `{"code", "message"}`, its message one sentence. Knows nothing of the channel's content.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from proctor.client.contexts import KEY_VARIABLE, URL_VARIABLE, Context, current_context, read_contexts
from proctor.config.api_addresses import is_on_this_machine
from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.hello import wait_for_hello
from proctor.runtimes.runtime import Runtime
from proctor.support.cancellation import create_or_undo, finish
from proctor.support.logs import log
from proctor.support.relay import open_relay
from proctor.task import Task

SESSIONS = "/api/v1/runtime/sessions"
REQUEST_SECONDS = 30.0
REFUSED = (401, 403)
LATER = (408, 425, 429)


class HostedSession(msgspec.Struct, frozen=True):
    """A session as the server describes it."""

    id: str
    status: str
    message: str = ""
    token: str | None = None


class HostedRuntime:
    """Asks a Proctor server for a session per rollout."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        environment: str | None = None,
        poll_seconds: float = 1.0,
        start_seconds: float = 600.0,
    ) -> None:
        login = current_context(os.environ)
        self.url = parse_base_url(url or (login.url if login else ""))
        self.environment = environment
        """Its name on the server; the task's environment if None."""
        self.poll_seconds = poll_seconds
        self.start_seconds = start_seconds
        self.is_local = False
        key = token or find_token(self.url, login)
        if not key:
            raise ConfigError(
                f"a hosted runtime needs a key for {self.url}; log in with `proctor login {self.url}`, "
                f"or set {KEY_VARIABLE}"
            )
        self._headers = {"authorization": f"Bearer {key}"}
        self._session: aiohttp.ClientSession | None = None

    def with_environment(self, environment: str) -> HostedRuntime:
        """The same server, for one environment."""
        other = copy(self)
        other.environment, other._session = environment, None
        return other

    def __repr__(self) -> str:
        return f"HostedRuntime({self.url!r})"

    def __call__(self, task: Task) -> AbstractAsyncContextManager[Runtime]:
        return self._open_runtime(task)

    async def check(self) -> None:
        """Raise unless the server answers and accepts the key."""
        try:
            await self._ask("GET", "")
        except EnvError as error:
            raise ConfigError(f"{error}; check {URL_VARIABLE} and {KEY_VARIABLE}") from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def _open_runtime(self, task: Task) -> AsyncIterator[Runtime]:
        name = self.environment or task.env
        if not name:
            raise ConfigError(f"task {task.slug} does not name its environment; pass environment=…")
        body = {"environment": name, "task": task.slug}
        hosted = await create_or_undo(self._ask_session("POST", "", body), lambda made: self._end(made.id))
        try:
            hosted = await self._wait_until_ready(hosted, name)
            async with open_relay(lambda: self._tunnel(hosted.id)) as url:
                await self._wait_for(url, hosted.id, name)
                yield Runtime(url, token=hosted.token)
        finally:
            await finish(self._end(hosted.id))

    async def _wait_until_ready(self, hosted: HostedSession, name: str) -> HostedSession:
        clock = asyncio.get_running_loop().time
        end = clock() + self.start_seconds
        while hosted.status != "ready":
            if hosted.status != "starting":
                raise EnvError(f"{self.url} could not start {name}: {hosted.message or hosted.status}")
            if clock() > end:
                raise InfraError(f"{self.url} did not start {name} within {self.start_seconds:g} s")
            await asyncio.sleep(self.poll_seconds)
            hosted = await self._ask_session("GET", f"/{quote(hosted.id, safe='')}")
        return hosted

    async def _wait_for(self, url: str, session: str, name: str) -> None:
        async def look() -> None:
            hosted = await self._ask_session("GET", f"/{quote(session, safe='')}")
            if hosted.status != "ready":
                raise EnvError(f"{name} on {self.url} has ended: {hosted.message or hosted.status}")

        try:
            async with asyncio.timeout(self.start_seconds):
                await wait_for_hello(url, look)
        except TimeoutError:
            raise InfraError(f"{name} on {self.url} does not answer") from None

    async def _end(self, session: str) -> None:
        try:
            await self._ask("DELETE", f"/{quote(session, safe='')}")
        except EnvError as error:
            log.warning("session %s could not be deleted: %s", session, error)

    async def _ask_session(self, method: str, path: str, body: dict[str, Any] | None = None) -> HostedSession:
        content = await self._ask(method, path, body)
        try:
            return msgspec.json.decode(content, type=HostedSession)
        except msgspec.MsgspecError as error:
            raise InfraError(
                f"{self.url} answered {method} {SESSIONS}{path} with something other than a session: {error}"
            ) from error

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        try:
            sent = self._open().request(
                method, f"{self.url}{SESSIONS}{path}", json=body, allow_redirects=False
            )
            async with asyncio.timeout(REQUEST_SECONDS), sent as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise InfraError(f"{self.url} does not answer: {error or type(error).__name__}") from error
        if response.status >= 300:
            raise self._refusal(response.status, content)
        return content

    def _refusal(self, status: int, content: bytes) -> EnvError:
        if status in REFUSED:
            return EnvError(f"{self.url} refused the key ({status}); check {KEY_VARIABLE}")
        kind = InfraError if status >= 500 or status in LATER else EnvError
        return kind(f"{self.url} answered {status}: {reason_of(content)}")

    @asynccontextmanager
    async def _tunnel(self, session: str) -> AsyncIterator[TunnelFarEnd]:
        address = f"{self.url}{SESSIONS}/{quote(session, safe='')}/tunnel"
        async with self._open().ws_connect(address, max_msg_size=0, heartbeat=REQUEST_SECONDS) as socket:
            yield TunnelFarEnd(socket)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_SECONDS),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=not is_on_this_machine(self.url),
            )
        return self._session


class TunnelFarEnd:
    """The far end of a connection tunnelled through a WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type == aiohttp.WSMsgType.BINARY and not message.data:
                continue  # an empty frame is not the end
            return message.data if message.type == aiohttp.WSMsgType.BINARY else b""

    async def send(self, data: bytes) -> None:
        await self._socket.send_bytes(data)

    async def end(self) -> None:
        await self._socket.close()


def find_token(url: str, login: Context | None) -> str:
    """The token for a server: that of a login there, or the one in the environment, unless that is for
    another server."""
    if login is not None and login.url == url:
        return login.token
    known = read_contexts(os.environ).contexts.values()
    there = next((each.token for each in known if each.url == url), "")
    return there or ("" if os.environ.get(URL_VARIABLE) else os.environ.get(KEY_VARIABLE, ""))


def parse_base_url(url: str) -> str:
    """The API's base URL; an address without a scheme gets https, or http on this machine."""
    if not url:
        raise ConfigError(
            f"no server is named; log in with `proctor login URL`, set {URL_VARIABLE}, or pass hosted://HOST"
        )
    if "://" not in url:
        url = f"http://{url}" if is_on_this_machine(f"http://{url}") else f"https://{url}"
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ConfigError(f"{url!r} is not a server address; write https://HOST")
    return url.rstrip("/")


def reason_of(content: bytes) -> str:
    """The message of a refusal, or its text if it has no message."""
    try:
        answer = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content[:200].decode(errors="replace").strip()
    return str(answer.get("message", answer)) if isinstance(answer, dict) else str(answer)
