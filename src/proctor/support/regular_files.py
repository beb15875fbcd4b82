"""Open files of folders that others have filled: only regular ones, and without ever waiting.

Opening a named pipe waits for somebody to write to it; a device may have no end. Knows nothing of what the
files are.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

OPEN_REGULAR = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: Path) -> int:
    """A descriptor to read from; OSError if the path leads to anything but a regular file."""
    file = os.open(path, OPEN_REGULAR)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path) -> bytes:
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read()
