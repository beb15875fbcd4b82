"""What clients that speak only what everybody speaks can use of an environment: its tools, its workspaces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from proctor import Environment
from proctor.channel.client import Channel, Greeting, open_wire
from proctor.channel.frames import RemoteError
from proctor.channel.listen import open_channel_server
from proctor.channel.server import ServedEnvironment
from proctor.contracts import Toolbox
from proctor.runtimes.capabilities import borrow_toolbox

pytest.importorskip("asyncssh")


def repairs() -> Environment:
    env = Environment("repairs")
    work = env.workspace(isolation="none")

    @env.tool
    def hint(wish: str = "it") -> str:
        """Ask for a hint."""
        return f"write {wish}"

    @env.template()
    async def fix() -> AsyncGenerator[Any, Any]:
        await work.write("BUG.txt", "a bug")
        yield "Write 42 into answer.txt."
        yield await work.check('test "$(cat answer.txt)" = 42')

    fix()
    return env


async def stranger(url: str, token: str | None = None) -> Channel:
    """A client that does not say that it speaks what only we do."""
    channel = Channel(await open_wire(url), url, token)
    params = {} if token is None else {"token": token}
    channel.greeting = msgspec.convert(await channel.wire.ask("hello", params), Greeting)
    return channel


def visited(visit: Callable[[Channel, Toolbox], Awaitable[Any]], token: str | None = None) -> Any:
    async def run() -> Any:
        async with (
            open_channel_server(ServedEnvironment(repairs(), token)) as url,
            AsyncExitStack() as closing,
        ):
            channel = await stranger(url, token)
            await channel.ask("tasks.start", {"id": "fix"})
            toolbox = await borrow_toolbox(channel, closing)
            assert toolbox is not None
            result = await visit(channel, toolbox)
            await channel.close()
            return result

    return asyncio.run(run())


@pytest.mark.parametrize("token", [None, "secret"])
def test_tools_and_a_shell_are_found_through_the_one_port(token: str | None) -> None:
    async def work(channel: Channel, toolbox: Toolbox) -> tuple[Any, ...]:
        hint = await toolbox.call("hint", json.dumps({"wish": "42"}))
        made = await toolbox.call("bash", json.dumps({"command": "echo 42 > answer.txt; ls"}))
        graded = await channel.ask("tasks.grade", {"answer": "done"})
        return hint, made, graded["score"]

    hint, made, score = visited(work, token)

    assert hint == "write 42"
    assert "BUG.txt" in made
    assert score == 1.0


def test_what_leads_to_the_shell_is_not_offered_a_second_time_as_a_tool() -> None:
    async def names(channel: Channel, toolbox: Toolbox) -> tuple[list[str], list[str]]:
        return [binding.protocol for binding in channel.greeting.bindings], [
            tool.name for tool in toolbox.tools
        ]

    protocols, tools = visited(names)

    assert protocols == ["mcp/2025-11-25", "ssh/2"]
    assert sorted(tools) == sorted({*tools})
    assert "hint" in tools
    assert "bash" in tools


def test_a_shell_is_shut_when_the_task_is_graded() -> None:
    async def work(channel: Channel, toolbox: Toolbox) -> str:
        await toolbox.call("bash", json.dumps({"command": "true"}))
        await channel.ask("tasks.grade", {"answer": ""})
        return str(await toolbox.call("bash", json.dumps({"command": "true"})))

    assert "no task is started; its workspace comes with it" in visited(work)


def test_every_hello_of_a_session_names_the_same_way_in() -> None:
    async def greet(channel: Channel, toolbox: Toolbox) -> Greeting:
        again = await channel.wire.ask("hello", {"session_id": channel.greeting.session_id})
        assert msgspec.convert(again, Greeting) == channel.greeting
        return channel.greeting

    assert visited(greet).bindings[1].params["user"]


def test_a_stranger_without_the_token_gets_no_tunnel() -> None:
    async def knock() -> None:
        async with open_channel_server(ServedEnvironment(repairs(), "secret")) as url:
            wire = await open_wire(url)
            with pytest.raises(RemoteError, match="requires its token"):
                await wire.ask("tunnel.open", {"capability": "workspace"})

    asyncio.run(knock())


def test_peers_of_our_own_are_offered_no_servers() -> None:
    async def greet() -> Greeting:
        async with open_channel_server(ServedEnvironment(repairs())) as url:
            channel = Channel(await open_wire(url), url, None)
            greeting = await channel.hello()
            await channel.close()
            return greeting

    assert asyncio.run(greet()).bindings == []
