"""What the process prints, by whatever way, becomes log lines; the host still sees it, for last words.

Knows nothing of servers.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Callable

Say = Callable[[str, str], None]
"""Takes a text and a level; called from other threads."""


class Printed:
    """Stdout and stderr of this process, line by line."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._original = os.dup(2)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True)  # what is printed is told when it is printed
        reading, writing = os.pipe()
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.close(writing)
        self._thread = threading.Thread(target=self._read, args=(reading,), daemon=True)
        self._thread.start()

    def _read(self, descriptor: int) -> None:
        with open(descriptor, "rb") as stream:
            for raw in stream:
                os.write(self._original, raw)
                text = raw.decode(errors="replace").rstrip("\r\n")
                if text.strip():
                    self._say(text, "PRINT")

    def close(self) -> None:
        """Nothing is printed any more: read to the end."""
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(self._original, 1)
        os.dup2(self._original, 2)
        self._thread.join(2.0)


class Logged(logging.Handler):
    """What is logged, told by level rather than as print."""

    def __init__(self, say: Say) -> None:
        super().__init__(logging.INFO)
        self._tell = say

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._tell(self.format(record), record.levelname)
        except Exception:  # a message that does not fit its arguments
            self.handleError(record)
