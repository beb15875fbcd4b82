"""Logins of browsers: a session is opened with a token or a one-time code, and ends with its token.

A session's cookie is `ID_SECRET`; as with tokens, the secret is stored as a hash. A code is good for one
login within minutes. Knows nothing of HTTP.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy import Column, Connection, Table, delete, insert, select, update

from proctor.api.people import NewToken
from proctor.api.session import BrowserLogin
from proctor.server.db.tables import browser_sessions, login_codes, tokens
from proctor.server.people import first_login
from proctor.server.people.tokens import (
    Caller,
    caller_in_row,
    default_scopes,
    find_team_roles,
    hash_secret,
    known_tokens,
    make_token,
)
from proctor.server.problems import ForbiddenError, NotFoundError, UnauthenticatedError

DAY = 86_400.0
SESSION_SECONDS = 14 * DAY
CODE_SECONDS = 300.0
FIRST_CODE_SECONDS = 3600.0
"""Of the link that a new server prints: its operator may read on before they open it."""
FIRST_SESSION_DAYS = 90.0
MOST_PER_TOKEN = 50
"""Sessions, and codes, of one token; another one ends the oldest."""
LOGIN_NAME = "dashboard"
"""Name of a token that was made only for a browser's session."""


class OpenedSession(msgspec.Struct, frozen=True):
    """A session that was just opened; its cookie is shown only once."""

    cookie: str
    caller: Caller


# Codes


def add_code(connection: Connection, token_id: str, now: float, seconds: float = CODE_SECONDS) -> str:
    code = secrets.token_urlsafe(32)
    drop_oldest(connection, login_codes, login_codes.c.code_hash, token_id)
    connection.execute(
        insert(login_codes).values(
            code_hash=hash_secret(code), token_id=token_id, created_at=now, expires_at=now + seconds
        )
    )
    return code


def add_first_code(connection: Connection, now: float) -> str:
    """A code for the admin of a new server, whose session has a token of its own: the token of the first
    login stays good for the command line."""
    made = make_token(
        connection,
        user=first_login.ADMIN,
        name=LOGIN_NAME,
        scopes=default_scopes(True),
        expires_at=now + FIRST_SESSION_DAYS * DAY,
    )
    return add_code(connection, made.token.id, now, FIRST_CODE_SECONDS)


def redeem_code(connection: Connection, code: str, now: float) -> str:
    """The token of a code, which becomes worthless; of two browsers at the same moment, one gets it."""
    of_code = login_codes.c.code_hash == hash_secret(code)
    good = login_codes.c.used_at.is_(None) & (login_codes.c.expires_at > now)
    used = connection.execute(update(login_codes).where(of_code, good).values(used_at=now))
    row = connection.execute(select(login_codes).where(of_code)).one_or_none()
    if used.rowcount and row is not None:
        return str(row.token_id)
    if row is not None and row.used_at is not None:
        raise UnauthenticatedError(
            "This link was already used, and it works only once. If that was not you, run `proctor logout`, "
            "which ends every session that it opened; for another link, run `proctor dashboard`, or ask the "
            "admin who sent it.",
            code="code_used",
        )
    raise UnauthenticatedError(
        "This link has expired; run `proctor dashboard` for another, or ask the admin who sent it.",
        code="code_expired",
    )


# Sessions


def open_session(connection: Connection, caller: Caller, now: float) -> OpenedSession:
    """A session with the permissions of a user's token, until that token ends."""
    if caller.kind == "first":
        new = NewToken(name=LOGIN_NAME, scopes=default_scopes(True), expires_in_days=FIRST_SESSION_DAYS)
        made = first_login.exchange(connection, caller, new)
        caller = find_token_caller(connection, made.token.id)
    if caller.kind != "user":
        raise ForbiddenError(f"This is the token of a {caller.kind}, not of a user.")
    id_, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    expires_at = min(now + SESSION_SECONDS, caller.expires_at or float("inf"))
    drop_oldest(connection, browser_sessions, browser_sessions.c.id, caller.token_id)
    connection.execute(
        insert(browser_sessions).values(
            id=id_,
            secret_hash=hash_secret(secret),
            token_id=caller.token_id,
            created_at=now,
            expires_at=expires_at,
        )
    )
    opened = replace(caller, session_id=id_, session_expires_at=expires_at)
    return OpenedSession(f"{id_}_{secret}", opened)


def open_with_code(connection: Connection, code: str, now: float) -> OpenedSession:
    return open_session(connection, find_token_caller(connection, redeem_code(connection, code, now)), now)


def resolve_session(connection: Connection, cookie: str) -> Caller:
    """The caller of a session; raises if it or its token is no longer valid."""
    id_, _, secret = cookie.partition("_")
    row = connection.execute(select(browser_sessions).where(browser_sessions.c.id == id_)).one_or_none()
    if (
        row is None
        or not hmac.compare_digest(row.secret_hash, hash_secret(secret))
        or row.expires_at < time.time()
    ):
        raise session_over()
    caller = find_token_caller(connection, row.token_id)
    return replace(caller, session_id=id_, session_expires_at=row.expires_at)


def end_session(connection: Connection, session_id: str) -> None:
    connection.execute(delete(browser_sessions).where(browser_sessions.c.id == session_id))


def list_logins(connection: Connection, caller: Caller, now: float) -> list[BrowserLogin]:
    """Where a user is logged in, the newest first."""
    query = (
        select(browser_sessions, tokens.c.name)
        .join(tokens, tokens.c.id == browser_sessions.c.token_id)
        .where(
            tokens.c.user == caller.user, tokens.c.revoked_at.is_(None), browser_sessions.c.expires_at > now
        )
        .order_by(browser_sessions.c.created_at.desc())
    )
    return [
        BrowserLogin(
            id=row.id,
            created_at=row.created_at,
            expires_at=row.expires_at,
            token_id=row.token_id,
            token_name=row.name,
            is_current=row.id == caller.session_id,
        )
        for row in connection.execute(query)
    ]


def end_login(connection: Connection, user: str, session_id: str) -> None:
    theirs = select(tokens.c.id).where(tokens.c.user == user)
    gone = connection.execute(
        delete(browser_sessions).where(
            browser_sessions.c.id == session_id, browser_sessions.c.token_id.in_(theirs)
        )
    )
    if not gone.rowcount:
        raise NotFoundError(f"You have no login {session_id!r}; it may have ended.")


def list_open_sessions(connection: Connection, session_ids: Sequence[str], now: float) -> set[str]:
    """Those of some sessions that have not ended."""
    query = select(browser_sessions.c.id).where(
        browser_sessions.c.id.in_(session_ids), browser_sessions.c.expires_at > now
    )
    return set(connection.execute(query).scalars())


def session_over() -> UnauthenticatedError:
    return UnauthenticatedError("Your session has ended or expired; log in again.", code="session_over")


def find_token_caller(connection: Connection, token_id: str) -> Caller:
    row = connection.execute(known_tokens([token_id])).one_or_none()
    return caller_in_row(row, find_team_roles(connection, None if row is None else row.user))


def drop_oldest(
    connection: Connection, table: Table, key: Column[str] | Column[bytes], token_id: str
) -> None:
    """Keep room for one more row of a token."""
    newest = (
        select(key)
        .where(table.c.token_id == token_id)
        .order_by(table.c.created_at.desc())
        .offset(MOST_PER_TOKEN - 1)
    )
    old = list(connection.execute(newest).scalars())
    if old:
        connection.execute(delete(table).where(key.in_(old)))
