"""What all parts of the API share: pages, errors, names.

Knows nothing of HTTP.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, Generic, TypeVar

import msgspec

BASE = "/api/v1"
DATABASE_AWAY = "The server's database does not answer; try again in a moment."
"""The answer to requests that waited for it in vain: a run tells it from a provider's failure, and waits."""
LINK_HEADER = "proctor-link"
"""The link by which a run was shared, instead of the query parameter `link`."""
SCHEMA_PAGE = f"{BASE}/schema"
PROBLEM_TYPE = "application/problem+json"
IDEMPOTENCY_HEADER = "Idempotency-Key"
HOST_KEY_HEADER = "Proctor-Host-Key"
"""Identifies the one host that a host's token is valid for."""
REDIRECT_HEADER = "Proctor-Redirect"
"""Sent by clients that follow a redirect to where a large file is."""
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?")
"""Names of users, teams and environments: they are part of addresses and folders."""

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Part of a list; request the rest with `?cursor=`."""

    items: list[T]
    next_cursor: str | None = None
    """None on the last page."""


class Problem(msgspec.Struct, frozen=True):
    """Why a request was refused, as RFC 9457 has it, with `code`, `message` and `details` beside its members.
    Every answer of status 400 and above is one."""

    code: str
    """One word for programs; it never changes."""
    message: str
    """One or two sentences for people: what is wrong, where, and what to do next."""
    details: dict[str, Any] = {}
    """What belongs to the code, such as the `field` that is wrong."""
    type: str = "about:blank"
    """The place in this server's documentation that explains the code."""
    title: str = ""
    """The code in words."""
    status: int = 0
    """The HTTP status, again."""
    detail: str = ""
    """The message, again."""


def complete_problem(problem: Problem, status: int) -> Problem:
    """A problem with the members that follow from its code and status."""
    return msgspec.structs.replace(
        problem,
        type=f"{SCHEMA_PAGE}#{problem.code}",
        title=problem.code.replace("_", " ").capitalize(),
        status=status,
        detail=problem.message,
    )


def new_id(kind: str) -> str:
    """An id that cannot be guessed or confused: `run-…`, `env-…`."""
    return f"{kind}-{secrets.token_hex(5)}"


def is_slug(name: str) -> bool:
    return SLUG.fullmatch(name) is not None
