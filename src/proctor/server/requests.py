"""What every request carries: its caller, and a key to create only once.

Knows nothing of what is requested.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath
from msgspec.structs import replace
from sqlalchemy import Connection, insert, select

from proctor.api.bounds import KILOBYTE, MOST_BYTES
from proctor.api.common import HOST_KEY_HEADER, IDEMPOTENCY_HEADER
from proctor.server.browser_requests import check_same_origin, find_session_cookie
from proctor.server.db.locks import lock_text
from proctor.server.db.tables import creations
from proctor.server.people.browser_sessions import resolve_session
from proctor.server.people.login_throttle import find_client_address
from proctor.server.people.tokens import (
    ANONYMOUS,
    Caller,
    bind_host,
    is_use_unrecorded,
    record_token_use,
    resolve_caller,
)
from proctor.server.platform import Platform
from proctor.server.problems import ConflictError, InvalidError, TooLargeError, UnauthenticatedError
from proctor.server.secrets.sealed_columns import meant_for_creation
from proctor.server.secrets.vault import Vault
from proctor.support.structured_logs import RUN_ID

LONGEST_KEY = 200
LONGEST_LENGTH = 18
"""Of a content-length, in digits."""
LONGEST_PARAMETER = 4_096
"""As long as a path may be; cursors, names and search terms are shorter."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""Those that change nothing."""
SESSION_KEY = "session:"
"""Before a cookie in the cache of callers, so that no token can be taken for one."""
METHODS_WITH_BODY = ("POST", "PUT", "PATCH")
SIGNED: Mapping[str, Any] = {"is_signed": True}
"""The `opt` of routes whose requests are signed instead of having a token."""
LOGS_IN: Mapping[str, Any] = {"logs_in": True}
"""The `opt` of the route that takes credentials in its body."""
WITHOUT_TOKEN = SIGNED.keys() | LOGS_IN.keys()
T = TypeVar("T")

HttpRequest = Request[Any, Any, Any]
PlatformDependency = NamedDependency[Platform]
"""The server, as a dependency of routes."""
CallerDependency = NamedDependency[Caller]
"""The caller, as a dependency of routes."""
SlugDependency = NamedDependency[str]
"""`owner/name` from the path, as a dependency of routes that have both."""


async def find_caller(request: HttpRequest, platform: PlatformDependency) -> Caller:
    return await caller_from_connection(request, platform)


def join_slug(owner: FromPath[str], name: FromPath[str]) -> str:
    return f"{owner}/{name}"


async def need_authentication(
    connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
) -> None:
    """A guard: a request without a token is refused before its body is stored."""
    if connection.scope.get("method") in METHODS_WITH_BODY and not handler.opt.keys() & WITHOUT_TOKEN:
        caller = await caller_from_connection(connection, connection.app.state["platform"])
        if caller.is_anonymous:
            raise UnauthenticatedError("This needs a token; log in with `proctor login`.")


async def caller_from_connection(
    connection: ASGIConnection[Any, Any, Any, Any], platform: Platform
) -> Caller:
    """The caller of a request with a token, or with a browser's cookie; a token counts more."""
    cookie = find_session_cookie(connection.headers, platform.settings.url)
    if not cookie or token_from_headers(connection.headers):
        caller = await caller_from_headers(connection.headers, platform)
        return replace(caller, address=address_of(connection, platform)) if caller.is_anonymous else caller
    if connection.scope.get("method") not in SAFE_METHODS:
        check_same_origin(connection.headers, platform.settings.url)
    return await caller_from_session(platform, cookie)


def address_of(connection: ASGIConnection[Any, Any, Any, Any], platform: Platform) -> str:
    """Where a request comes from."""
    peer = connection.client.host if connection.client else ""
    return find_client_address(peer, connection.headers, platform.settings.connections.trusted_proxies)


async def caller_from_session(platform: Platform, cookie: str) -> Caller:
    return await platform.callers.find(f"{SESSION_KEY}{cookie}", lambda: look_up_session(platform, cookie))


async def look_up_session(platform: Platform, cookie: str) -> Caller:
    known = await platform.database.read(resolve_session, cookie)
    await record_use(platform, known)
    return known


async def caller_from_headers(headers: Mapping[str, str], platform: Platform) -> Caller:
    """The caller; anonymous without a token. A bad token is refused."""
    word = token_from_headers(headers)
    return await caller_from_token(platform, word, headers.get(HOST_KEY_HEADER, "")) if word else ANONYMOUS


async def caller_from_token(platform: Platform, word: str, host_key: str = "") -> Caller:
    """The caller of a token; of a host's token only together with the host's key."""
    shown = f"{word}\n{host_key}" if host_key else word
    known = await platform.callers.find(shown, lambda: look_up_caller(platform, word, host_key))
    if known.run_id is not None:
        RUN_ID.set(known.run_id)
    return known


async def look_up_caller(platform: Platform, word: str, host_key: str) -> Caller:
    known = await platform.database.read(resolve_caller, word, host_key)
    if known.kind == "host" and not known.is_bound:
        await platform.database.write(bind_host, known.token_id, host_key)
    await record_use(platform, known)
    return known


async def record_use(platform: Platform, caller: Caller) -> None:
    if is_use_unrecorded(caller, now := time.time()):  # rarely: no request waits for this write
        await platform.database.write(record_token_use, caller.token_id, now)


def token_from_headers(headers: Mapping[str, str]) -> str:
    """A bearer token, an Anthropic client's header, or, for pip and uv, the password of basic credentials."""
    kind, _, rest = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return rest.strip()
    if kind.lower() == "basic":
        try:
            _, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
        except ValueError:  # not base64, not ASCII, not UTF-8
            raise InvalidError("The basic credentials are malformed.") from None
        return password
    return headers.get("x-api-key", "")


def need_length(headers: Mapping[str, str]) -> int:
    """How long a body is, according to its head: room is reserved before it arrives."""
    announced = headers.get("content-length", "")
    if not announced.isdecimal() or len(announced) > LONGEST_LENGTH:
        raise InvalidError("Say how many bytes you send, with the header content-length.")
    return int(announced)


def check_tables(data: msgspec.Struct) -> None:
    """Reject free-form objects that are larger than their field allows."""
    for field in msgspec.structs.fields(data):
        most, value = most_bytes_of(field.type), getattr(data, field.name)
        if most is not None and value and len(msgspec.json.encode(value)) > most:
            raise TooLargeError(
                f"{field.name} may have at most {most // KILOBYTE:,} KB as JSON; shorten it.",
                field=field.name,
                most_bytes=most,
            )


def most_bytes_of(kind: Any) -> int | None:
    """The declared size of a request's field, if it is a free-form object."""
    found = [most_bytes_of(each) for each in get_args(kind) if get_origin(kind) in (Union, UnionType)]
    metas = (each for each in getattr(kind, "__metadata__", ()) if isinstance(each, msgspec.Meta))
    found += [(meta.extra or {}).get(MOST_BYTES) for meta in metas]
    return next((most for most in found if most is not None), None)


async def check_head(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """A guard: no query parameter or header is longer than any valid one."""
    if len(connection.headers.get(IDEMPOTENCY_HEADER, "")) > LONGEST_KEY:
        raise InvalidError(f"{IDEMPOTENCY_HEADER} has more than {LONGEST_KEY} characters.")
    asked = [*connection.path_params.items(), *connection.query_params.multi_items()]
    for name, value in asked:
        if len(str(value)) > LONGEST_PARAMETER:
            raise InvalidError(f"{name} has more than {LONGEST_PARAMETER:,} characters.", field=name)


# Creating once


async def run_idempotent(
    request: HttpRequest,
    platform: Platform,
    caller: Caller,
    work: Callable[[Connection], T],
    kind: type[T],
    *,
    content: bytes | None = None,
) -> T:
    """Do the work or, if its idempotency key was seen before, return the earlier answer.

    The key is stored in the same transaction as the result, so that neither exists without the other.
    `content` stands for a body that is too large to be read as a whole.
    """
    key = request.headers.get(IDEMPOTENCY_HEADER, "")
    if not key:
        return await platform.database.write(work)
    body = await request.body() if content is None else content
    asked = f"{request.method} {request.url.path} {' '.join(sorted(caller.scopes))}\n".encode()
    request_hash = hashlib.sha256(asked + body).digest()
    return await platform.database.write(replay_or_run, platform.vault, caller, key, request_hash, work, kind)


def replay_or_run(
    connection: Connection,
    vault: Vault,
    caller: Caller,
    key: str,
    request_hash: bytes,
    work: Callable[[Connection], T],
    kind: type[T],
) -> T:
    """Keys belong to a token: an answer may hold what another token of the same user may not read.

    The hash is sealed with the answer, so that a reader of the database cannot test guesses against it.
    """
    lock_text(connection, f"{caller.token_id} {key}")  # the same request may arrive at two servers at once
    meant_for = meant_for_creation(caller.token_id, key)
    query = select(creations.c.response).where(creations.c.caller == caller.token_id, creations.c.key == key)
    known = connection.execute(query).scalar_one_or_none()
    if known is not None:
        answer = vault.open(known, meant_for)
        if answer[: len(request_hash)] != request_hash:
            raise ConflictError(
                f"The {IDEMPOTENCY_HEADER} {key!r} was already used for another request.",
                code="idempotency_mismatch",
            )
        return msgspec.json.decode(answer[len(request_hash) :], type=kind)
    made = work(connection)
    sealed = vault.seal(request_hash + msgspec.json.encode(made), meant_for)
    connection.execute(
        insert(creations).values(caller=caller.token_id, key=key, response=sealed, at=time.time())
    )
    return made
