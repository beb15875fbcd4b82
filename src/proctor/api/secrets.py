"""Secrets and variables in the API. Values go in and never come out."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from proctor.api.bounds import Name, Paragraph, VariableName, VariableValue

NAME = re.compile(r"[A-Z][A-Z0-9_]{0,254}")
LONGEST_VALUE = 64 * 1024
RESERVED = frozenset(
    {
        "ALL_PROXY",
        "BASH_ENV",
        "ENV",
        "GLIBC_TUNABLES",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "IFS",
        "LANG",
        "LOGNAME",
        "NO_PROXY",
        "OPENSSL_CONF",
        "PATH",
        "PWD",
        "REQUESTS_CA_BUNDLE",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "USER",
        "VIRTUAL_ENV",
    }
)
RESERVED_BEGINNINGS = ("DYLD_", "LC_", "LD_", "MALLOC_", "PIP_", "PROCTOR_", "PYTHON", "UV_", "XDG_")
"""Variables that change how the process of a run itself works."""

SecretKind = Literal["global", "linked", "environment", "variable"]


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: SecretKind
    owner: str | None = None
    """For a global one: its user or team."""
    environment: str | None = None
    description: str = ""
    value: str | None = None
    """For a variable, which is not secret."""
    linked_to: list[str] = []
    """For a global one: the environments it is linked to."""
    is_active: bool = True
    """For a linked one: its owner may still change the environment, so that it reaches runs."""
    created_at: float
    updated_at: float


class RunSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret or a variable as a run of yours would find it, by its name."""

    name: str
    origin: Literal["run", "environment", "linked", "variable"] | None = None
    """The run's own, the environment's, one linked to it, or a variable, which is not secret; None if nothing
    provides it, or if you may not know."""
    owner: str = ""
    """Of a linked one."""
    declared: bool = False
    """The version says that it needs it."""
    reaches: bool = True
    """The run will have it."""
    why: str
    """Why it will, or why not and what to do, as a sentence."""


class NewSecret(msgspec.Struct, frozen=True, kw_only=True):
    name: VariableName
    value: VariableValue
    description: Paragraph = ""
    team: Name | None = None
    """For a global one: its team; None for yourself."""


class NewVariable(msgspec.Struct, frozen=True, kw_only=True):
    name: VariableName
    value: VariableValue


class SecretChange(msgspec.Struct, frozen=True, kw_only=True):
    """What to change; None leaves it as it is."""

    value: VariableValue | None = None
    description: Paragraph | None = None


class VariableChange(msgspec.Struct, frozen=True, kw_only=True):
    value: VariableValue


def problem_with_name(name: str) -> str | None:
    """Why no run can have a variable of that name, as a sentence."""
    if NAME.fullmatch(name) is None:
        return (
            f"{name!r} cannot be the name of a secret; use capital letters, digits and underscores, "
            f"a letter first."
        )
    if name in RESERVED or name.startswith(RESERVED_BEGINNINGS):
        return f"{name!r} would change how the run itself works; choose another name."
    return None


def problem_with_value(name: str, value: str) -> str | None:
    """Why a value cannot be stored, as a sentence that does not repeat it."""
    if len(value.encode(errors="replace")) > LONGEST_VALUE:
        return f"The value of {name} is longer than {LONGEST_VALUE // 1024} KB; keep it elsewhere."
    if "\0" in value:
        return f"The value of {name} holds a zero byte, which no variable can; encode it, say as base64."
    return None
