"""What every kind of sandbox can do, whatever isolates it.

Knows nothing of runs, of HTTP or of the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from proctor.contracts import CommandResult


class SandboxSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox consists of, and what it may use."""

    memory_mb: int
    processes: int
    disk_mb: int
    image: str | None = None


class ServedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A command that listens on a port, and what must be visible to it."""

    command: Sequence[str]
    port: int
    variables: Mapping[str, str] = {}
    mounts: Sequence[str] = ()
    """Paths on this machine, mounted read-only."""


class PipedCommand(Protocol):
    """A command whose input is written and whose output is read while it runs."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    async def wait(self) -> int: ...


class BackendSandbox(Protocol):
    """One sandbox, until it is closed."""

    async def run(
        self, command: Sequence[str], *, stdin: bytes, variables: Mapping[str, str], seconds: float
    ) -> CommandResult: ...

    def open_command(self, command: Sequence[str]) -> AbstractAsyncContextManager[PipedCommand]:
        """A command that runs at most as long as the block."""

    async def serve(self, program: ServedProgram) -> Path:
        """Start a program; once it listens, returns a Unix socket on this machine that leads to its port."""

    async def describe_exit(self) -> str | None:
        """Why the program ended; None while it runs."""

    async def used_bytes(self) -> int:
        """What it occupies on disk."""

    def close(self) -> Coroutine[Any, Any, None]:
        """End everything that runs there, and remove it; nothing is left when this returns."""


class Backend(Protocol):
    """Creates sandboxes."""

    async def check(self) -> None:
        """Raise a ConfigError if this machine cannot create such sandboxes."""

    def open(self, spec: SandboxSpec) -> Coroutine[Any, Any, BackendSandbox]: ...

    async def clear(self) -> None:
        """Remove what a killed server has left."""
