"""The conformance table, played on raw sockets against our server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.channel import room
from tests.channel.rows import ROWS
from tests.channel.sockets import Conversation, Line
from tests.channel.table import SAME, Row, frame

if TYPE_CHECKING:
    from tests.channel.conftest import Host


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_every_frame_is_answered_as_the_table_says(row: Row, served: Callable[..., Host]) -> None:
    Conversation(served(room.env).port).play(row)


def test_two_hundred_sessions_are_played_at_once(served: Callable[..., Host]) -> None:
    host = served(room.env)
    lines = [Line(host.port) for _ in range(200)]
    for number, line in enumerate(lines):
        word = "r" * number
        assert line.ask(frame("tasks.start", {"id": "count", "args": {"word": word}}))["result"]
    for number, line in reversed(list(enumerate(lines))):
        graded = line.ask(frame("tasks.grade", {"answer": str(number)}))
        assert graded["result"] == {"score": 1.0}
        line.close()


def test_every_row_that_differs_says_why() -> None:
    for row in ROWS:
        differs = any(step.they_end or step.theirs is not SAME for step in row.steps)
        assert differs == bool(row.differs), row.name
