"""How a command-line agent program ended, wherever it ran."""

from __future__ import annotations

import msgspec

KEPT_OUTPUT = 200_000
KEPT_ERRORS = 4_000
"""Bytes that are kept of what is printed: the last ones."""


class ProgramResult(msgspec.Struct, frozen=True):
    """What is left of a program that has ended."""

    code: int
    stdout: str
    stderr: str
    file: str | None = None
    """What stands in the file where its answer was to be, if it is there."""
