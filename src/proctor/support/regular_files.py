"""Open files of folders that others have filled: only regular ones, and without ever waiting.

Opening a named pipe waits for somebody to write to it; a device may have no end. Knows nothing of what the
files are.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST_BYTES = 256 * 2**20
OPEN_REGULAR = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: Path) -> int:
    """A descriptor to read from; OSError if the path leads to anything but a regular file."""
    file = os.open(path, OPEN_REGULAR)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path) -> bytes:
    """A whole file; OSError if it is larger than any that is read at once."""
    with os.fdopen(open_regular(path), "rb") as file:
        if os.fstat(file.fileno()).st_size > LARGEST_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return file.read()
