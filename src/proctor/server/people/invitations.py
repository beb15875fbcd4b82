"""Logins that an admin hands over: a one-time link, or a token, for another user.

Knows nothing of HTTP.
"""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from proctor.api.people import NewToken
from proctor.server.db.tables import login_codes, tokens
from proctor.server.people import browser_sessions, records
from proctor.server.people.tokens import CreatedToken, default_scopes, find_user_caller, make_token
from proctor.server.problems import ConflictError

DAY = 86_400.0
INVITATION = "invitation"
"""Name of the token behind an invitation's link."""
LINK_SECONDS = 3 * DAY
"""How long a link can be handed over."""
TOKEN_DAYS = 90.0


def add_invitation(connection: Connection, name: str, now: float) -> str:
    """The code of a link that logs in a browser as this user, once; it replaces links that were not used."""
    check_may_log_in(connection, name)
    withdraw_unused(connection, name, now)
    user = records.find_user(connection, name)
    made = make_token(
        connection,
        user=name,
        name=INVITATION,
        scopes=default_scopes(user.is_admin),
        expires_at=now + TOKEN_DAYS * DAY,
    )
    return browser_sessions.add_code(connection, made.token.id, now, LINK_SECONDS)


def withdraw_unused(connection: Connection, name: str, now: float) -> None:
    unused = select(login_codes.c.token_id).where(login_codes.c.used_at.is_(None))
    is_invitation = (tokens.c.user == name) & (tokens.c.name == INVITATION) & tokens.c.revoked_at.is_(None)
    connection.execute(update(tokens).where(is_invitation, tokens.c.id.in_(unused)).values(revoked_at=now))


def add_token_for(connection: Connection, name: str, new: NewToken) -> CreatedToken:
    """A token of another user, with at most what that user may do."""
    check_may_log_in(connection, name)
    return records.add_token(connection, find_user_caller(connection, name), new)


def check_may_log_in(connection: Connection, name: str) -> None:
    if records.find_user(connection, name).disabled:
        raise ConflictError(f"{name!r} is suspended; reactivate them first.", code="user_disabled")
