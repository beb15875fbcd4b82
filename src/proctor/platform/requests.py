"""What every request brings along: who asks, a key to create only once, a cursor to go on from.

Knows nothing of what is asked for.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from litestar import Request
from litestar.di import NamedDependency
from sqlalchemy import Connection, insert, select

from proctor.api.common import IDEMPOTENCY_HEADER, Page
from proctor.platform.db.tables import creations
from proctor.platform.people.tokens import NOBODY, Caller, caller_of, saw
from proctor.platform.platform import Platform
from proctor.platform.problems import ConflictError, InvalidError

LONGEST_KEY = 200
MOST_ITEMS = 1000
T = TypeVar("T")

Asked = Request[Any, Any, Any]
Here = NamedDependency[Platform]
"""The server, as a route is given it."""
By = NamedDependency[Caller]
"""Who asks, as a route is told."""


async def find_caller(request: Asked, platform: Here) -> Caller:
    """Who asks; a request without a token is nobody's, one with a bad token is refused."""
    word = token_in(request)
    return await caller_with(platform, word) if word else NOBODY


async def caller_with(platform: Platform, word: str) -> Caller:
    """Who a token stands for."""
    known = platform.callers.get(word)
    if known is None:
        known = await platform.callers.asked.ask(word, lambda: look_up(platform, word))
    return known


async def look_up(platform: Platform, word: str) -> Caller:
    known = await platform.database.read(caller_of, word)
    platform.callers.put(word, known)
    if known.kind == "user":
        await platform.database.write(saw, known.token_id, time.time())
    return known


def token_in(request: Asked) -> str:
    """A bearer token, an Anthropic client's header, or, for pip and uv, the password of basic credentials."""
    kind, _, rest = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return rest.strip()
    if kind.lower() == "basic":
        try:
            _, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise InvalidError("The basic credentials cannot be read.") from None
        return password
    return request.headers.get("x-api-key", "")


# Creating once


async def create(
    request: Asked, platform: Platform, caller: Caller, work: Callable[[Connection], T], kind: type[T]
) -> T:
    """Do the work, or, where its idempotency key was seen before, answer what was answered then.

    The key is kept in the same transaction as what was made, so that neither is there without the other.
    """
    key = request.headers.get(IDEMPOTENCY_HEADER, "")
    if not key:
        return await platform.database.write(work)
    if len(key) > LONGEST_KEY:
        raise InvalidError(f"{IDEMPOTENCY_HEADER} has more than {LONGEST_KEY} characters.")
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode())
    digest.update(await request.body())
    return await platform.database.write(
        once, caller.user or caller.token_id, key, digest.digest(), work, kind
    )


def once(
    connection: Connection,
    caller: str,
    key: str,
    request_hash: bytes,
    work: Callable[[Connection], T],
    kind: type[T],
) -> T:
    query = select(creations).where(creations.c.caller == caller, creations.c.key == key)
    known = connection.execute(query).one_or_none()
    if known is not None:
        if known.request_hash != request_hash:
            raise ConflictError(
                f"The {IDEMPOTENCY_HEADER} {key!r} was used for another request.", code="idempotency_mismatch"
            )
        return msgspec.json.decode(known.response, type=kind)
    made = work(connection)
    connection.execute(
        insert(creations).values(
            caller=caller,
            key=key,
            request_hash=request_hash,
            response=msgspec.json.encode(made),
            at=time.time(),
        )
    )
    return made


# Going on


def cursor_of(*place: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place_of(cursor: str | None, *kinds: type) -> tuple[Any, ...] | None:
    """The place that a cursor names: one value for each kind."""
    if not cursor:
        return None
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        values = msgspec.json.decode(raw, type=list[Any])
        return tuple(msgspec.convert(value, kind) for value, kind in zip(values, kinds, strict=True))
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise InvalidError("The cursor is none that this list gave.", field="cursor") from None


def page_of(items: Sequence[T], limit: int, place: Callable[[T], Sequence[Any]]) -> Page[T]:
    """A page made of one item more than it shows, where there is one more."""
    shown = list(items[:limit])
    more = cursor_of(*place(shown[-1])) if len(items) > limit else None
    return Page(shown, more)


def limited(limit: int) -> int:
    if not 1 <= limit <= MOST_ITEMS:
        raise InvalidError(f"limit must be from 1 to {MOST_ITEMS}.", field="limit")
    return limit
