"""What every part of the API has in common: pages, errors, names.

Knows nothing of HTTP.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, Generic, TypeVar

import msgspec

BASE = "/api/v1"
IDEMPOTENCY_HEADER = "Idempotency-Key"
HOST_KEY_HEADER = "Proctor-Host-Key"
"""By which the one host is known that a host's token is good for."""
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?")
"""Names of people, teams and environments: they stand in addresses and in folders."""

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Part of a list; the rest is asked for with `?cursor=`."""

    items: list[T]
    next_cursor: str | None = None
    """None on the last page."""


class Problem(msgspec.Struct, frozen=True):
    """Why a request was refused. Every answer of status 400 and above is one."""

    code: str
    """One word for programs; it does not change."""
    message: str
    """One sentence for people: what, where, what to do next."""
    details: dict[str, Any] = {}


def new_id(kind: str) -> str:
    """A name nobody can guess or confuse: `run-…`, `env-…`."""
    return f"{kind}-{secrets.token_hex(5)}"


def is_slug(name: str) -> bool:
    return SLUG.fullmatch(name) is not None
