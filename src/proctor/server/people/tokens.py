"""Tokens: created once, shown once, stored as a hash, and resolved to a caller.

A token is `proctor_ID_SECRET`; the id finds the row, the secret proves it. Knows nothing of HTTP.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, case, func, insert, select, update

from proctor.api.common import HOST_KEY_HEADER, new_id
from proctor.api.people import SCOPES, Scope, Token
from proctor.run import ACTIVE
from proctor.server.db.tables import members, runs, tokens, users
from proctor.server.problems import ForbiddenError, UnauthenticatedError

PREFIX = "proctor_"
OF_ATTEMPTS = ("run", "delegate")
"""Kinds of tokens that are valid for one attempt."""
OWN_HOST = "own-"
"""Prefix of the name of a server's own host, before the server's id."""
ENROL_SECONDS = 86_400.0
"""How soon a host's token must be used for the first time."""
OWN_HOST_SILENT_SECONDS = 900.0
"""How long the token of a server's own host stays valid without being used; such a host gives up sooner."""
HOST_SILENT_SECONDS = 86_400.0
"""The same for a host elsewhere: it may restart, or its server be down, without a new token."""
SUPERSEDED_SECONDS = 60.0
"""How long a server's own host that was replaced may still use its token, unless it plays a run."""
SHORTEST_HOST_KEY, LONGEST_HOST_KEY = 32, 200
SEEN_EVERY_SECONDS = 60.0
"""How precisely the last use of a token is recorded."""
HOST_CONTACT_SECONDS = 3 * SEEN_EVERY_SECONDS
"""A host that was silent for this long is not counted on."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The user who makes a request, and what their token allows."""

    user: str
    """The user; for a run's token, the user who started the run. Empty for a token without a user."""
    is_admin: bool = False
    """An admin of the server, using a token with admin scope."""
    teams: dict[str, str] = {}
    """The user's teams, and their role in each."""
    scopes: frozenset[Scope] = frozenset()
    token_id: str = ""
    kind: str = "user"
    """`user`, `run`, `host`, `delegate`: a host's stand-in for one attempt, or `first`: an admin's token for
    their first login."""
    run_id: str | None = None
    attempt: int | None = None
    expires_at: float | None = None
    last_used_at: float | None = None
    """To the minute."""
    is_bound: bool = False
    """For a host's token: whether it is bound to a host's key."""
    session_id: str = ""
    """For a browser: the session that stands for the token."""
    session_expires_at: float | None = None
    address: str = ""
    """For an anonymous caller: where the request comes from."""

    @property
    def is_anonymous(self) -> bool:
        return not self.token_id

    def need(self, scope: Scope) -> None:
        """Refuse callers whose token lacks a scope."""
        if self.is_anonymous:
            raise UnauthenticatedError("This needs a token; log in with `proctor login`.")
        if self.kind == "first":
            raise ForbiddenError(
                "This token is for the first login only; run `proctor login` with it, or exchange it with "
                "POST /tokens, and use the token you get.",
                code="first_login_only",
            )
        if scope not in self.scopes:
            raise ForbiddenError(
                f"This token lacks the scope {scope!r}; create one that has it.",
                code="missing_scope",
                scope=scope,
            )

    def need_admin(self) -> None:
        if not self.is_anonymous and not self.is_admin:
            raise ForbiddenError("Only admins of the server may do this.")
        self.need("admin")


ANONYMOUS = Caller(user="")


class CreatedToken(msgspec.Struct, frozen=True):
    """A token that was just created; its secret is shown only once."""

    token: Token
    secret: str


def make_token(
    connection: Connection,
    *,
    kind: str = "user",
    user: str | None,
    name: str = "",
    scopes: Sequence[Scope],
    expires_at: float | None,
    run_id: str | None = None,
    attempt: int | None = None,
    host_key: str | None = None,
) -> CreatedToken:
    id_, secret, now = new_id("tok").removeprefix("tok-"), secrets.token_urlsafe(32), time.time()
    row = {
        "id": id_,
        "kind": kind,
        "secret_hash": hash_secret(secret),
        "user": user,
        "run_id": run_id,
        "attempt": attempt,
        "name": name,
        "scopes": list(scopes),
        "created_at": now,
        "expires_at": expires_at,
        "host_key_hash": None if host_key is None else hash_secret(host_key),
    }
    connection.execute(insert(tokens).values(row))
    made = Token(id=id_, name=name, scopes=list(scopes), created_at=now, expires_at=expires_at)
    return CreatedToken(made, f"{PREFIX}{id_}_{secret}")


def resolve_caller(connection: Connection, word: str, host_key: str = "") -> Caller:
    """The caller of a token; raises if it is no longer valid, or belongs to another host."""
    id_, _, secret = word.removeprefix(PREFIX).partition("_")
    row = connection.execute(known_tokens([id_])).one_or_none()
    if (
        not word.startswith(PREFIX)
        or row is None
        or not hmac.compare_digest(row.secret_hash, hash_secret(secret))
    ):
        raise unknown()
    if row.kind == "host":
        check_host(row.host_key_hash, host_key)
    return caller_in_row(row, find_team_roles(connection, row.user))


def check_host(bound_to: bytes | None, host_key: str) -> None:
    if not SHORTEST_HOST_KEY <= len(host_key) <= LONGEST_HOST_KEY:
        raise UnauthenticatedError(
            f"A host's token is valid only together with the host's key in {HOST_KEY_HEADER}.",
            code="host_key_missing",
        )
    if bound_to is not None and not hmac.compare_digest(bound_to, hash_secret(host_key)):
        raise UnauthenticatedError(
            "This token belongs to another host; an admin creates one for each host with "
            "`proctor token create --host NAME`.",
            code="other_host",
        )


def bind_host(connection: Connection, token_id: str, host_key: str) -> None:
    """A host's token binds to the first host that uses it; of two at the same moment, to one."""
    unbound = (tokens.c.id == token_id) & tokens.c.host_key_hash.is_(None)
    connection.execute(update(tokens).where(unbound).values(host_key_hash=hash_secret(host_key)))
    bound_to = select(tokens.c.host_key_hash).where(tokens.c.id == token_id)
    check_host(connection.execute(bound_to).scalar_one(), host_key)


def silent_seconds(name: str) -> float:
    return OWN_HOST_SILENT_SECONDS if name.startswith(OWN_HOST) else HOST_SILENT_SECONDS


def known_tokens(token_ids: Sequence[str]) -> Select[Any]:
    """Tokens, with everything that decides whether they are still valid."""
    return (
        select(
            tokens,
            users.c.is_admin,
            users.c.disabled_at,
            runs.c.status,
            runs.c.attempt.label("now"),
            runs.c.team,
        )
        .join(users, users.c.name == tokens.c.user, isouter=True)
        .join(runs, runs.c.id == tokens.c.run_id, isouter=True)
        .where(tokens.c.id.in_(token_ids))
    )


def caller_in_row(row: Row[Any] | None, teams: dict[str, str]) -> Caller:
    if row is None:
        raise unknown()
    check_token_valid(row)
    may_spend = row.team is None or row.team in teams or row.is_admin
    return Caller(
        user=row.user or "",
        is_admin=bool(row.is_admin) and row.kind == "user" and "admin" in row.scopes,
        teams=teams,
        # A run may still report, but no longer spend the money of a team that its owner has left.
        scopes=frozenset(row.scopes) if may_spend and row.kind != "first" else frozenset(),
        token_id=row.id,
        kind=row.kind,
        run_id=row.run_id,
        attempt=row.attempt,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        is_bound=row.host_key_hash is not None,
    )


def unknown() -> UnauthenticatedError:
    return UnauthenticatedError("The server does not know this token; log in again with `proctor login`.")


def find_user_caller(connection: Connection, user: str) -> Caller:
    """A user as if they had sent a token of their own, to check their permissions."""
    row = connection.execute(select(users).where(users.c.name == user)).one()
    return Caller(
        user=user,
        is_admin=row.is_admin,
        teams=find_team_roles(connection, user),
        scopes=frozenset(default_scopes(row.is_admin)),
        token_id="none",
    )


def find_team_roles(connection: Connection, user: str | None) -> dict[str, str]:
    query = select(members.c.team, members.c.role).where(members.c.user == user)
    return {each.team: each.role for each in connection.execute(query)}


def check_token_valid(row: Row[Any]) -> None:
    if row.revoked_at is not None and row.kind == "first":
        raise UnauthenticatedError(
            "This token was for the first login only, and was used; the operator creates another with "
            "`proctor server admin-token`.",
            code="token_revoked",
        )
    if row.revoked_at is not None:
        raise UnauthenticatedError("This token was revoked.", code="token_revoked")
    if row.expires_at is not None and row.expires_at < time.time():
        raise UnauthenticatedError("This token has expired; create a new one.", code="token_expired")
    if row.disabled_at is not None:
        raise UnauthenticatedError("This user was disabled.", code="user_disabled")
    if row.kind in OF_ATTEMPTS and (row.status not in ACTIVE or row.now != row.attempt):
        raise UnauthenticatedError("The run of this token is over.", code="run_over")


def is_use_unrecorded(caller: Caller, now: float) -> bool:
    """Whether it is time to record a token's use; that of an attempt's is never recorded."""
    return caller.kind not in OF_ATTEMPTS and (caller.last_used_at or 0.0) < now - SEEN_EVERY_SECONDS


def record_token_use(connection: Connection, token_id: str, at: float) -> None:
    """Record a token's use, which extends a host's."""
    query = select(tokens).where(tokens.c.id == token_id)
    row = connection.execute(query).one_or_none()
    values = {"last_used_at": at}
    if row is not None and row.kind == "host" and not is_superseded(connection, row):
        values["expires_at"] = at + silent_seconds(row.name)
    connection.execute(update(tokens).where(tokens.c.id == token_id).values(values))


def is_superseded(connection: Connection, row: Row[Any]) -> bool:
    """Whether a token is of a server's own host that was replaced since, and has no run left to end."""
    if not row.name.startswith(OWN_HOST):
        return False
    newer = select(tokens.c.id).where(
        tokens.c.kind == "host", tokens.c.name == row.name, tokens.c.created_at > row.created_at
    )
    return connection.execute(newer.limit(1)).first() is not None and not plays(connection, row.id)


def plays(connection: Connection, token_id: str) -> bool:
    """Whether the host of this token has a run."""
    held = runs.c.host.endswith(f"@{token_id}", autoescape=True) & runs.c.status.in_(ACTIVE)
    return connection.execute(select(runs.c.id).where(held).limit(1)).first() is not None


def has_host(connection: Connection, now: float) -> bool:
    """Whether a host is in contact, or the server's own is being started."""
    is_own = tokens.c.name.startswith(OWN_HOST, autoescape=True)
    seen_at = case(
        (is_own, func.coalesce(tokens.c.last_used_at, tokens.c.created_at)), else_=tokens.c.last_used_at
    )
    recent = seen_at > now - HOST_CONTACT_SECONDS
    alive = select(tokens.c.id).where(tokens.c.kind == "host", tokens.c.revoked_at.is_(None), recent)
    return connection.execute(alive.limit(1)).first() is not None


def default_scopes(is_admin: bool) -> list[Scope]:
    return [scope for scope in SCOPES if scope != "admin" or is_admin]


def hash_secret(secret: str) -> bytes:
    """Plain SHA-256: the secrets are random, so there is nothing to guess and no need to be slow."""
    return hashlib.sha256(secret.encode()).digest()
