"""The log of a long-lived process: lines for people, or one JSON object a line for programs.

    {"time": "2027-01-05T09:30:00.123Z", "level": "ERROR", "logger": "proctor", "message": "…",
     "request_id": "…", "run_id": "…", "exception": "…"}

The ids are there where they are known. Knows nothing of requests or runs but that they have ids.
"""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from typing import Literal

import msgspec

from proctor.support.logs import LONGEST_ENTRY, cut_text

LogFormat = Literal["text", "json"]

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
RUN_ID: ContextVar[str] = ContextVar("run_id", default="")


class JsonFormatter(logging.Formatter):
    """One object a line, whatever a message holds."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{stamp}.{int(record.created % 1 * 1000):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": cut_text(record.getMessage(), LONGEST_ENTRY),
        }
        optional = {"request_id": REQUEST_ID.get(), "run_id": RUN_ID.get()}
        if record.exc_info:
            optional["exception"] = cut_text(self.formatException(record.exc_info), LONGEST_ENTRY)
        line |= {name: value for name, value in optional.items() if value}
        return msgspec.json.encode({name: make_valid(text) for name, text in line.items()}).decode()


def make_valid(text: str) -> str:
    """Without halves of surrogate pairs, which no encoder takes."""
    return text.encode("utf-8", "replace").decode()


def set_up_logging(log_format: LogFormat, text_format: str) -> None:
    """Send everything from INFO on to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else logging.Formatter(text_format))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(log_format == "json")
