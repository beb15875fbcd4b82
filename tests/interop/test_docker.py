"""Places for rollouts in containers of a real Docker engine, where the real `proctor serve` answers."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.channel.client import connect
from proctor.channel.grades import read_prompt
from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.docker import DockerRuntime
from proctor.runtimes.runtime import Runtime
from proctor.task import Task
from proctor.trace import text_of

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("nothing_left")]

DRIVER = Path(__file__).with_name("driver.py")
Say = Callable[..., str]
Ours = Callable[[], set[str]]
TASK = Task(id="look around")


async def asked(runtime: Runtime, deed: str) -> dict[str, Any]:
    """What a deed gives, which is done inside."""
    channel = await connect(runtime.url, runtime.token)
    try:
        frame = await channel.ask("tasks.start", {"id": deed, "args": {}})
        result: dict[str, Any] = json.loads(text_of(read_prompt(frame["prompt"], deed)[-1]))
        return result
    finally:
        await channel.close()


def seen(deed: str, runtime: DockerRuntime) -> dict[str, Any]:
    async def play() -> dict[str, Any]:
        async with runtime(TASK) as place:
            return await asked(place, deed)

    return asyncio.run(play())


@contextmanager
def driving(image: str, count: int) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, str(DRIVER), image, str(count)]
    driver = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "all are up\n"
        yield driver
    finally:
        driver.kill()
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()


def test_the_next_start_removes_what_a_killed_run_left_and_nothing_else(
    image: str, docker: Say, ours: Ours
) -> None:
    foreign = docker("run", "--detach", "--label", "proctor.task=mine", image, "sleep", "600").strip()
    try:
        with driving(image, 2):
            alive = ours()
            with driving(image, 3) as killed:
                assert len(ours()) == 5
                killed.send_signal(signal.SIGKILL)
                killed.wait()
            assert len(ours()) == 5

            asyncio.run(DockerRuntime(image, pull="never").check())

            assert ours() == alive
            assert len(alive) == 2
            assert docker("inspect", "--format", "{{.State.Running}}", foreign).strip() == "true"
    finally:
        docker("rm", "--force", foreign)


def test_an_interrupted_run_takes_its_containers_along(image: str, ours: Ours) -> None:
    with driving(image, 2) as driver:
        driver.send_signal(signal.SIGINT)
        assert driver.wait(60) == 130

        assert ours() == set()


def test_a_rollout_that_is_cancelled_while_it_starts_leaves_no_container(image: str, ours: Ours) -> None:
    async def play(runtime: DockerRuntime) -> None:
        async with runtime(TASK):
            await asyncio.Event().wait()

    async def cancelled_after(seconds: float) -> None:
        runtime = DockerRuntime(image, pull="never")
        await runtime.check()
        playing = asyncio.ensure_future(play(runtime))
        await asyncio.sleep(seconds)
        playing.cancel()
        await asyncio.wait([playing])

    for seconds in (0.0, 0.02, 0.05, 0.1, 0.2):
        asyncio.run(cancelled_after(seconds))
        assert ours() == set()


def test_a_container_that_ends_at_once_tells_its_last_words(image: str) -> None:
    runtime = DockerRuntime(image, command=["sh", "-c", "echo the pantry is empty >&2; exit 3"])

    with pytest.raises(EnvError, match=r"(?s)exit code 3.*the pantry is empty") as raised:
        seen("look", runtime)

    assert not raised.value.transient


def test_a_container_that_never_listens_is_given_up_in_time(image: str) -> None:
    command = ["sh", "-c", "echo thinking; sleep 600"]
    runtime = DockerRuntime(image, command=command, start_seconds=1.5)

    with pytest.raises(InfraError, match=r"(?s)no answer on port 8765.*within 1.5 s.*thinking"):
        seen("look", runtime)


def test_a_command_that_the_image_does_not_have_is_named(image: str) -> None:
    with pytest.raises(EnvError, match="no-such-program"):
        seen("look", DockerRuntime(image, command="no-such-program"))


def test_a_container_that_ends_during_a_rollout_is_blamed_for_the_broken_channel(image: str) -> None:
    with pytest.raises(EnvError, match=r"(?s)exit code 9.*I was told to end") as raised:
        seen("die", DockerRuntime(image))

    assert isinstance(raised.value.__cause__, InfraError)


def test_a_container_has_the_memory_it_was_given(image: str) -> None:
    runtime = DockerRuntime(image, memory="64m", cpus=0.5)

    assert seen("look", runtime)["memory"] == str(64 * 1024 * 1024)
    with pytest.raises(EnvError, match="used up its memory of 64m; give it more"):
        seen("eat", runtime)


def test_a_container_without_a_network_has_none_and_is_reached_all_the_same(image: str) -> None:
    inside = seen("look", DockerRuntime(image, network="none"))

    assert [name for name in inside["interfaces"] if name.startswith("eth")] == []
    assert inside["routes"] == 0
    assert seen("look", DockerRuntime(image))["routes"] > 0


def test_a_broken_container_without_a_network_tells_its_last_words_too(image: str) -> None:
    command = ["sh", "-c", "echo no luck; exit 4"]

    with pytest.raises(EnvError, match=r"(?s)exit code 4.*no luck"):
        seen("look", DockerRuntime(image, network="none", command=command))


def test_settings_that_the_engine_cannot_meet_are_told_before_any_rollout(image: str) -> None:
    for settings in ({"cpus": 9999.0}, {"memory": "1k"}, {"run_args": ["--no-such-option"]}):
        with pytest.raises(ConfigError, match="can be created with these settings"):
            asyncio.run(DockerRuntime(image, **settings).check())


def test_variables_arrive_and_those_of_the_client_stay_its_own(
    image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_HERE", "two\nlines")
    env = {"GIVEN": "a=b", "FROM_HERE": None, "DOCKER_HOST": "unix:///nowhere", "HOME": "/srv"}

    inside = seen("look", DockerRuntime(image, env=env))["variables"]

    assert {name: inside[name] for name in env} == {**env, "FROM_HERE": "two\nlines"}


def test_bubblewrap_works_where_the_sandbox_is_asked_for_and_only_there(image: str) -> None:
    given = seen("sandbox", DockerRuntime(image, sandbox=True))["output"]
    if given == "there is no bwrap":
        pytest.skip(given)

    assert given == "inside\n"
    assert seen("sandbox", DockerRuntime(image, sandbox=True, user="1000:1000"))["output"] == "inside\n"
    assert seen("sandbox", DockerRuntime(image))["output"] != "inside\n"
