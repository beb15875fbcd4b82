"""An agent in a workspace cannot reach the channel that grades it."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from proctor import Environment
from proctor.channel.client import connect
from proctor.channel.listen import open_channel_server
from proctor.channel.server import ServedEnvironment

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None or not Path("/usr/bin/python3").exists(),
    reason="there is no bubblewrap here, or no Python for the attacker",
)

ORACLE = """
import json, socket, sys
channel = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).makefile("rw")
for number, (method, params) in enumerate(
    [("hello", {}), ("tasks.start", {"id": "guess", "args": {}}), ("tasks.grade", {"answer": "7"})], 1
):
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    channel.write(json.dumps(frame) + "\\n"); channel.flush()
    print(channel.readline())
"""


def guessing(network: bool) -> Environment:
    env = Environment("guessing")
    env.workspace(network=network)

    @env.template()
    async def guess() -> AsyncGenerator[Any, Any]:
        answer = yield "Guess a number."
        yield float(answer == "7")

    return env


def said_by_the_oracle(network: bool, token: str | None) -> str:
    """What an agent hears that asks the control port for the score of its guess."""

    async def attack() -> str:
        async with open_channel_server(ServedEnvironment(guessing(network), token)) as url:
            channel = await connect(url, token)
            await channel.ask("tasks.start", {"id": "guess"})
            program = f"python3 - {urlsplit(url).port} <<'END'\n{ORACLE}\nEND"
            used = {"name": "bash", "arguments": json.dumps({"command": program})}
            heard = await channel.ask("tools.call", used)
            await channel.close()
            return str(heard["content"])

    return asyncio.run(attack())


def test_there_is_no_way_from_a_workspace_to_the_control_port() -> None:
    heard = said_by_the_oracle(network=False, token=None)

    assert "Connection refused" in heard
    assert "score" not in heard


def test_with_a_network_the_port_is_reached_and_the_token_keeps_it_shut() -> None:
    heard = said_by_the_oracle(network=True, token="secret")

    assert heard.count("requires its token") == 3
    assert "score" not in heard


def test_without_either_the_score_would_be_there_for_the_asking() -> None:
    """The attack itself works: what holds it off are the walls, or the token."""
    assert '"score":1.0' in said_by_the_oracle(network=True, token=None)


def test_serving_a_workspace_with_network_wants_a_token(tmp_path: Path, proctor: Any) -> None:
    (tmp_path / "env.py").write_text(
        'from proctor import Environment\nenv = Environment("open")\nenv.workspace(network=True)\n\n'
        '@env.template()\nasync def ask():\n    yield "?"\n    yield 1.0\n'
    )
    said = proctor("serve", str(tmp_path / "env.py"), "-p", "0")

    assert said.code == 2
    assert "from which an agent could reach this channel and grade itself; give --token" in said.stderr
