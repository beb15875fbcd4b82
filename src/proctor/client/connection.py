"""A connection to a Proctor server: typed answers, errors for refusals, creates that are safe to repeat.

    async with ServerConnection(context) as server:
        run = await server.post("/runs", new, RunInfo)

Requests that did not arrive are sent again, within bounds: reads and deletes always, creates because they
carry a key. Knows nothing of what is requested.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from proctor.api.common import BASE, IDEMPOTENCY_HEADER, REDIRECT_HEADER, Page, Problem
from proctor.client.contexts import Context
from proctor.config.api_addresses import is_on_this_machine
from proctor.errors import ProctorError, describe_os_error

T = TypeVar("T")

REQUEST_SECONDS = 60.0
STORE_CONNECT_SECONDS = 10.0
TRIES = 4
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 8.0
RETRY_STATUSES = frozenset({429, 502, 503, 504})
USAGE_STATUSES = frozenset({400, 401, 404, 422})


class ServerError(ProctorError):
    """A Proctor server refused something, or did not answer."""

    def __init__(self, problem: Problem, status: int | None = None, location: str = "") -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.status = status
        self.location = location
        """Where the server says that a file is, instead of sending it."""

    @property
    def code(self) -> str:
        return self.problem.code

    @property
    def is_transient(self) -> bool:
        """The same request may succeed a moment later."""
        return self.status is None or self.status in RETRY_STATUSES or self.status >= 500

    @property
    def is_usage(self) -> bool:
        """The request is invalid, or not allowed for this user."""
        return self.status in USAGE_STATUSES


class ServerConnection:
    """Requests to one server as one user."""

    def __init__(
        self,
        context: Context,
        *,
        tries: int = TRIES,
        request_seconds: float = REQUEST_SECONDS,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.context = context
        self.headers = headers or {}
        self.tries = tries
        self.request_seconds = request_seconds
        self._session: aiohttp.ClientSession | None = None
        self._store_session: aiohttp.ClientSession | None = None
        """For what the server keeps elsewhere: without the token."""

    async def __aenter__(self) -> ServerConnection:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for session in (self._session, self._store_session):
            if session is not None:
                await session.close()
        self._session = self._store_session = None

    async def get(self, path: str, kind: type[T], /, **query: Any) -> T:
        return decode_answer(await self.ask("GET", path, query=query), kind)

    async def iterate_pages(
        self, path: str, kind: type[Page[T]], /, *, limit: int, **query: Any
    ) -> AsyncIterator[T]:
        """The items of a list, requested page by page as they are consumed."""
        cursor: str | None = None
        while True:
            page = await self.get(path, kind, **query, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    async def post(self, path: str, body: Any, kind: type[T], *, key: str | None = None) -> T:
        """Create; with the same key only once, however often it is sent."""
        headers = {IDEMPOTENCY_HEADER: key or secrets.token_hex(16)}
        return decode_answer(await self.ask("POST", path, body=encode_body(body), headers=headers), kind)

    async def send(self, path: str, body: Any, /, **query: Any) -> None:
        """Send something whose only answer is that it arrived."""
        await self.ask("POST", path, body=encode_body(body), query=query)

    async def put(self, path: str, body: Any, kind: type[T]) -> T:
        return decode_answer(await self.ask("PUT", path, body=encode_body(body)), kind)

    async def patch(self, path: str, body: Any, kind: type[T], /, **query: Any) -> T:
        return decode_answer(await self.ask("PATCH", path, body=encode_body(body), query=query), kind)

    async def delete(self, path: str) -> None:
        await self.ask("DELETE", path)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Callable[[], aiohttp.FormData | AsyncIterator[bytes]] | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> bytes:
        """Send a request and return the answer's bytes; retries where that may help, with a new body each
        time."""
        pause = FIRST_PAUSE_SECONDS
        for left in reversed(range(self.tries)):
            try:
                sent = body() if callable(body) else body
                async with self.open(
                    method, path, body=sent, query=query, headers=headers, seconds=seconds
                ) as got:
                    return await got.read()
            except ServerError as error:
                if not left or not error.is_transient:
                    raise
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                if not left:
                    raise self._unreachable(error) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer whose body is still to be read, for streams and files; a refusal raises ServerError."""
        asked = {
            name: encode_query_value(value) for name, value in (query or {}).items() if value is not None
        }
        patience = seconds or self.request_seconds
        sent = self._open().request(
            method,
            self.address(path),
            data=body,
            params=asked,
            headers={"content-type": "application/json", **(headers or {})}
            if isinstance(body, bytes)
            else headers,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=min(REQUEST_SECONDS, patience), sock_read=patience
            ),
            allow_redirects=False,
        )
        async with sent as response:
            if response.status >= 300:
                raise build_server_error(
                    response.status, await response.read(), self.context.url, response.headers
                )
            yield response

    @asynccontextmanager
    async def open_file(self, path: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """A file whose body is still to be read: from the server, or from the object store it names.

        The store gets no token of ours. If it is out of reach from here, the server sends the file itself.
        """
        location = ""
        async with AsyncExitStack() as stack:
            try:
                headers = {REDIRECT_HEADER: "follow"}
                got = await stack.enter_async_context(self.open("GET", path, headers=headers))
            except ServerError as error:
                location = error.location
                if not location:
                    raise
            else:
                yield got
                return
        async with AsyncExitStack() as stack:
            try:
                got = await stack.enter_async_context(self._open_elsewhere(location))
            except (aiohttp.ClientError, OSError, TimeoutError, ServerError):
                got = await stack.enter_async_context(self.open("GET", path))
            yield got

    @asynccontextmanager
    async def _open_elsewhere(self, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._store_session is None:
            self._store_session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), trust_env=not is_on_this_machine(url)
            )
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=STORE_CONNECT_SECONDS, sock_read=self.request_seconds
        )
        address = URL(url, encoded=True)  # what is signed must arrive as it is
        async with self._store_session.get(address, timeout=timeout, allow_redirects=False) as response:
            if response.status >= 300:
                raise build_server_error(response.status, await response.read(), f"{address.origin()}")
            yield response

    def address(self, path: str) -> str:
        return self.context.url + (path if path.startswith(("/v1/", "/simple/")) else BASE + path)

    def _unreachable(self, error: BaseException) -> ServerError:
        message = f"{self.context.url} does not answer ({describe_error(error)}); is the server running?"
        return ServerError(Problem("unreachable", message))

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"authorization": f"Bearer {self.context.token}"} if self.context.token else {}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers={**headers, **self.headers},
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=not is_on_this_machine(self.context.url),
            )
        return self._session


def describe_error(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return describe_os_error(error.os_error)
    return describe_os_error(error) if isinstance(error, OSError) else str(error) or type(error).__name__


def build_server_error(
    status: int, content: bytes, url: str, headers: Mapping[str, str] | None = None
) -> ServerError:
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        body_text = content[:200].decode(errors="replace").strip()
        quoted = f" ({body_text})" if body_text and not body_text.startswith("<") else ""
        message = f"{url} answered {status}{quoted}, but not like a Proctor server; is the address right?"
        problem = Problem("unreadable", message)
    return ServerError(problem, status, (headers or {}).get("location", "") if status == 307 else "")


def decode_answer(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        problem = Problem(
            "unreadable", f"The server's answer is malformed: {error}. Does it run another version?"
        )
        raise ServerError(problem) from error


def encode_body(body: Any) -> bytes:
    """A request as JSON, without the fields that are at their defaults.

    A server refuses fields it does not know, so an older one must only get those that are used.
    """
    return msgspec.json.encode(omit_defaults(body))


def omit_defaults(value: Any) -> Any:
    if isinstance(value, list):
        return [omit_defaults(each) for each in value]
    if not isinstance(value, msgspec.Struct):
        return value
    fields = [(field, getattr(value, field.name)) for field in msgspec.structs.fields(value)]
    return {
        field.encode_name: omit_defaults(given)
        for field, given in fields
        if field.required or given != default_of(field)
    }


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def encode_query_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
