"""What a command is handed beside its words: bytes to read, and a gate that is shut when we are gone.

Knows nothing of commands.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def input_descriptor(text: bytes) -> Iterator[int]:
    """A descriptor to read these bytes from; a command that does not read them keeps nobody waiting."""
    if not text:
        yield subprocess.DEVNULL
        return
    descriptor = os.memfd_create("given")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(text)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


class StartBarrier:
    """A folder with two FIFOs: at one a command says that it waits, at the other it gets the word to go on.
    Who waits there is turned away when this process is gone."""

    def __init__(self, within: Path) -> None:
        self.folder = within / f"gate-{secrets.token_hex(8)}"
        self.folder.mkdir(0o711)
        self._open: list[int] = []
        try:
            self.ready, self._go = self._fifo("ready"), self._fifo("go")
        except BaseException:
            self.close()
            raise

    def _fifo(self, name: str) -> int:
        os.mkfifo(self.folder / name, 0o600)
        self._open.append(os.open(self.folder / name, os.O_RDWR | os.O_NONBLOCK))
        return self._open[-1]

    def go(self) -> None:
        os.write(self._go, b"\n")

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        for name in ("ready", "go"):
            (self.folder / name).unlink(missing_ok=True)
        self.folder.rmdir()
