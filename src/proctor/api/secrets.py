"""Secrets and variables, as the API takes them and tells of them. Values are taken and never told."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

NAME = re.compile(r"[A-Z][A-Z0-9_]{0,254}")
LONGEST_VALUE = 64 * 1024

SecretKind = Literal["global", "linked", "environment", "variable"]


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: SecretKind
    owner: str | None = None
    """Of a global one: the user or team."""
    environment: str | None = None
    description: str = ""
    value: str | None = None
    """Of a variable, which is no secret."""
    created_at: float
    updated_at: float


class NewSecret(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    value: str
    description: str = ""
    team: str | None = None
    """Of a global one: the team it is for; None: oneself."""
