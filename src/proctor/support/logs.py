"""Which run a log line belongs to, and a log file for each run.

Several runs share one process, its loggers and its output; each runs in a context of its own, which holds its
index. What cannot be attributed, such as the output of a child process, goes to the log of every run.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from proctor.support.output_capture import drain_output

RUN_INDEX: ContextVar[int | None] = ContextVar("index", default=None)
"""The index of the current run among those of this process."""
FILE_ONLY = {"file_only": True}
"""As `extra` of a record: for the run's log; a display shows the same in its own way."""
PRINTED = "PRINT"
"""The level of what was printed rather than logged."""
LONGEST_ENTRY = 50_000
"""Characters of one entry: an environment may log any value."""
KEPT_EARLY = 1_000
"""Lines that are kept until the log of their run is opened."""

log = logging.getLogger("proctor")


@contextmanager
def run_context(index: int) -> Iterator[None]:
    """While the block runs, what is logged and printed belongs to this run."""
    token = RUN_INDEX.set(index)
    try:
        yield
    finally:
        RUN_INDEX.reset(token)


def run_index(record: logging.LogRecord) -> int | None:
    """The run that a record belongs to; call it where the record was made."""
    return getattr(record, "run_index", RUN_INDEX.get())


class RunLog(logging.Handler):
    """Writes what is logged and printed during one run to a file; removed again if it stays empty."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.index = RUN_INDEX.get()
        self._crash_file: int | None = None

    def is_of(self, index: int | None) -> bool:
        """Whether a line of the run with this index belongs here."""
        return index is None or self.index is None or index == self.index

    def emit(self, record: logging.LogRecord) -> None:
        if not self.is_of(run_index(record)):
            return
        try:
            self.write(record.levelname, name_source(record) + self.format(record), record.created)
        except Exception:  # a message that does not fit its arguments
            self.handleError(record)

    def write(self, level: str, text: str, at: float) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        with suppress(OSError), self.path.open("a", encoding="utf-8", errors="replace") as file:
            # a full disk is reported when the results are written
            file.write(f"{stamp} {level} {cut_text(text, LONGEST_ENTRY)}\n")

    def __enter__(self) -> RunLog:
        logging.getLogger().addHandler(self)
        _open_logs.append(self)
        for level, text, at in _early.pop(self.index, ()):
            self.write(level, text, at)
        self._keep_crashes()
        return self

    def __exit__(self, *_: object) -> None:
        drain_output()  # a child process of the last rollout may have printed just now
        logging.getLogger().removeHandler(self)
        _open_logs.remove(self)
        if self._crash_file is not None:
            faulthandler.disable()
            os.close(self._crash_file)
            self._crash_file = None
            for other in _open_logs[:1]:
                other._keep_crashes()
        with suppress(OSError):
            if not self.path.stat().st_size:
                self.path.unlink()

    def _keep_crashes(self) -> None:
        """Have a crash of this process leave its stack here, unless it goes elsewhere already."""
        if faulthandler.is_enabled():
            return
        with suppress(OSError):
            self._crash_file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            faulthandler.enable(self._crash_file)


_open_logs: list[RunLog] = []
_early: dict[int | None, deque[tuple[str, str, float]]] = defaultdict(lambda: deque(maxlen=KEPT_EARLY))
_lock = threading.RLock()  # a finalizer may print while a line is written


def log_printed(text: str) -> None:
    """Note a line that was printed in the current context, for the log of its run; never through a logger,
    whose handler might print again."""
    index, at = RUN_INDEX.get(), time.time()
    with _lock:
        logs = [each for each in _open_logs if each.is_of(index)]
        for each in logs:
            each.write(PRINTED, text, at)
        if not logs:
            _early[index].append((PRINTED, text, at))


def name_source(record: logging.LogRecord) -> str:
    """Who logged it, unless we did."""
    return "" if record.name.partition(".")[0] == log.name else f"{record.name}: "


def cut_text(text: str, most: int) -> str:
    """The beginning of a long text, and a mark of how much was cut."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters cut)"
