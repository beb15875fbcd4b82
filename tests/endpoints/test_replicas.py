"""Several equal servers behind one name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from proctor import Scripted
from proctor.contracts import Model, Request
from proctor.endpoints.replicas import ReplicatedModel
from proctor.errors import (
    AuthError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
    UnreachableError,
)
from proctor.trace import Reply

HELLO = [{"role": "user", "content": "hello"}]


class Server(Scripted):
    """A server that can be switched off, and counts what it was asked."""

    def __init__(self, error: ModelError | None = None) -> None:
        super().__init__()
        self.error = error
        self.routes: list[Any] = []
        self.checks = 0

    async def check(self) -> None:
        self.checks += 1
        if self.error is not None:
            raise self.error

    async def complete(self, request: Request) -> Reply:
        self.routes.append(request.route)
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return await super().complete(request)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def replicas(*servers: Model, clock: Callable[[], float] | None = None) -> ReplicatedModel:
    named = [(server, f"http://{place}") for place, server in enumerate(servers)]
    return ReplicatedModel(named, clock) if clock else ReplicatedModel(named)


def ask(model: Model, *routes: Any) -> list[Reply]:
    async def main() -> list[Reply]:
        return await asyncio.gather(*(model.complete(Request(HELLO, route=route)) for route in routes))

    return asyncio.run(main())


def test_all_requests_of_a_task_go_to_one_server_and_tasks_are_spread_evenly() -> None:
    servers = [Server(), Server(), Server()]
    model = replicas(*servers)

    for _ in range(3):
        ask(model, *range(12))

    assert sorted(route for server in servers for route in set(server.routes)) == list(range(12))
    assert [len(server.routes) for server in servers] == [12, 12, 12]


def test_a_reply_says_who_gave_it() -> None:
    assert ask(replicas(Server(), Server()), 1, 2)[1].served_by == "http://1"


def test_a_server_that_is_down_is_survived_and_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    dead, living = Server(UnreachableError("Cannot connect to http://0")), Server()
    model = replicas(dead, living)

    with caplog.at_level(logging.INFO, "proctor"):
        replies = ask(model, *range(20))
        replies += ask(model, *range(20))

    assert {reply.served_by for reply in replies} == {"http://1"}
    assert [record.getMessage() for record in caplog.records] == [
        "http://0 is left out for a while, the other replicas take its work: Cannot connect to http://0"
    ]


def test_a_server_that_rests_is_not_asked_and_then_with_one_request_first() -> None:
    clock = Clock()
    weak, strong = Server(UnreachableError("gone")), Server()
    model = replicas(weak, strong, clock=clock)
    ask(model, "a")
    asked = len(weak.routes)

    ask(model, *"bcdef")
    assert len(weak.routes) == asked

    clock.now += 6
    ask(model, *"ghijk")
    assert len(weak.routes) == asked + 1

    clock.now += 6
    ask(model, *"lmnop")
    assert len(weak.routes) == asked + 1, "the second rest is longer"


def test_a_server_that_comes_back_gets_work_again(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    weak, strong = Server(UnreachableError("gone")), Server()
    model = replicas(weak, strong, clock=clock)
    ask(model, "a")
    weak.error = None
    clock.now += 6

    with caplog.at_level(logging.INFO, "proctor"):
        ask(model, "b")
        replies = ask(model, *"cdef")

    assert "http://0 answers again" in caplog.text
    assert {reply.served_by for reply in replies} == {"http://0", "http://1"}


def test_one_breakdown_is_passed_over_and_three_in_a_row_are_a_reason_to_rest() -> None:
    broken, sound = Server(OverloadedError("500", status=500)), Server()
    model = replicas(broken, sound)

    for route in range(10):
        ask(model, route)

    assert len(broken.routes) == 3
    assert len(sound.routes) == 10


def test_what_is_wrong_with_the_request_is_asked_of_one_server_only() -> None:
    servers = [Server(RequestRefusedError("400", status=400)), Server()]

    with pytest.raises(RequestRefusedError):
        ask(replicas(*servers), 0)

    assert servers[1].routes == []


def test_a_server_that_wants_fewer_requests_is_left_alone_as_long_as_it_asks() -> None:
    clock = Clock()
    tired, fresh = Server(RateLimitError("429", retry_after_seconds=30)), Server()
    model = replicas(tired, fresh, clock=clock)

    for route in range(10):
        ask(model, route)
    clock.now += 31
    tired.error = None
    ask(model, *range(20, 30))

    assert len(tired.routes) == 1 + 5
    assert len(fresh.routes) == 10 + 5


def test_a_rate_limit_of_all_servers_is_the_callers_to_wait_out() -> None:
    servers = [Server(RateLimitError("429", retry_after_seconds=3)) for _ in range(3)]

    with pytest.raises(RateLimitError) as raised:
        ask(replicas(*servers), 0)

    assert raised.value.retry_after_seconds == 3
    assert [len(server.routes) for server in servers] == [1, 1, 1]


def test_after_a_time_out_the_next_try_goes_to_another_server() -> None:
    stuck, sound = Server(ModelTimeoutError("600 s")), Server()
    model = replicas(stuck, sound)

    with pytest.raises(ModelTimeoutError):
        ask(model, "task")

    assert ask(model, "task")[0].served_by == "http://1"
    assert stuck.routes == ["task"]


def test_a_server_that_only_times_out_is_left_out() -> None:
    stuck, sound = Server(ModelTimeoutError("600 s")), Server()
    model = replicas(stuck, sound)
    failed = 0

    for route in range(20):
        try:
            ask(model, route)
        except ModelTimeoutError:
            failed += 1

    assert failed == 3


def test_when_all_are_down_the_error_is_that_of_a_server() -> None:
    model = replicas(Server(UnreachableError("one")), Server(UnreachableError("two")))

    with pytest.raises(UnreachableError, match="two"):
        ask(model, 0)
    with pytest.raises(UnreachableError):
        ask(model, 0)


def test_the_check_survives_one_server_that_is_down_but_no_refused_key() -> None:
    asyncio.run(replicas(Server(UnreachableError("down")), Server()).check())

    with pytest.raises(AuthError):
        asyncio.run(replicas(Server(), Server(AuthError("no", status=401))).check())
    with pytest.raises(UnreachableError, match="one"):
        asyncio.run(replicas(Server(UnreachableError("one")), Server(UnreachableError("two"))).check())


def test_routes_are_forgotten_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.endpoints.replicas.REMEMBERED_ROUTES", 10)
    model = replicas(Server(), Server())

    ask(model, *range(100))

    assert len(model._routes) == 10
