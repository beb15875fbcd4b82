"""What was logged during a run: received, kept, and scrolled through. Knows nothing of how it is drawn."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from itertools import islice

from proctor.cli.views.escape import one_line
from proctor.events import LogLine
from proctor.support.logs import name_source, run_index

KEPT_LINES = 200


class LogTap(logging.Handler):
    """Hands on what a logger lets through, and whose it is: `extra={"run_index": 2}` says run number 2."""

    def __init__(self, take: Callable[[LogLine, int | None], None]) -> None:
        super().__init__()
        self._take = take
        is_verbose = logging.getLogger().level == logging.DEBUG
        self._least = logging.INFO if is_verbose else logging.WARNING
        """Of other loggers than ours; the run's log has everything."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "file_only", False):
            return
        source = name_source(record)
        if source and record.levelno < self._least:
            return
        try:
            text = source + record.getMessage()
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                text = f"{text}: {type(error).__name__}: {error}"
            index = run_index(record)
            line = LogLine(record.levelname, text, record.created)
            self._take(line, index if isinstance(index, int) else None)
        except Exception:
            self.handleError(record)


class LogBuffer:
    """The last lines of a run, safe to print, and how far the user has scrolled back in them."""

    def __init__(self) -> None:
        self.behind = 0
        """Lines that are newer than the last one shown."""
        self._lines: deque[LogLine] = deque(maxlen=KEPT_LINES)

    def take(self, line: LogLine) -> None:
        self._lines.append(LogLine(one_line(line.level), one_line(line.text), line.at))
        if self.behind:  # older lines are being read and must not move
            self.behind += 1

    def scroll(self, lines: int) -> None:
        """Back for more than 0, forward for less."""
        self.behind = max(0, min(self.behind + lines, len(self._lines) - 1))

    def visible_lines(self, most: int) -> list[LogLine]:
        self.behind = max(0, min(self.behind, len(self._lines) - most))
        end = len(self._lines) - self.behind
        return list(islice(self._lines, max(0, end - most), end))
