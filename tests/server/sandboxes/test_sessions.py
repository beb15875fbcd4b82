"""HostedRuntime against the real server: environments that run there while their rollouts are played here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

import proctor
from proctor import Taskset
from proctor.errors import ConfigError
from proctor.models.scripted import Scripted
from proctor.runtimes.hosted import HostedRuntime
from proctor.server.people.tokens import Caller
from proctor.server.problems import NotFoundError
from proctor.server.sandboxes.backend import ServedProgram
from proctor.server.sandboxes.sessions import PublishedVersion
from proctor.task import Task, mint_task
from tests.server.serving import Api, Served
from tests.waiting import SECONDS, wait_for

SOURCES = str(Path(proctor.__file__).parents[1])
ENV = """
import os
from proctor import Environment

env = Environment("shop")

@env.template()
async def sight(path: str):
    answer = yield f"Is {path} there?"
    yield float(os.path.exists(path))
"""


class OneShelf:
    """Environments in one folder, served with the Python that runs the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, connection: Connection, caller: Caller, slug: str) -> PublishedVersion:
        if slug not in ("root/shop", "root/broken") or caller.user == "eve":
            raise NotFoundError(f"There is no environment {slug!r}.")
        return PublishedVersion(id="ver-1", slug=f"{slug}@1.0.0")

    async def program(self, published: PublishedVersion, port: int) -> ServedProgram:
        name = published.slug.partition("/")[2].partition("@")[0]
        file = self.folder / f"{name}.py"
        command = [
            sys.executable,
            "-m",
            "proctor",
            "serve",
            str(file),
            "--host",
            "127.0.0.1",
            "-p",
            str(port),
        ]
        mounts = dict.fromkeys([sys.prefix, sys.base_prefix, SOURCES, str(self.folder)])
        variables = {"PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"}
        return ServedProgram(command=command, port=port, variables=variables, mounts=[*mounts])


@pytest.fixture
def shelf(shared: Served, tmp_path: Path) -> Iterator[Served]:
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "shop.py").write_text(ENV)
    (folder / "broken.py").write_text("raise SystemExit('out of pears')")
    known = shared.platform.sessions.library
    shared.platform.sessions.library = OneShelf(folder)
    yield shared
    shared.platform.sessions.library = known


def runtime_of(user: Api, environment: str = "root/shop") -> HostedRuntime:
    return HostedRuntime(
        user.url, token=user.token, environment=environment, poll_seconds=0.05, start_seconds=60
    )


def seen(runtime: HostedRuntime, folder: Path, *paths: str) -> list[Any]:
    """What rollouts came to that ask the environment whether it sees these paths."""
    tasks = [mint_task("shop", "sight", {"path": path}) for path in paths]
    job = Taskset("looks", tasks).run(model=Scripted(), runtime=runtime, output_dir=str(folder))
    rollouts = asyncio.run(job).result.rollouts
    return [rollout.failure or (rollout.score and rollout.score.reward) for rollout in rollouts]


def test_a_rollout_is_played_with_an_environment_that_the_server_runs(shelf: Served, tmp_path: Path) -> None:
    user = shelf.user("ada")
    secret = tmp_path / "secret"
    secret.touch()

    paths = ("/usr", str(secret), str(shelf.platform.data))

    assert seen(runtime_of(user), tmp_path, *paths) == [1.0, 0.0, 0.0]
    ended = user.get("/runtime/sessions")["items"]
    assert {each["status"] for each in ended} == {"ended"}
    assert {each["environment"] for each in ended} == {"root/shop@1.0.0"}
    assert [*(shelf.platform.data / "places").iterdir()] == []


def test_an_environment_that_does_not_start_is_told_in_its_own_words(shelf: Served, tmp_path: Path) -> None:
    (failure,) = seen(runtime_of(shelf.root, "root/broken"), tmp_path, "/")
    assert "out of pears" in failure.message


def test_an_environment_that_one_may_not_read_is_not_there(shelf: Served) -> None:
    eve = shelf.user("eve")
    answer = eve("POST", "/runtime/sessions", {"environment": "root/shop"})
    assert answer.status == 404


def test_the_session_of_another_is_not_there_and_its_tunnel_is_shut(shelf: Served) -> None:
    mallory = shelf.user("mallory")
    made = shelf.root.post("/runtime/sessions", {"environment": "root/shop"})
    where = f"/runtime/sessions/{made['id']}"
    assert mallory("GET", where).status == 404
    assert mallory("DELETE", where).status == 404

    async def enter() -> None:
        runtime = runtime_of(mallory)
        try:
            async with runtime._tunnel(made["id"]):
                pass
        finally:
            await runtime.close()

    with pytest.raises(Exception, match="403"):
        asyncio.run(enter())
    shelf.root.ok("DELETE", where)


def test_an_open_tunnel_is_cut_when_its_user_is_disabled(shelf: Served) -> None:
    dora = shelf.user("dora")
    made = dora.post("/runtime/sessions", {"environment": "root/shop"})
    where = f"/runtime/sessions/{made['id']}"
    wait_for(lambda: dora.get(where)["status"] == "ready")

    async def talk() -> tuple[bytes, int | None]:
        runtime = runtime_of(dora)
        try:
            async with runtime._tunnel(made["id"]) as tunnel:
                await asyncio.to_thread(shelf.root.ok, "PATCH", "/users/dora?disabled=true")
                while data := await asyncio.wait_for(tunnel.receive(), SECONDS):
                    assert data
                return data, tunnel._socket.close_code
        finally:
            await runtime.close()

    assert asyncio.run(talk()) == (b"", 4401)
    shelf.root.ok("DELETE", where)


def test_a_token_is_told_only_once_it_is_ready_and_only_to_who_asked(shelf: Served) -> None:
    made = shelf.root.post("/runtime/sessions", {"environment": "root/shop"})
    where = f"/runtime/sessions/{made['id']}"
    assert (made["status"], made.get("token")) == ("starting", None)
    wait_for(lambda: shelf.root.get(where)["status"] != "starting")
    shown = shelf.root.get(where)
    assert shown["token"]
    assert all(each["token"] is None for each in shelf.root.get("/runtime/sessions")["items"])
    shelf.root.ok("DELETE", where)


def test_a_bad_key_is_known_before_anything_is_played(shared: Served) -> None:
    async def check() -> None:
        runtime = HostedRuntime(shared.url, token="proctor_bad_key")
        try:
            await runtime.check()
        finally:
            await runtime.close()

    with pytest.raises(ConfigError, match="PROCTOR_API_KEY"):
        asyncio.run(check())


async def placed(runtime: HostedRuntime) -> None:
    try:
        async with runtime(Task(id="sight", env="shop")):
            pass
    finally:
        await runtime.close()
