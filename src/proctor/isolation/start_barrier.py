"""A barrier that holds a sandboxed command back until its parent is certain to outlive the start.

Knows nothing of commands.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path


class StartBarrier:
    """A folder with two FIFOs: the command announces on `ready` that it waits, and starts once it reads from
    `go`. If this process is gone, the command exits instead."""

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
