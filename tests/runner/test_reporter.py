"""What the server hears of rows, however large they are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from proctor.api.runner import Ending
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.events import RunStarted
from proctor.run import Run
from proctor.runner.inside import reporter as reporter_module
from proctor.runner.inside.reporter import Reporter
from proctor.store.folder import METADATA, RESULTS
from tests.runner.server import Answer, Hearing, hearing

MOST = 10_000
"""What the server takes in one request."""
RUN = Run(id="r", env_id="sums", model="parrot", status="running", started_at=0.0)


def refusing(path: str, body: bytes) -> Answer:
    if len(body) > MOST:
        return Answer(413, b'{"code": "too_large", "message": "Too large."}')
    return Answer(200)


def row(task: int, rollout: int, size: int) -> dict[str, object]:
    return {"example_id": task, "rollout": rollout, "outcome": "scored", "text": "x" * size}


def reported(server: Hearing, folder: Path, rows: list[dict[str, object]], *lines: str) -> bool:
    """Whether the reporter still had somebody to talk to at the end."""
    (folder / RESULTS).write_text("".join(f"{json.dumps(each)}\n" for each in rows))

    async def main() -> bool:
        async with ServerConnection(Context(url=server.url, token="t")) as connection:
            reporter = Reporter(connection, folder, [], 10, lambda: None)
            reporter.start()
            for line in lines:
                reporter.report_line(line)
            reporter.take_event(RunStarted(RUN, planned=len(rows)))
            await reporter.end(Ending(status="finished"))
            return not reporter.is_over

    return asyncio.run(main())


def rollouts(server: Hearing) -> list[tuple[int, int]]:
    rows = [json.loads(bytes(raw)) for report in server.reports for raw in report.rows]
    return [(each["example_id"], each["rollout"]) for each in rows]


def test_a_group_that_is_too_large_for_one_report_comes_in_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter_module, "MOST_BYTES", 1_000)
    monkeypatch.setattr(reporter_module, "MOST_BYTES_OF_A_GROUP", 6_000)
    sizes: list[int] = []

    def measuring(path: str, body: bytes) -> Answer:
        sizes.append(len(body))
        return Answer(200)

    with hearing(measuring) as server:
        assert reported(server, tmp_path, [row(1, number, 1_500) for number in range(10)])
        assert rollouts(server) == [(1, number) for number in range(10)]
    assert max(sizes) < MOST


def test_what_the_server_finds_too_large_is_sent_in_parts(tmp_path: Path) -> None:
    with hearing(refusing) as server:
        assert reported(server, tmp_path, [row(1, number, 4_000) for number in range(7)], "a", "b")
        assert rollouts(server) == [(1, number) for number in range(7)]
        assert [text for _, text in server.log] == ["a", "b"]
        numbers = [report.batch for report in server.reports]
        assert numbers == sorted(set(numbers))
        assert server.heard[-1][0] == "/runner/end"


def test_a_row_that_is_too_large_by_itself_is_left_out_and_named_and_the_others_arrive(
    tmp_path: Path,
) -> None:
    rows = [row(1, 0, 100), row(2, 1, 20_000), row(3, 0, 100)]
    with hearing(refusing) as server:
        assert reported(server, tmp_path, rows)
        assert rollouts(server) == [(1, 0), (3, 0)]
        ((level, text),) = server.log
        assert level == "ERROR"
        assert "task 2, rollout 1, of 20,0" in text
        assert server.heard[-1][0] == "/runner/end"


def test_lines_that_are_too_large_together_arrive_one_after_the_other(tmp_path: Path) -> None:
    lines = [f"{number} {'x' * 3_000}" for number in range(9)]
    with hearing(refusing) as server:
        assert reported(server, tmp_path, [], *lines)
        assert [text for _, text in server.log] == lines


def test_metadata_that_the_server_does_not_take_ends_the_attempt_and_no_line_is_blamed(
    tmp_path: Path,
) -> None:
    (tmp_path / METADATA).write_text(json.dumps({"text": "x" * 20_000}))
    with hearing(refusing) as server:
        assert not reported(server, tmp_path, [row(1, 0, 100)], "a")
        assert server.heard == []
