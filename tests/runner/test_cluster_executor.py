"""Attempts on a cluster: where they are placed, what becomes of them, and what the server hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from proctor.api.runner import HostAttemptId, Lease, PlacedAttempts, RunAssignment
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.cluster.messages import ProcessEnd
from proctor.errors import ConfigError
from proctor.runner import cluster_executor
from proctor.runner.cluster_executor import ClusterExecutor
from proctor.runner.host_settings import ClusterSettings, HostSettings
from proctor.runner.node_messages import NodeGreeting
from tests.runner.cluster_double import ClusterDouble, make_node
from tests.runner.server import Answer, Hearing, hearing
from tests.waiting import SECONDS

ASSIGNMENT = RunAssignment(
    run_id="run-1f",
    attempt=1,
    token="of-the-run",
    environment="ada/sums",
    version="1.0",
    module="sums",
    wheel_name="sums-1.0-py3-none-any.whl",
    wheel_sha256="0" * 64,
    model="parrot",
    deadline_at=0.0,
    lease_seconds=0.08,
    delegate_token="of-the-attempt",
)
NAME = "run-1f-1"
GO_ON = Lease()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK_SECONDS", "PLACED_LOOK_SECONDS", "PAUSE_SECONDS", "STALE_SECONDS"):
        monkeypatch.setattr(cluster_executor, name, 0.01)


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


class Playing(NamedTuple):
    executor: ClusterExecutor
    cluster: ClusterDouble
    server: Hearing


@asynccontextmanager
async def playing(
    folder: Path, cluster: ClusterDouble, lease: Lease = GO_ON, over: list[HostAttemptId] | None = None
) -> AsyncIterator[Playing]:
    def answer(path: str, body: bytes) -> Answer:
        if path.endswith("/heartbeat"):
            return Answer(200, msgspec.json.encode(lease))
        if path == "/hosts/attempts":
            return Answer(200, msgspec.json.encode(PlacedAttempts(over or [])))
        return Answer(204, b"")

    with hearing(answer) as heard:
        server = ServerConnection(Context(url=heard.url, token="of-the-runner"), tries=1)
        on_cluster = ClusterSettings(address="ray", url="http://server:8700")
        executor = ClusterExecutor(
            "cluster-1", HostSettings(data=folder, at_once=100), on_cluster, server, cluster.connect
        )
        running = asyncio.create_task(executor.run())
        try:
            yield Playing(executor, cluster, heard)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await server.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


@in_loop
async def test_an_attempt_is_placed_where_most_is_free_with_its_own_tokens_alone(tmp_path: Path) -> None:
    cluster = ClusterDouble(make_node("small", 1), make_node("large", 4))
    async with playing(tmp_path, cluster) as (executor, _, server):
        await until(lambda: executor.has_room(0))
        task = asyncio.create_task(executor.play(ASSIGNMENT))
        await until(lambda: cluster.requests)

        assert cluster.places == {NAME: "large"}
        assert cluster.requests[NAME].assignment == ASSIGNMENT
        assert cluster.requests[NAME].url == "http://server:8700"
        assert b"of-the-runner" not in msgspec.json.encode(cluster.requests[NAME])

        cluster.ends[NAME].set_result(ProcessEnd(code=-9))
        await task
        (lost,) = server.losses
        assert lost.cause.message == "The process that played the run on its node was killed by SIGKILL."
        assert NAME in cluster.killed


@in_loop
async def test_a_full_cluster_and_one_without_usable_nodes_claim_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = ClusterDouble(make_node("first", 1), make_node("second", 1), make_node("tiny", 0.5))
    cluster.greetings = {
        "first": NodeGreeting(problems=("Runs need bubblewrap.",)),
        "second": NodeGreeting(proctor="0.0.9"),
    }
    async with playing(tmp_path, cluster) as (executor, _, server):
        await until(lambda: caplog.text.count("is skipped") == 2)
        assert "Node first (10.0.0.5) is skipped: Runs need bubblewrap." in caplog.text
        assert "Proctor is 0.0.9 there" in caplog.text
        assert not executor.has_room(0)

        del cluster.greetings["first"]  # repaired
        executor.nodes.record(cluster.seen[0], [])
        assert executor.has_room(0)
        task = asyncio.create_task(executor.play(ASSIGNMENT))
        await until(lambda: cluster.requests)
        assert not executor.has_room(1)  # although the cluster does not count it yet
        task.cancel()
        assert server.losses == []


@in_loop
async def test_a_node_that_refuses_gives_the_run_back_with_the_cause(tmp_path: Path) -> None:
    cluster = ClusterDouble(make_node("only"))
    async with playing(tmp_path, cluster) as (executor, _, server):
        await until(lambda: executor.has_room(0))
        cluster.greetings["only"] = NodeGreeting(problems=("No control group can be made.",))

        await executor.play(ASSIGNMENT)

        (lost,) = server.losses
        assert lost.cause.message == "Node only cannot play runs: No control group can be made."
        assert (lost.retry, lost.blameless) == (True, True)
        assert cluster.ends == {}
        assert not executor.has_room(0)


@in_loop
async def test_a_host_that_ends_leaves_its_attempts_playing_and_the_next_finds_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    cluster = ClusterDouble(make_node("only"))
    async with playing(tmp_path, cluster) as (executor, _, server):
        await until(lambda: executor.has_room(0))
        task = asyncio.create_task(executor.play(ASSIGNMENT))
        await until(lambda: "plays on node only" in caplog.text)
        task.cancel()
    assert (list(cluster.ends), server.losses) == ([NAME], [])

    cluster.add("run-2f-1")
    cluster.add("of somebody else")
    async with playing(tmp_path, cluster, over=[HostAttemptId("run-2f", 1)]) as (_, _, server):
        await until(lambda: f"Found {NAME} again" in caplog.text and "run-2f-1" in cluster.killed)
        cluster.lose(NAME)
        await until(lambda: server.losses)
    assert ("/hosts/runs/run-1f/lost", True) in [(path, True) for path, _ in server.heard]
    assert (len(server.losses), server.losses[0].blameless) == (1, True)
    assert list(cluster.ends) == ["of somebody else"]


@in_loop
async def test_a_broken_connection_is_made_again_and_says_nothing_of_attempts(tmp_path: Path) -> None:
    cluster = ClusterDouble(make_node("only"))
    async with playing(tmp_path, cluster) as (executor, _, server):
        await until(lambda: executor.has_room(0))
        task = asyncio.create_task(executor.play(ASSIGNMENT))
        await until(lambda: cluster.requests)

        cluster.break_connection()
        await until(lambda: cluster.connections == 2 and executor.has_room(1))

        assert (server.losses, cluster.killed.count(NAME)) == ([], 0)
        cluster.ends[NAME].set_result(ProcessEnd(code=0))
        await task


@in_loop
async def test_a_stop_reaches_an_attempt_that_waits_for_room(tmp_path: Path) -> None:
    cluster = ClusterDouble(make_node("only"))
    async with playing(tmp_path, cluster, Lease(stop=True)) as (executor, _, server):
        await until(lambda: executor.has_room(0))
        cluster.full = True

        await executor.play(ASSIGNMENT)

        (lost,) = server.losses
        assert lost.cause.message == "The run was stopped before it began."
        assert NAME in cluster.killed


@in_loop
async def test_a_cluster_that_cannot_be_reached_at_the_start_is_an_error(tmp_path: Path) -> None:
    def refuse(_: object) -> AbstractAsyncContextManager[ClusterDouble]:
        raise ConfigError("No Ray cluster runs on this machine.")

    server = ServerConnection(Context(url="http://127.0.0.1:9"), tries=1)
    on_cluster = ClusterSettings(address="ray", url="http://server:8700")
    executor = ClusterExecutor("cluster-1", HostSettings(data=tmp_path), on_cluster, server, refuse)

    with pytest.raises(ConfigError, match="No Ray cluster runs"):
        await executor.run()


def test_a_name_that_somebody_else_on_the_cluster_chose_is_no_attempt() -> None:
    assert cluster_executor.parse_attempt("run-0a-3") == HostAttemptId("run-0a", 3)
    for name in ("run-0a-" + "9" * 5_000, "run-0a-99999999999", "run-0a-\u0663", "run-0a-3\n", "actor"):
        assert cluster_executor.parse_attempt(name) is None
