"""Our side of the channel against servers that do not behave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor import Taskset
from proctor.channel.client import Channel, connect
from proctor.errors import ConfigError, EnvError, InfraError
from proctor.evaluation.execute import Result
from proctor.models.scripted import Scripted
from proctor.runtimes.runtime import Runtime
from proctor.task import mint_task
from tests.waiting import SECONDS

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Play = Callable[[Reader, Writer], Awaitable[None]]


@asynccontextmanager
async def serving(play: Play) -> AsyncIterator[str]:
    async def accepted(reader: Reader, writer: Writer) -> None:
        try:
            await play(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, limit=2**26)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def saying(*lines: bytes) -> Play:
    """Says these whatever is asked."""

    async def play(reader: Reader, writer: Writer) -> None:
        await reader.readline()
        for line in lines:
            writer.write(line)
            await writer.drain()
        await reader.read()

    return play


def answering(**results: Any) -> Play:
    """Answers each method with what is given for it: an object, or bytes as they are."""
    usual = {"hello": {"session_id": "sess-1", "env": {"name": "x", "version": "1"}, "bindings": []}}

    async def play(reader: Reader, writer: Writer) -> None:
        while line := await reader.readline():
            asked = json.loads(line)
            answer = {**usual, **results}.get(asked["method"].replace(".", "_"), {})
            if answer is None:
                return
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
            writer.write(answer if isinstance(answer, bytes) else json.dumps(reply).encode() + b"\n")

    return play


async def reached(play: Play) -> None:
    async with serving(play) as url:
        channel = await connect(url)
        channel.wire.close()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "was lost|closed|refuses the connection|cannot connect"),
        (b"[]\n", "closed|cannot connect"),
        (b"\xff\xfe\n", "closed|cannot connect"),
        (b'{"jsonrpc":"2.0","id":1,"result":[]}\n', "refuses the connection: the result is not an object"),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}\n', "is not a served environment"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"session_id":3,"env":{}}}\n', "is not a served environment"),
        (b'{"jsonrpc":"2.0","id":1,"error":"no"}\n', "refuses the connection"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":3}}\n', "refuses the connection: 3"),
        (
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"full"}}\n',
            "refuses the connection: full",
        ),
    ],
)
def test_whoever_is_no_served_environment_is_told_from_one(said: bytes, message: str) -> None:
    with pytest.raises(InfraError, match=message):
        asyncio.run(reached(saying(said)))


def test_a_server_that_says_nothing_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.channel.client.CONNECT_SECONDS", 0.1)
    with pytest.raises(InfraError, match=r"did not answer within 0\.1 s"):
        asyncio.run(reached(saying()))


def test_nobody_there() -> None:
    with pytest.raises(InfraError, match="is the environment served there"):
        asyncio.run(connect("tcp://127.0.0.1:1"))


@pytest.mark.parametrize("url", ["tcp://", "tcp://x", "tcp://[::1", "tcp://x:99999", "http://x:1", "x"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match="write tcp://host:port"):
        asyncio.run(connect(url))


def test_answers_with_odd_ids_and_questions_are_passed_over() -> None:
    odd = b'{"id":[1],"result":{}}\n{"id":99,"result":{}}\n{"id":true,"method":"x"}\n\n'
    hello = {"session_id": "sess-1", "env": {"name": "x"}, "bindings": []}
    reply = odd + json.dumps({"id": 1, "result": hello}).encode() + b"\n"

    asyncio.run(reached(saying(reply)))


def test_what_cannot_be_said_is_told_to_who_says_it() -> None:
    async def ask(params: dict[str, Any]) -> None:
        async with serving(answering()) as url:
            channel = await connect(url)
            try:
                await channel.ask("tasks.grade", params)
            finally:
                await channel.close()

    for params in ({"answer": "\ud800"}, {"answer": object()}, {"answer": "x" * (65 * 2**20)}):
        with pytest.raises(EnvError, match=r"tasks\.grade cannot be sent"):
            asyncio.run(ask(params))


def test_an_environment_without_a_seat_has_no_model() -> None:
    async def play(reader: Reader, writer: Writer) -> None:
        await reader.readline()
        writer.write(b'{"id":1,"result":{"session_id":"s","env":{}}}\n')
        for number in range(1000):
            writer.write(
                json.dumps({"id": f"s{number}", "method": "model.complete", "params": {}}).encode() + b"\n"
            )
        refused = [json.loads(await reader.readline()) for _ in range(1000)]
        assert {each["error"]["code"] for each in refused} == {-32601}

    async def stay() -> None:
        async with serving(play) as url:
            channel: Channel = await connect(url)
            await asyncio.wait_for(closed(channel), SECONDS)

    asyncio.run(stay())


async def closed(channel: Channel) -> None:
    while not channel.wire.is_closed:
        await asyncio.sleep(0.01)


# Rollouts


def played(play: Play, folder: Path, **settings: Any) -> Result:
    async def run() -> Result:
        async with serving(play) as url:
            tasks = [mint_task("x", "t", {}, "one")]
            usual = {"model": Scripted(["a"]), "runtime": Runtime(url), "output_dir": str(folder)}
            return (await Taskset("x", tasks).run(**{**usual, **settings})).result

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("answers", "outcome", "said"),
    [
        ({"tasks_start": {}}, "environment_error", "prompt"),
        ({"tasks_start": {"prompt": []}}, "environment_error", "empty prompt"),
        ({"tasks_start": {"prompt": 3}}, "environment_error", "prompt"),
        ({"tasks_start": {"prompt": [{"role": "user"}]}}, "environment_error", "without content"),
        ({"tasks_start": None}, "environment_error", "was lost"),
        ({"tasks_start": b"{half a fra"}, "timeout", ""),
        ({"tasks_grade": {}}, "grader_error", "score"),
        ({"tasks_grade": {"score": True}}, "grader_error", "number"),
        ({"tasks_grade": {"score": "1"}}, "grader_error", "1"),
        ({"tasks_grade": {"score": None}}, "grader_error", "None"),
        ({"tasks_grade": {"score": 1, "subscores": [3]}}, "grader_error", "subscore"),
        ({"tasks_grade": {"score": 1, "subscores": 3}}, "grader_error", "subscores"),
        ({"tasks_grade": {"score": 1, "info": 3}}, "grader_error", "info"),
        ({"tasks_grade": {"score": 1, "calls": [3]}}, "grader_error", "calls"),
        ({"tasks_grade": b'{"id":2,"result":{"score":1e999}}\n'}, "environment_error", "was lost"),
        ({"tasks_grade": None}, "environment_error", "was lost"),
    ],
)
def test_a_server_that_answers_nonsense_fails_the_rollout_and_nothing_else(
    answers: dict[str, Any], outcome: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.channel.client.GOODBYE_SECONDS", 0.1)
    monkeypatch.setattr("proctor.runtimes.remote_environment.CANCEL_SECONDS", 0.1)
    given = {"tasks_start": {"prompt": "go"}, **answers}
    patience = 0.5 if outcome == "timeout" else SECONDS
    result = played(answering(**given), tmp_path, start_timeout=patience)

    (rollout,) = result.rollouts
    assert rollout.outcome == outcome
    assert rollout.failure is not None
    assert said in rollout.failure.message


def test_a_task_is_played_by_the_environment_it_names_and_no_other(tmp_path: Path) -> None:
    async def other(reader: Reader, writer: Writer) -> None:
        await reader.readline()
        writer.write(b'{"id":1,"result":{"session_id":"s","env":{"name":"other","version":"1"}}}\n')
        await reader.read()

    (rollout,) = played(other, tmp_path).rollouts

    assert rollout.outcome == "environment_error"
    assert rollout.failure is not None
    assert "serves 'other', but the task belongs to 'x'" in rollout.failure.message
