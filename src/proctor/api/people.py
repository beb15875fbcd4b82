"""Users, teams and tokens in the API."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from proctor.api.bounds import Name

Scope = Literal[
    "environments:read",
    "environments:write",
    "runs:read",
    "runs:write",
    "secrets:write",
    "inference",
    "tokens:write",
    "admin",
]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""What a token allows. `admin` is only for tokens of an admin."""
TeamRole = Literal["admin", "member"]


class User(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    is_admin: bool = False
    created_at: float
    disabled: bool = False
    last_seen_at: float | None = None
    """When a token of theirs was last used, to the minute; only in the list of users."""


class NewUser(msgspec.Struct, frozen=True, kw_only=True):
    name: Name
    is_admin: bool = False


class UserWithToken(msgspec.Struct, frozen=True, kw_only=True):
    """A user who was just created, with a token to hand over, which is shown only once."""

    user: User
    token: str


class Team(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    created_at: float


class NewTeam(msgspec.Struct, frozen=True, kw_only=True):
    name: Name


class TeamChange(msgspec.Struct, frozen=True, kw_only=True):
    name: Name


class Member(msgspec.Struct, frozen=True, kw_only=True):
    user: Name
    role: TeamRole = "member"


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    team: str
    role: TeamRole


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token without its secret, which cannot be read again."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    name: Name = ""
    scopes: Annotated[list[Scope], Meta(max_length=20)] | None = None
    """None: everything its user may do, except `admin`."""
    expires_in_days: float | None = 90.0
    """None: valid until it is revoked."""


class TokenWithSecret(msgspec.Struct, frozen=True, kw_only=True):
    token: Token
    secret: str
    """The token to use; it is shown only once."""


class Whoami(msgspec.Struct, frozen=True, kw_only=True):
    user: User
    token: Token
    teams: list[Membership]
    server_version: str
