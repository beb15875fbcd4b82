"""What only we say to each other: many turns, tools, a model for the environment's judge, a token."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from proctor import Environment, Scripted
from proctor.channel.remote_seat import RemoteSeat
from proctor.errors import OverloadedError
from tests.channel.sockets import Conversation, Line
from tests.channel.table import ANY, CANCELLED, NO_TASK, Row, ask, error, frame, hang_up, hear, result, send

if TYPE_CHECKING:
    from tests.channel.conftest import Host

Asked = Any


def house() -> Environment:
    env = Environment("house")
    rung = asyncio.Event()

    @env.tool
    async def double(number: int) -> int:
        "Twice the number."
        return 2 * number

    @env.tool
    async def wait() -> str:
        "Waits for the bell."
        await rung.wait()
        return "heard"

    @env.tool
    async def ring() -> str:
        "Rings the bell."
        rung.set()
        return "rung"

    @env.template()
    async def turns(count: int) -> Asked:
        heard = ""
        for number in range(count):
            heard = yield f"turn {number}"
        yield {"score": float(count), "info": {"last": heard}}

    @env.template()
    async def judged() -> Asked:
        answer = yield "Is water wet?"
        yield await env.judge(answer, question="Is water wet?", expected="yes")

    return env


PEER = ask("a", "hello", {"speaks": 1}, result({"session_id": "$s", "env": ANY, "bindings": [], "speaks": 1}))
TURNS = result({"prompt": "turn 0", "last": False, "tools": ANY, "workspace": False})
START = ask("a", "tasks.start", {"id": "turns", "args": {"count": 3}}, TURNS)
JUDGE = {"jsonrpc": "2.0", "id": "s1", "method": "model.complete", "params": ANY}
EIGHT = result({"content": "8"})
LS = {"command": "ls", "seconds": 1}
NO_WORKSPACE = error(-32602, re.compile("no workspace"))
YES = {"message": {"role": "assistant", "content": "yes"}}

ROWS = [
    Row(
        "many turns",
        [
            PEER,
            START,
            ask("a", "tasks.reply", {"answer": "a"}, result({"prompt": "turn 1", "last": False})),
            ask("a", "tasks.reply", {"answer": "b"}, result({"prompt": "turn 2", "last": False})),
            ask(
                "a",
                "tasks.reply",
                {"answer": "c"},
                result(
                    {
                        "score": 3.0,
                        "done": True,
                        "content": None,
                        "info": {"last": "c"},
                        "isError": False,
                        "subscores": [],
                        "metrics": {"num_turns": 3.0, "total_tool_calls": 0.0, "tool_errors": 0.0},
                    }
                ),
            ),
            ask("a", "tasks.reply", {"answer": "d"}, NO_TASK),
        ],
    ),
    Row(
        "a grade in the middle of many turns answers the rest with nothing",
        [
            PEER,
            START,
            ask("a", "tasks.grade", {"answer": "a"}, result(ANY)),
            ask("a", "tasks.grade", {}, NO_TASK),
        ],
    ),
    Row("a reply without a task", [ask("a", "tasks.reply", {"answer": "a"}, NO_TASK)]),
    Row(
        "turns go on after the connection was lost",
        [
            PEER,
            START,
            ask("a", "tasks.reply", {"answer": "a"}, result({"prompt": "turn 1", "last": False})),
            hang_up("a"),
            ask("b", "hello", {"session_id": "$s", "speaks": 1}, result(ANY), again=True),
            ask("b", "tasks.reply", {"answer": "b"}, result({"prompt": "turn 2", "last": False})),
        ],
    ),
    Row(
        "tools",
        [
            PEER,
            START,
            ask(
                "a", "tools.call", {"name": "double", "arguments": '{"number": 4}'}, result({"content": "8"})
            ),
            ask("a", "tools.call", {"name": "duoble"}, result({"content": re.compile("double")})),
            ask("a", "tools.call", {"name": "double", "arguments": "{"}, result({"content": ANY})),
            ask("a", "tools.call", {"name": 3}, error(-32602)),
            ask("a", "tools.call", {"name": "double", "arguments": {"number": 4}}, error(-32602)),
        ],
    ),
    Row(
        "tools are used side by side",
        [
            PEER,
            START,
            send("a", "tools.call", {"name": "wait"}, id=2),
            ask("a", "tasks.reply", {}, error(-32600, "tasks.reply: a task call is still running")),
            ask("a", "tools.call", {"name": "ring"}, result({"content": "rung"}), id=1),
            hear("a", result({"content": "heard"}, id=2)),
        ],
    ),
    Row(
        "a grade ends the tools that an agent has left in use",
        [
            PEER,
            START,
            send("a", "tools.call", {"name": "wait"}, id=2),
            ask("a", "tasks.grade", {}, error(-32000, "tasks.grade interrupted the task", id=2)),
            hear(
                "a",
                result(
                    {
                        "score": 3.0,
                        "done": True,
                        "content": None,
                        "info": {"last": ""},
                        "isError": False,
                        "subscores": [],
                        "metrics": ANY,
                    }
                ),
            ),
        ],
    ),
    Row(
        "a cancel ends the tools too",
        [
            PEER,
            START,
            send("a", "tools.call", {"name": "wait"}, id=2),
            ask("a", "tasks.cancel", {}, error(-32000, "tasks.cancel interrupted the task", id=2)),
            hear("a", CANCELLED),
        ],
    ),
    Row(
        "tools after the end, and of another session",
        [
            PEER,
            START,
            ask("b", "tools.call", {"name": "double"}, NO_TASK),
            ask("a", "tasks.grade", {}, result(ANY)),
            ask("a", "tools.call", {"name": "double"}, NO_TASK),
        ],
    ),
    Row(
        "a judge asks whoever offers a model",
        [
            PEER,
            ask("a", "tasks.start", {"id": "judged", "offers_model": True}, result(ANY)),
            ask("a", "tasks.grade", {"answer": "yes"}, JUDGE),
            ask("a", "tasks.list", {}, result(ANY, id=3), id=3),
        ],
    ),
    Row(
        "a judge without anybody who offers a model",
        [
            ask("a", "tasks.start", {"id": "judged"}, result(ANY)),
            ask("a", "tasks.grade", {"answer": "yes"}, error(-32000, re.compile("offers no model"))),
        ],
    ),
    Row(
        "a command without a workspace",
        [
            PEER,
            ask("a", "workspace.run", LS, NO_TASK),
            START,
            ask(
                "a",
                "workspace.run",
                {"command": "ls", "seconds": 1},
                error(-32602, re.compile("no workspace")),
            ),
        ],
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_our_own_words_are_answered_as_the_table_says(row: Row, served: Callable[..., Host]) -> None:
    Conversation(served(house()).port).play(row)


@pytest.mark.parametrize(
    ("answer", "graded"),
    [
        ({"result": YES}, {"score": 1.0}),
        ({"error": {"code": -32000, "message": "no", "data": {"kind": "ModelError"}}}, None),
        ({"result": {"message": 3}}, None),
        ({"result": []}, None),
    ],
)
def test_what_the_model_of_the_driver_says_decides(
    answer: Any, graded: Any, served: Callable[..., Host]
) -> None:
    line = Line(served(house()).port)
    line.ask(frame("tasks.start", {"id": "judged", "offers_model": True}))
    asked = line.ask(frame("tasks.grade", {"answer": "yes"}))
    assert (asked["method"], asked["params"]["role"]) == ("model.complete", "judge")

    reply = line.ask({"jsonrpc": "2.0", "id": asked["id"], **answer})

    assert reply["id"] == 1
    assert ("error" in reply) == (graded is None)
    if graded is not None:
        assert reply["result"]["score"] == graded["score"]
    line.close()


TOKEN_WANTED = error(-32001, re.compile("requires its token"))
TOO_LONG = error(-32000, re.compile("over the limit of 65,536"), id=None)
GREETED = result(ANY)
TOKENS = [
    Row("the token", [ask("a", "hello", {"token": "open"}, GREETED), ask("a", "tasks.list", {}, GREETED)]),
    Row("no token", [ask("a", "hello", {}, TOKEN_WANTED), ask("a", "hello", {"token": "open"}, GREETED)]),
    *(
        Row(f"the token {wrong!r}", [ask("a", "hello", {"token": wrong}, TOKEN_WANTED)])
        for wrong in ("opne", "", "opené", 3, None, ["open"])
    ),
    *(
        Row(f"{method} before hello", [ask("a", method, {}, TOKEN_WANTED)])
        for method in ("tasks.list", "tasks.start", "tasks.grade", "tasks.cancel", "bye", "tools.call", "x")
    ),
    Row("a tunnel without it", [ask("a", "tunnel.open", {"capability": "tools"}, TOKEN_WANTED, ends=True)]),
    Row(
        "a tunnel with it",
        [ask("a", "tunnel.open", {"capability": "tools", "token": "open"}, result({"capability": "tools"}))],
    ),
    Row(
        "a long frame of a stranger",
        [
            ask(
                "a",
                "hello",
                {"token": "x" * 100_000},
                error(-32000, re.compile("65,536"), id=None),
                ends=True,
            )
        ],
    ),
]


@pytest.mark.parametrize("row", TOKENS, ids=[row.name for row in TOKENS])
def test_nothing_is_done_without_the_token(row: Row, served: Callable[..., Host]) -> None:
    Conversation(served(house(), token="open").port).play(row)


def test_a_stranger_who_says_nothing_is_shown_out(
    served: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.channel.connection.STRANGER_SECONDS", 1.0)
    host = served(house(), token="open")

    stranger, friend = Line(host.port), Line(host.port)
    assert "result" in friend.ask(frame("hello", {"token": "open"}))

    assert stranger.hear() is None
    assert "result" in friend.ask(frame("tasks.list", {}))
    stranger.close()
    friend.close()


def test_a_tunnel_carries_bytes_to_the_tools_of_a_session(served: Callable[..., Host]) -> None:
    host = served(house())
    line = Line(host.port)
    greeting = line.ask(frame("hello", {}))["result"]
    line.ask(frame("tasks.start", {"id": "turns", "args": {"count": 1}}))
    path = greeting["bindings"][0]["url"].split("/", 3)[3]
    tunnel = Line(host.port)
    assert tunnel.ask(frame("tunnel.open", {"capability": "tools"}))["result"] == {"capability": "tools"}

    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    head = f"POST /{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    tunnel.send(head.encode() + body)

    assert b"double" in tunnel.file.read()
    tunnel.close()
    line.close()


def test_a_judges_own_model_is_asked_again_after_the_provider_failed() -> None:
    judge = Scripted([OverloadedError("503", retry_after_seconds=0.0), "yes"])
    seat = RemoteSeat(None)

    reply = asyncio.run(seat.complete([{"role": "user", "content": "Is it?"}], role="judge", model=judge))

    assert reply.text == "yes"
    assert [call.failure is not None for call in seat.trace.calls] == [True, False]
