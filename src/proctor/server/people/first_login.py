"""The first admin's token: valid for one login, which exchanges it for an ordinary one.

It is printed and kept in a file, so that the operator can log in; a copy that is found later is worthless. An
operator who lost every token creates another one. Knows nothing of HTTP.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, select, update

from proctor.api.people import NewToken, NewUser
from proctor.server.audit.records import add_entry
from proctor.server.db.locks import Lock, lock
from proctor.server.db.tables import tokens, users
from proctor.server.people import records
from proctor.server.people.tokens import (
    PREFIX,
    Caller,
    CreatedToken,
    default_scopes,
    find_user_caller,
    make_token,
)
from proctor.server.problems import ConflictError, UnauthenticatedError

ADMIN = "root"
TOKEN_FILE = "admin-token"
OPERATOR = Caller(user="")
"""The user in the audit log: an operator with access to the server's machine."""


def add_first_admin(connection: Connection) -> str | None:
    """Create the first admin and a token for their first login, if there are no users yet."""
    lock(connection, Lock.FIRST_START)
    if records.has_users(connection):
        return None
    records.add_user(connection, NewUser(name=ADMIN, is_admin=True))
    return new_login(connection)


def new_login(connection: Connection) -> str:
    """A token for one login of the admin, which replaces unused ones."""
    admin = connection.execute(select(users).where(users.c.name == ADMIN)).one_or_none()
    if admin is None or not admin.is_admin or admin.disabled_at is not None:
        raise ConflictError(f"The admin {ADMIN!r} does not exist or is disabled.", code="no_admin")
    unused = (tokens.c.kind == "first") & tokens.c.revoked_at.is_(None)
    connection.execute(update(tokens).where(unused).values(revoked_at=time.time()))
    made = make_token(
        connection, kind="first", user=ADMIN, name="first login", scopes=default_scopes(True), expires_at=None
    )
    add_entry(connection, OPERATOR, "token.add", ADMIN, details={"name": made.token.name})
    return made.secret


def exchange(connection: Connection, caller: Caller, new: NewToken) -> CreatedToken:
    """Exchange the token of the first login, which becomes invalid, for an ordinary one."""
    is_unused = (tokens.c.id == caller.token_id) & tokens.c.revoked_at.is_(None)
    used = connection.execute(update(tokens).where(is_unused).values(revoked_at=time.time()))
    if not used.rowcount:  # two logins at the same moment
        raise UnauthenticatedError("This token was already used for the first login.", code="token_revoked")
    return records.add_token(connection, find_user_caller(connection, caller.user), new)


def write_token(data: Path, token: str) -> Path:
    """A file that is readable by its owner alone from the start."""
    file = data / TOKEN_FILE
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(token + "\n")
    return file


def remove_used(connection: Connection, data: Path) -> None:
    """Remove the file once its token was used, here or through another server on the database."""
    file = data / TOKEN_FILE
    with suppress(OSError):
        token_id = file.read_text().strip().removeprefix(PREFIX).partition("_")[0]
        is_unused = (tokens.c.id == token_id) & tokens.c.revoked_at.is_(None)
        if connection.execute(select(tokens.c.id).where(is_unused)).first() is None:
            file.unlink()
