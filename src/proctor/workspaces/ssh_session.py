"""One ssh session over a workspace: a command, a shell at a terminal, or SFTP, all inside the sandbox.

Knows nothing of keys, users or connections.
"""

from __future__ import annotations

import asyncio
import fcntl
import inspect
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from proctor.errors import EnvError
from proctor.isolation.sandbox import wait_until_readable
from proctor.isolation.streams import Streams
from proctor.workspaces import sftp_inside
from proctor.workspaces.folder import RolloutFolder
from proctor.workspaces.ssh import asyncssh
from proctor.workspaces.tools import SHELL

CHUNK_BYTES = 65_536
INTERRUPTED = 130
TARGET_FIRST = ("openssh", "paramiko")
"""Clients that send a new link's path after its target; the standard wants it first."""
SENDING_SECONDS = 60.0
FULL_SECONDS = 0.02
AT_TERMINAL = "if command -v bash > /dev/null; then exec bash; else exec sh; fi"

Process = asyncssh.SSHServerProcess[bytes]


def session_command(process: Process, folder: RolloutFolder) -> list[str]:
    if process.subsystem == "sftp":
        is_walled = folder.spec.isolation == "bwrap"
        python = "python3" if is_walled else sys.executable
        client = str(process.get_extra_info("client_version")).lower()
        order = "target-first" if any(name in client for name in TARGET_FIRST) else "link-first"
        return [python, "-IS", "-c", inspect.getsource(sftp_inside), order]
    if process.subsystem is not None:
        raise EnvError(f"there is no subsystem {process.subsystem!r} here")
    if process.command is None:
        return ["sh", "-c", AT_TERMINAL]
    return ["sh", "-c", SHELL, "sh", process.command]


async def serve_session(process: Process, folder: RolloutFolder, words: Sequence[str]) -> int:
    """Run one session's command until it ends or its client disconnects; returns its exit code."""
    if process.term_type is None:
        piped = Streams(subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
        async with folder.start_command(words, piped, {}) as started:
            local = started.process
            assert local.stdin
            assert local.stdout
            assert local.stderr
            outputs = [pump(local.stdout, process.stdout), pump(local.stderr, process.stderr)]
            return await wait_for_exit(process, started.wait(), feed(process, local.stdin), outputs)
    with Terminal.open(process.term_size) as (terminal, device):
        folder.lend(device)
        words, drawn = ["setsid", "-cw", *words], Streams(device, device, device)
        variables = {"TERM": process.term_type, "HISTFILE": "/dev/null"}
        async with folder.start_command(words, drawn, variables) as started:
            os.close(device)
            outputs = [pump(terminal, process.stdout)]
            return await wait_for_exit(process, started.wait(), feed(process, terminal), outputs)


async def wait_for_exit(
    process: Process,
    ending: Coroutine[Any, Any, int],
    feeding: Coroutine[Any, Any, bool],
    outputs: Sequence[Coroutine[Any, Any, None]],
) -> int:
    """The exit code, once all output has been sent."""
    ended, fed = asyncio.create_task(ending), asyncio.create_task(feeding)
    gone = asyncio.create_task(process.wait_closed())
    sending = {asyncio.create_task(output) for output in outputs}
    try:
        await asyncio.wait({ended, fed, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done() and fed.done() and fed.result():
            return INTERRUPTED
        await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            raise ConnectionResetError("the client has left")
        await asyncio.wait(sending, timeout=SENDING_SECONDS)
        return ended.result()
    finally:
        for task in (ended, fed, gone, *sending):
            task.cancel()
        await asyncio.gather(ended, fed, gone, *sending, return_exceptions=True)


async def pump(source: Readable, target: asyncssh.SSHWriter[bytes]) -> None:
    while chunk := await source.read(CHUNK_BYTES):
        target.write(chunk)
        await target.drain()


async def feed(process: Process, target: Writable) -> bool:
    """Pass on the client's input to its end; returns whether it asked to terminate instead."""
    while True:
        try:
            chunk = await process.stdin.read(CHUNK_BYTES)
            if not chunk:
                target.close()
                return False
            target.write(chunk)
            await target.drain()
        except asyncssh.TerminalSizeChanged as changed:
            if isinstance(target, Terminal):
                target.resize((changed.width, changed.height, 0, 0))
        except (asyncssh.SignalReceived, asyncssh.BreakReceived):
            return True
        except (OSError, asyncssh.Error):  # it no longer reads; its output still counts
            return False


class Readable(Protocol):
    async def read(self, size: int, /) -> bytes: ...


class Writable(Protocol):
    def write(self, chunk: bytes, /) -> None: ...
    async def drain(self) -> None: ...
    def close(self) -> None: ...


class Terminal:
    """Our end of a command's terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unsent = b""

    @classmethod
    @contextmanager
    def open(cls, size: Sequence[int]) -> Iterator[tuple[Terminal, int]]:
        """A terminal, and the device for the command, which the caller must close."""
        ours, device = os.openpty()
        os.set_blocking(ours, False)
        terminal = cls(ours)
        terminal.resize(size)
        try:
            yield terminal, device
        finally:
            os.close(ours)

    def resize(self, size: Sequence[int]) -> None:
        columns, rows, *_ = size
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def read(self, size: int) -> bytes:
        await wait_until_readable(self._descriptor)
        try:
            return os.read(self._descriptor, size)
        except OSError:  # the command's end is closed
            return b""

    def write(self, chunk: bytes) -> None:
        self._unsent += chunk

    async def drain(self) -> None:
        while self._unsent:
            try:
                self._unsent = self._unsent[os.write(self._descriptor, self._unsent) :]
            except BlockingIOError:
                await asyncio.sleep(FULL_SECONDS)

    def close(self) -> None:
        """A client that sends nothing more may still want to read."""
