"""The standard streams of a command. Knows nothing of commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Streams(NamedTuple):
    """Where a command reads and writes: file descriptors, or constants of `subprocess`."""

    stdin: int
    stdout: int
    stderr: int


@contextmanager
def input_descriptor(text: bytes) -> Iterator[int]:
    """A file descriptor to read these bytes from; a command that does not read them blocks nothing."""
    if not text:
        yield subprocess.DEVNULL
        return
    descriptor = os.memfd_create("stdin")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(text)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
