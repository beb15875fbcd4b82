"""A browser's login in the API: a session, and the one-time codes that open one."""

from __future__ import annotations

import msgspec

from proctor.api.bounds import Name
from proctor.api.people import Membership, Scope, User

LOGIN_PAGE = "/login"
CODE_FRAGMENT = "code="
"""Before the code in a one-time link. Browsers never send fragments, so the code is in no server's log."""


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """Log in a browser with one of the two."""

    token: Name | None = None
    """A user's token."""
    code: Name | None = None
    """The code of a one-time link."""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who is logged in, and what they may do."""

    user: User | None = None
    """None: not logged in."""
    is_over: bool = False
    """Whether the browser's session has ended or expired. The answer removes its cookie, so only this one can
    say so."""
    teams: list[Membership] = []
    scopes: list[Scope] = []
    """Those of the token that the session was opened with."""
    expires_at: float | None = None
    """When the session ends by itself."""
    server_version: str
    has_logins: bool = True
    """Whether there are users at all; `proctor view` has none."""


class LoginCode(msgspec.Struct, frozen=True, kw_only=True):
    """A code that logs in one browser, once."""

    code: str
    url: str
    """The link that does so when it is opened."""
    expires_at: float


class BrowserLogin(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is logged in."""

    id: str
    created_at: float
    expires_at: float
    token_id: str
    token_name: str
    """The token that it was logged in with, which ends it when it ends."""
    is_current: bool = False
    """Whether this request came from it."""


def build_login_link(server_url: str, code: str) -> str:
    return f"{server_url}{LOGIN_PAGE}#{CODE_FRAGMENT}{code}"
