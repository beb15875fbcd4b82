"""The conformance table played against `hud serve`: it answers alike, or differs as the table says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.channel.rows import ROWS
from tests.channel.sockets import Conversation
from tests.channel.table import Row
from tests.interop.hud.conftest import hud_serving, quiet

pytestmark = pytest.mark.interop
ROOM = Path(__file__).parents[2] / "channel" / "room.py"


@pytest.fixture(scope="module")
def port(hud: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "env.py").write_bytes(ROOM.read_bytes())
    with hud_serving(hud, folder / "env.py", quiet(folder), folder) as port:
        yield port


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_theirs_answers_as_the_table_says(row: Row, port: int) -> None:
    Conversation(port, with_theirs=True).play(row)


@pytest.mark.parametrize("row", [row for row in ROWS if row.differs], ids=str)
def test_where_we_say_that_we_differ_we_do(row: Row, port: int) -> None:
    with pytest.raises(AssertionError):
        Conversation(port).play(row)
