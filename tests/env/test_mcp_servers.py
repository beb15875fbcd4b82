"""Templates that lend the tools of MCP servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from proctor import ConfigError, Environment, Scripted, Step, evaluate
from proctor.evaluation.execute import Result

SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("counter")
counted = 0


@server.tool()
def count(by: int = 1) -> int:
    global counted
    counted += by
    return counted


server.run()
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return str(path)


def counting(program: str, shared: bool) -> Environment:
    env = Environment("counting")
    env.mcp_server("counter", command=sys.executable, args=[program], shared=shared)

    @env.tool
    def count(word: str) -> int:
        """Count letters."""
        return len(word)

    @env.template()
    async def total() -> AsyncGenerator[Any, Any]:
        answer = yield "How much is it?"
        yield 1.0 if answer == "2" else 0.0

    total()
    return env


def played(env: Environment, rollouts: int) -> Result:
    twice = Step(
        tool_calls=[
            {"name": "counter_count", "arguments": {}},
            {"name": "count", "arguments": {"word": "abc"}},
        ]
    )
    return asyncio.run(
        evaluate(env, Scripted([twice, twice, "2"]), rollouts_per_example=rollouts, max_concurrent=1)
    )


def results(result: Result) -> list[list[str]]:
    return [
        [message["content"] for message in rollout.trace.completion if message["role"] == "tool"]
        for rollout in result
    ]


def test_every_rollout_has_a_server_of_its_own_beside_the_tools_of_the_environment(program: str) -> None:
    result = played(counting(program, shared=False), rollouts=2)

    assert results(result) == [["1", "3", "2", "3"]] * 2
    assert [rollout.score and rollout.score.metrics["tool_errors"] for rollout in result] == [0.0, 0.0]


def test_a_shared_server_remembers_from_one_rollout_to_the_next(program: str) -> None:
    result = played(counting(program, shared=True), rollouts=2)

    assert results(result) == [["1", "3", "2", "3"], ["3", "3", "4", "3"]]


def test_a_server_that_cannot_be_started_is_the_environments_fault() -> None:
    env = Environment("lost")
    env.mcp_server("gone", command="/there/is/no/such/program")

    @env.template()
    async def ask() -> AsyncGenerator[Any, Any]:
        yield "Anything?"
        yield 1.0

    ask()
    (rollout,) = asyncio.run(evaluate(env, Scripted(["x"])))

    assert rollout.outcome == "environment_error"
    assert rollout.failure is not None
    assert "MCP server 'gone' cannot be started" in rollout.failure.message


def test_two_servers_of_one_name_are_refused() -> None:
    env = Environment("twins")
    env.mcp_server("one", url="http://127.0.0.1:1/mcp")

    with pytest.raises(ConfigError, match="Two MCP servers of 'twins' are called 'one'; rename one"):
        env.mcp_server("one", url="http://127.0.0.1:2/mcp")


def test_a_server_is_a_program_or_an_address() -> None:
    with pytest.raises(ConfigError, match="needs either a 'command' or a 'url'"):
        Environment("neither").mcp_server("none")
