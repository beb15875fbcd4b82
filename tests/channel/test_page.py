"""The conversations on the page about the channel are true."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.channel import room
from tests.channel.sockets import Conversation
from tests.channel.table import ANY, Row, hear, raw

if TYPE_CHECKING:
    from tests.channel.conftest import Host

PAGE = Path(__file__).parents[2] / "docs" / "channel.md"
BLOCKS = re.findall(r"^```channel\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def row_of(block: str) -> Row:
    lines = block.splitlines()
    return Row(
        "of the page",
        [
            raw("a", line[3:].encode() + b"\n") if line.startswith(">>") else hear("a", wanted(line[3:]))
            for line in lines
        ],
    )


def wanted(text: str) -> Any:
    return json.loads(text, object_pairs_hook=lambda pairs: {k: ANY if v == "…" else v for k, v in pairs})


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_conversation_on_the_page_goes_as_it_says(number: int, served: Callable[..., Host]) -> None:
    Conversation(served(room.env).port).play(row_of(BLOCKS[number]))
