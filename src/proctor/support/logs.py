"""Which run a line of the log belongs to, and a log file for each run.

Several runs share one process and one logger; each runs in a context of its own, which says its place.
"""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from pathlib import Path

RUN_INDEX: ContextVar[int | None] = ContextVar("place", default=None)
"""The place of the run that is being worked for, among those of this process."""

log = logging.getLogger("proctor")


class RunLogFilter(logging.Filter):
    """Writes the place of the run onto every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "run_place"):
            record.run_place = RUN_INDEX.get()
        return True


log.addFilter(RunLogFilter())


class RunLog(logging.Handler):
    """Keeps what is logged for one run in a file, which is made with its first line."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.INFO)
        self.path = path
        self.place = RUN_INDEX.get()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "run_place", None) != self.place:
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        try:
            text = self.format(record)
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(f"{stamp} {record.levelname} {text}\n")
        except OSError:
            return  # a full disk is told of by the results
        except Exception:  # a message that does not fit its arguments
            self.handleError(record)

    def __enter__(self) -> RunLog:
        log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        log.removeHandler(self)
