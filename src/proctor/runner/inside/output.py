"""Everything that a hosted run logs, as lines for its server. Knows nothing of servers."""

from __future__ import annotations

import logging
from collections.abc import Callable

from proctor.support.logs import name_source

ReportLine = Callable[[str, str], None]
"""Takes a text and a level; called from other threads."""


class LogForwarder(logging.Handler):
    """Forwards log records with their level instead of as output; a traceback is several lines."""

    def __init__(self, report_line: ReportLine) -> None:
        super().__init__(logging.INFO)
        self._forward = report_line

    def emit(self, record: logging.LogRecord) -> None:
        try:
            for line in (name_source(record) + self.format(record)).splitlines():
                self._forward(line, record.levelname)
        except Exception:  # a message that does not match its arguments
            self.handleError(record)
