"""Which run a log line belongs to, and a log file for each run.

Several runs share one process and one logger; each runs in a context of its own, which holds its index.
"""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from pathlib import Path

RUN_INDEX: ContextVar[int | None] = ContextVar("index", default=None)
"""The index of the current run among those of this process."""

log = logging.getLogger("proctor")


class RunLogFilter(logging.Filter):
    """Adds the run's index to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "run_index"):
            record.run_index = RUN_INDEX.get()
        return True


log.addFilter(RunLogFilter())


class RunLog(logging.Handler):
    """Writes the log of one run to a file, created with its first line."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.INFO)
        self.path = path
        self.index = RUN_INDEX.get()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "run_index", None) != self.index:
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        try:
            text = self.format(record)
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(f"{stamp} {record.levelname} {text}\n")
        except OSError:
            return  # a full disk is reported when the results are written
        except Exception:  # a message that does not fit its arguments
            self.handleError(record)

    def __enter__(self) -> RunLog:
        log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        log.removeHandler(self)
