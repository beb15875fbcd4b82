"""One pooled HTTP client for all providers: bytes out, bytes in, each failure an error of its own.

Knows nothing of what the bytes mean.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from proctor.config.api_addresses import is_on_this_machine
from proctor.config.endpoints import Endpoint
from proctor.errors import (
    AuthError,
    ContextTooLongError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
    UnreachableError,
)
from proctor.models.http_pool import HttpPool, HttpResponse
from proctor.support.deadlines import Deadlines
from proctor.support.json_values import ValueCounter
from proctor.wires.codec import UNREADABLE
from proctor.wires.events import EventSplitter

CONNECT_SECONDS = 30.0
CHECK_SECONDS = 5.0
KEPT_BODY = 400
LARGEST_ERROR = 2**20
"""Longer error bodies are not decoded as JSON."""

TOO_LONG_SIGNS = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "exceed_context",
    "exceed context",
    "prompt is too long",
    "too many tokens",
    "maximum number of tokens",
    "longer than the maximum",
)


ErrorReader = Callable[[int, bytes, Mapping[str, str], Endpoint], ModelError]
"""Turns the status, body and headers of a response into an error."""


class HttpClient:
    """Connections to one endpoint.

    The endpoint's own headers override those passed here and its key, which is sent in `key_header`.
    """

    environ: Mapping[str, str] = os.environ
    """The variables in which to look up the endpoint's key."""
    socket_factory: Callable[[Any], socket.socket] | None = None
    """Creates the sockets, and so decides which addresses may be reached; disables proxies."""
    most_bytes: int | None = None
    """Limit on the decompressed body of one response; None for trusted endpoints: no limit."""
    most_values: int | None = None
    """Limit on the JSON values in one whole response, where its bytes are limited."""

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[str, str] | None = None,
        key_header: str = "authorization",
        failure: ErrorReader | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._key_header = key_header
        self._failure = failure or error_for_status
        own = {name.lower(): value for name, value in endpoint.headers.items()}
        self.headers = {"content-type": "application/json", **(headers or {}), **own}
        self._pool: HttpPool | None = None
        self._deadlines = Deadlines()
        self._urls: dict[str, URL] = {}

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """The body of a successful response; raises ModelError otherwise."""
        pool, url = self._open(), self._url(path)
        is_resent = False
        while True:
            try:
                with self._deadlines.within(self.endpoint.request_seconds):
                    response = await pool.send("POST", url, body, headers)
                    try:
                        content = await self.whole(response)
                    finally:
                        response.release()
                if 300 <= response.status < 400:
                    raise self._redirect_error(response)
                if response.status >= 400:
                    raise self._refused(response, content)
                return content
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                if is_resent or not may_be_stale(error):
                    raise self.translate_error(error) from error
                is_resent = True

    def passing(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> ResponseContext:
        """A response of any status, to forward as it arrives; raises ModelError if there is none."""
        return ResponseContext(self, path, body, headers)

    async def begin(self, path: str, body: bytes, headers: Mapping[str, str] | None) -> HttpResponse:
        """A response whose body has not been read; the caller releases it.

        The time limit applies to each read, not to the whole: a stream may take as long as it keeps sending.
        """
        pool, url = self._open(), self._url(path)
        is_resent = False
        while True:
            try:
                return await pool.send("POST", url, body, headers, self.endpoint.request_seconds)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                if is_resent or not may_be_stale(error):
                    raise self.translate_error(error) from error
                is_resent = True

    async def stream(
        self, path: str, body: bytes, headers: Mapping[str, str] | None, feed: Callable[[bytes], None]
    ) -> bytes | None:
        """Give every event of a stream to `feed`, as it arrives. Raises ModelError if there is none; the body
        of a response that is not a stream is returned."""
        async with self.passing(path, body, headers) as response:
            if 300 <= response.status < 400:
                raise self._redirect_error(response)
            if response.status >= 400:
                raise self._refused(response, await self.whole(response))
            if response.content_type != "text/event-stream":
                return await self.whole(response)
            splitter, counter, size = EventSplitter(), ValueCounter(), 0
            async for chunk in response.content.iter_any():
                size += len(chunk)
                counter.feed(chunk)
                self.check_size(size, counter.values)
                for event in splitter.feed(chunk):
                    feed(event)
                await asyncio.sleep(0)  # a small compressed stream is decompressed at once, all of it
            for event in splitter.end():
                feed(event)
        return None

    async def whole(self, response: HttpResponse) -> bytes:
        """The whole body of a response; raises ModelError if it is too large."""
        if self.most_bytes is None:
            return await response.read()
        content, counter = bytearray(), ValueCounter()
        async for chunk in response.content.iter_any():
            content += chunk
            counter.feed(chunk)
            self.check_size(len(content), counter.values)
            await asyncio.sleep(0)  # a small compressed body is decompressed at once, all of it
        return bytes(content)

    def check_size(self, size: int, values: int = 0) -> None:
        """Raise ModelError if a response is larger than this endpoint may send."""
        if self.most_bytes is not None and size > self.most_bytes:
            raise self._too_large_error(f"{self.most_bytes // 2**20} MB")
        if self.most_values is not None and values > self.most_values:
            raise self._too_large_error(f"{self.most_values:,} JSON values")

    def _too_large_error(self, limit: str) -> ModelError:
        message = f"{self.endpoint.url} sent over {limit}; ask for a shorter answer."
        return RequestRefusedError(message, status=502)

    async def check(self, path: str) -> None:
        """Check for free that the host answers and accepts the key."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                response = await self._open().send("GET", self._url(path))
                try:
                    if response.status in (400, 401):
                        failure = self._refused(response, await self.whole(response))
                        if isinstance(failure, AuthError):
                            raise failure
                finally:
                    response.release()
        except TimeoutError:
            return  # a slow server may still work: the first real request decides
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise self.translate_error(error) from error
        except (aiohttp.ClientError, OSError):
            return

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    def _open(self) -> HttpPool:
        if self._pool is None:
            self._deadlines = Deadlines()
            self._pool = HttpPool(
                {**self._key_headers(), **self.headers},
                CONNECT_SECONDS,
                self.socket_factory,
                trust_env=self.socket_factory is None and not is_on_this_machine(self.endpoint.url),
            )
        return self._pool

    def _key_headers(self) -> Mapping[str, str]:
        key = self.endpoint.key(self.environ)
        if not key or "authorization" in self.headers:  # set in the registry
            return {}
        return {self._key_header: f"Bearer {key}" if self._key_header == "authorization" else key}

    def _url(self, path: str) -> URL:
        url = self._urls.get(path)
        if url is None:
            try:
                url = self._urls[path] = URL(self.endpoint.url + path)
            except ValueError as error:
                raise aiohttp.InvalidURL(self.endpoint.url) from error
        return url

    def _refused(self, response: HttpResponse, content: bytes) -> ModelError:
        """The error that a response means, without our key: a server may repeat it, and errors are saved."""
        if key := self.endpoint.key(self.environ):
            content = content.replace(key.encode(), b"(hidden)")
        return self._failure(response.status, content, response.headers, self.endpoint)

    def _redirect_error(self, response: HttpResponse) -> ModelError:
        """Redirects are not followed: the key and the conversation are meant for this address alone."""
        there = response.headers.get("Location", "nowhere")
        message = (
            f"{self.endpoint.url} answered {response.status} and redirects to {there}; "
            "if that is the right address, pass it with -b."
        )
        return RequestRefusedError(message, status=response.status)

    def translate_error(self, error: Exception) -> ModelError:
        url = self.endpoint.url
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            host = URL(url).host
            return UnreachableError(f"Cannot resolve the host {host!r} of {url}; check -b/--api-base-url.")
        if isinstance(error, aiohttp.ClientConnectorError):
            reason = error.os_error.strerror or str(error.os_error)
            return UnreachableError(f"Cannot connect to {url}: {reason}; check that it is running.")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return UnreachableError(
                f"Cannot connect to {url} in {CONNECT_SECONDS:g} s; check that it is running."
            )
        if isinstance(error, TimeoutError):
            return ModelTimeoutError(f"{url} did not answer in {self.endpoint.request_seconds:g} s.")
        if isinstance(error, aiohttp.InvalidURL):
            return RequestRefusedError(f"{url!r} is not a valid URL; check -b/--api-base-url.")
        return UnreachableError(
            f"{url} closed the connection before the end of its answer: {type(error).__name__}: {error}"
        )


class ResponseContext:
    """A response while it is read, as `async with`. A class, because a generator costs several times as much
    and every call of the gateway has one."""

    def __init__(self, client: HttpClient, path: str, body: bytes, headers: Mapping[str, str] | None) -> None:
        self._client = client
        self._path = path
        self._body = body
        self._headers = headers

    async def __aenter__(self) -> HttpResponse:
        self._response = await self._client.begin(self._path, self._body, self._headers)
        return self._response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._response.release()
        if isinstance(error, (aiohttp.ClientError, TimeoutError)):
            raise self._client.translate_error(error) from error


def may_be_stale(error: Exception) -> bool:
    """Whether the server may have closed an idle pooled connection, so that a new one may work."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    return isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError))


def error_for_status(
    status: int, content: bytes, headers: Mapping[str, str], endpoint: Endpoint
) -> ModelError:
    """The error that a response with this status means."""
    text, code = error_text(content)
    message = f"{endpoint.url} answered {status}: {text}"
    words = f"{text} {code}".lower()
    if status in (401, 403):
        return key_error(message, status, endpoint)
    if status == 413 or (status in (400, 422, 500) and any(sign in words for sign in TOO_LONG_SIGNS)):
        return ContextTooLongError(message, status=status)
    if status == 429 and "insufficient_quota" not in words:
        return RateLimitError(message, status=status, retry_after_seconds=retry_after(headers))
    if status in (408, 504):
        return ModelTimeoutError(message, status=status)
    if status >= 500:
        return OverloadedError(message, status=status, retry_after_seconds=retry_after(headers))
    if status == 404:
        return RequestRefusedError(
            f"{message}; check the model name {endpoint.model!r} and the base URL.", status=404
        )
    return RequestRefusedError(message, status=status)


def key_error(message: str, status: int, endpoint: Endpoint) -> AuthError:
    variable = endpoint.key_var
    hint = f"check the API key in {variable}" if variable else "name the variable of its API key with -k"
    return AuthError(f"{message.rstrip('.')}; {hint}.", status=status)


def error_text(content: bytes) -> tuple[str, str]:
    """The provider's error message and code."""
    try:
        body: Any = msgspec.json.decode(content) if len(content) <= LARGEST_ERROR else None
    except UNREADABLE:
        body = None
    if body is None:
        return content[:KEPT_BODY].decode(errors="replace").strip() or "no explanation", ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        code = f"{error.get('type') or ''} {error.get('code') or ''}"
        return str(error.get("message") or error.get("detail") or error)[:KEPT_BODY], code
    return str(error)[:KEPT_BODY], ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `Retry-After` as seconds or as a date, or from its millisecond form."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None and (wait := seconds_in(milliseconds)) is not None:
        return wait / 1000
    value = headers.get("Retry-After")
    if value is None or (wait := seconds_in(value)) is not None:
        return None if value is None else wait
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def seconds_in(text: str) -> float | None:
    """A finite number of seconds, at least 0; None if the text is not one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None
