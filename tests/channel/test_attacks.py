"""What a client may do to a server, by malice or by accident, and what must hold all the same."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from proctor import Environment
from tests.channel.sockets import Line
from tests.channel.table import MIB, frame
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.channel.conftest import Host


class Ledger:
    """Which templates are open."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0


def fort(ledger: Ledger | None = None) -> Environment:
    env = Environment("fort")
    kept = ledger or Ledger()

    @env.template()
    async def watched(turns: int = 1, seconds: float = 0, fails: bool = False) -> Any:
        kept.opened += 1
        try:
            await asyncio.sleep(seconds)
            for number in range(turns):
                yield f"turn {number}"
            await asyncio.sleep(seconds)
            if fails:
                raise ValueError("failed")
            yield 1.0
        finally:
            kept.closed += 1
            await asyncio.sleep(0)

    @env.template()
    async def stubborn() -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            yield "not cancelled"
        yield 1.0

    @env.template()
    async def scoped() -> Any:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0)
            yield "in a scope"
        yield 1.0

    @env.template()
    async def odd(kind: str) -> Any:
        yield "go"
        if kind == "half a character":
            raise ValueError("\ud800")
        if kind == "exit":
            raise SystemExit(3)
        if kind == "interrupt":
            raise KeyboardInterrupt
        if kind == "stray":
            raise asyncio.CancelledError
        if kind == "deep":
            deep: list[Any] = []
            for _ in range(100_000):
                deep = [deep]
            yield {"score": 1.0, "info": {"deep": deep}}
        yield {"score": 1.0, "content": object()}

    @env.template()
    async def unspeakable() -> Any:
        yield [{"role": "user", "content": [{"type": "text", "text": "\ud800"}]}]
        yield 1.0

    @env.tool
    async def nap(seconds: float) -> str:
        "Sleeps."
        await asyncio.sleep(seconds)
        return "awake"

    return env


@pytest.mark.parametrize("kind", ["half a character", "exit", "interrupt", "stray", "deep", "object"])
def test_whatever_a_template_raises_or_yields_is_an_answer(kind: str, served: Callable[..., Host]) -> None:
    line = Line(served(fort()).port)
    assert "result" in line.ask(frame("tasks.start", {"id": "odd", "args": {"kind": kind}}))

    reply = line.ask(frame("tasks.grade", {"answer": ""}, id=2))

    assert (reply["id"], reply["error"]["code"]) == (2, -32000)
    assert reply["error"]["message"]
    assert line.ask(frame("tasks.grade", {}))["error"]["message"] == "no task in progress"
    line.close()


def test_a_prompt_that_cannot_be_sent_starts_nothing(served: Callable[..., Host]) -> None:
    line = Line(served(fort()).port)

    assert line.ask(frame("tasks.start", {"id": "unspeakable"}))["error"]["code"] == -32000
    assert line.ask(frame("tasks.grade", {}))["error"]["message"] == "no task in progress"
    line.close()


def test_a_template_may_stay_in_a_cancel_scope_from_start_to_grade(served: Callable[..., Host]) -> None:
    host = served(fort())
    first = Line(host.port)
    session = first.ask(frame("hello", {}))["result"]["session_id"]
    assert "result" in first.ask(frame("tasks.start", {"id": "scoped"}))
    first.close()
    second = Line(host.port)
    wait_for(lambda: "result" in second.ask(frame("hello", {"session_id": session})))

    assert second.ask(frame("tasks.grade", {"answer": ""}))["result"] == {"score": 1.0}
    second.close()


def test_a_template_that_takes_no_cancel_is_not_answered_twice(served: Callable[..., Host]) -> None:
    line = Line(served(fort()).port)
    line.send(json.dumps(frame("tasks.start", {"id": "stubborn"}, id=1)).encode() + b"\n")
    assert "result" in line.ask(frame("hello", {}, id=0))  # the template has begun

    assert line.ask(frame("tasks.cancel", {}, id=2))["id"] == 1
    assert line.hear() == {"jsonrpc": "2.0", "id": 2, "result": {"cancelled": True}}
    assert line.ask(frame("tasks.grade", {}, id=3))["id"] == 3
    line.close()


@pytest.mark.parametrize("odd_id", [[1], {"a": 1}, True, 1.5, "x" * 100_000])
def test_an_odd_id_is_given_back(odd_id: Any, served: Callable[..., Host]) -> None:
    line = Line(served(fort()).port)

    assert line.ask(frame("tasks.list", {}, id=odd_id))["id"] == odd_id
    line.close()


def test_an_id_as_long_as_a_frame_ends_the_conversation(served: Callable[..., Host]) -> None:
    line = Line(served(fort()).port)
    line.send(b'{"method":"tasks.start","params":{"id":"odd"},"id":"' + b"x" * (64 * MIB - 54) + b'"}\n')

    heard = line.hear()
    assert (heard["id"], heard["error"]["code"]) == (None, -32000)
    assert line.hear() is None
    line.close()


def test_a_result_nobody_asked_for_is_passed_over(served: Callable[..., Host]) -> None:
    line = Line(served(fort()).port)
    for odd in (1, "s1", None, [1]):
        line.send(json.dumps({"jsonrpc": "2.0", "id": odd, "result": {}}).encode() + b"\n")

    assert "result" in line.ask(frame("hello", {}))
    line.close()


def test_who_asks_without_reading_is_not_read_either(served: Callable[..., Host]) -> None:
    host = served(fort())
    greedy = socket.create_connection(("127.0.0.1", host.port))
    greedy.settimeout(1.0)
    request = json.dumps(frame("tasks.list", {})).encode() + b"\n"
    sent = 0
    with suppress(TimeoutError):
        while sent < 64 * MIB:
            sent += greedy.send(request * 1000)

    polite = Line(host.port)
    assert "result" in polite.ask(frame("hello", {}))
    assert sent < 64 * MIB
    polite.close()
    greedy.close()


def test_more_tools_than_anybody_needs_are_refused(served: Callable[..., Host]) -> None:
    line = Line(served(fort()).port)
    line.ask(frame("tasks.start", {"id": "watched"}))
    asked = [frame("tools.call", {"name": "nap", "arguments": '{"seconds": 60}'}, id=n) for n in range(300)]
    line.send(b"".join(json.dumps(each).encode() + b"\n" for each in asked))

    refused = [line.hear() for _ in range(300 - 256)]
    assert all("256 calls are running" in each["error"]["message"] for each in refused)
    line.send(json.dumps(frame("tasks.cancel", {}, id="end")).encode() + b"\n")
    assert len([line.hear() for _ in range(256)]) == 256
    assert line.hear()["result"] == {"cancelled": True}
    line.close()


def test_of_too_many_parked_sessions_the_oldest_is_given_up(
    served: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.channel.server.MOST_PARKED", 30)
    ledger = Ledger()
    host = served(fort(ledger))
    for _ in range(100):
        line = Line(host.port)
        assert "result" in line.ask(frame("tasks.start", {"id": "watched"}))
        line.close()
    wait_for(lambda: ledger.closed == 70)

    line = Line(host.port)
    message = line.ask(frame("tasks.grade", {}))["error"]["message"]
    assert message.startswith("30 parked sessions (sess-")
    assert message.count("sess-") == 20
    line.close()


def test_a_task_that_is_parked_too_long_is_given_up(
    served: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.channel.server.PARKED_SECONDS", 0.05)
    monkeypatch.setattr("proctor.channel.connection.PARKED_SECONDS", 0.05)
    ledger = Ledger()
    host = served(fort(ledger))
    quick, slow = Line(host.port), Line(host.port)
    assert "result" in quick.ask(frame("tasks.start", {"id": "watched"}))
    asked = frame("tasks.start", {"id": "watched", "args": {"seconds": 60}})
    slow.send(json.dumps(asked).encode() + b"\n")
    wait_for(lambda: ledger.opened == 2)
    quick.close()
    slow.close()

    wait_for(lambda: ledger.closed == 2)
    wait_for(lambda: not host.served.live)


# At random

TEMPLATES = [
    {"id": "watched"},
    {"id": "watched", "args": {"turns": 3}},
    {"id": "watched", "args": {"seconds": 0.005}},
    {"id": "watched", "args": {"seconds": 0.5}},
    {"id": "watched", "args": {"fails": True}},
    {"id": "watched", "args": {"turns": "x"}},
    {"id": "nothing"},
]


class Player:
    """One connection that asks whatever comes to its mind."""

    def __init__(self, host: Host, chance: random.Random, sessions: list[str]) -> None:
        self.line = Line(host.port)
        self.chance = chance
        self.sessions = sessions
        self.asked: list[Any] = []
        self.session = self.line.ask(frame("hello", {}, id="hello"))["result"]["session_id"]
        sessions.append(self.session)

    def act(self, number: int) -> None:
        method, params = self.chance.choice(
            [
                *(("tasks.start", template) for template in TEMPLATES),
                *[("tasks.grade", {"answer": "x"})] * 3,
                *[("tasks.reply", {"answer": "x"})] * 3,
                *[("tasks.cancel", {})] * 2,
                ("tasks.list", {}),
                ("hello", {}),
                ("hello", {"session_id": self.chance.choice(self.sessions)}),
                ("tools.call", {"name": "nap", "arguments": '{"seconds": 0.002}'}),
                ("tools.call", {"name": "nap", "arguments": '{"seconds": 30}'}),
                ("nothing", {}),
            ]
        )
        id = None if self.chance.random() < 0.1 else number  # noqa: A001
        if id is not None:
            self.asked.append(id)
        self.line.send(json.dumps(frame(method, params, id)).encode() + b"\n")
        if self.chance.random() < 0.3:
            time.sleep(self.chance.random() * 0.004)

    def check(self) -> None:
        """Everything with an id was answered once, and nothing else was said."""
        self.line.send(json.dumps(frame("tasks.cancel", {}, id="last")).encode() + b"\n")
        heard: Counter[Any] = Counter()
        while "last" not in heard:
            reply = self.line.hear()
            assert reply is not None
            heard[reply["id"]] += 1
        assert heard == Counter([*self.asked, "last"])


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_asked_in_whatever_order_is_answered_once_and_leaves_nothing(
    seed: int, served: Callable[..., Host]
) -> None:
    chance, ledger, sessions = random.Random(seed), Ledger(), ["sess-none"]
    host = served(fort(ledger))
    players = [Player(host, chance, sessions) for _ in range(4)]
    for number in range(400):
        place = chance.randrange(len(players))
        players[place].act(number)
        if chance.random() < 0.03:
            players[place].line.close()
            players[place] = Player(host, chance, sessions)
    for player in players:
        player.check()
        player.line.close()

    wait_for(lambda: not host.served.live)
    host.give_up_all()
    wait_for(lambda: ledger.opened == ledger.closed)
    wait_for(lambda: host.tasks() == 0)
