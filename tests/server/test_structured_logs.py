"""Logs for programs: one JSON object a line, with the request and the run it belongs to."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from proctor.support.logs import log
from proctor.support.structured_logs import RUN_ID, JsonFormatter
from tests.server.runs import making
from tests.server.serving import Served


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a server with `--log-format json` would write."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    log.addHandler(handler)
    yield stream
    log.removeHandler(handler)


def read_lines(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_failed_request_is_found_in_the_log_by_the_id_its_answer_carries(
    served: Served, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = served.user("ada")
    database = served.platform.database
    database.write_now(making.environment)
    run_id = database.write_now(making.run)

    def break_down(*_: object, **__: object) -> None:
        raise RuntimeError("a bug\nof two lines")

    monkeypatch.setattr(served.platform.runs, "stop", break_down)
    asked = {"x-request-id": "from-a-proxy.1"}
    refused = ada("POST", f"/runs/{run_id}/stop", {}, headers=asked)
    forged = ada("POST", f"/runs/{run_id}/stop", {}, headers={"x-request-id": 'x" , "level": "FATAL'})

    assert (refused.status, refused.headers["x-request-id"]) == (500, "from-a-proxy.1")
    own = forged.headers["x-request-id"]
    assert len(own) == 16
    first, second = (line for line in read_lines(written) if line["level"] == "ERROR")
    assert (first["request_id"], first["run_id"]) == ("from-a-proxy.1", run_id)
    assert first["message"] == f"POST /api/v1/runs/{run_id}/stop failed"
    assert first["exception"].endswith("RuntimeError: a bug\nof two lines")
    assert second["request_id"] == own


def test_no_message_breaks_the_line_it_is_on(written: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "propagate", False)  # pytest's report cannot hold half a character
    RUN_ID.set("")
    log.warning("two\nlines, %s, half a character \ud83d and \x00", '"quotes"')
    log.warning("x" * 100_000)

    first, second = read_lines(written)

    assert first["message"] == 'two\nlines, "quotes", half a character ? and \x00'
    assert first["level"] == "WARNING"
    assert first["time"].endswith("Z")
    assert "request_id" not in first
    assert len(second["message"]) < 60_000
