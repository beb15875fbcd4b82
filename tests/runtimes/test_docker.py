"""DockerRuntime against a program that stands for `docker`; a real engine is used in tests/interop."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.docker import DockerRuntime
from proctor.runtimes.owners import ProcessIdentity, is_alive, stat_of, this_machine, this_process
from proctor.task import Task

TASK = Task(id="a task")
Serve = Callable[[], AbstractAsyncContextManager[int]]
GONE = {"err": "Error: No such object: x", "code": 1}


def ended(code: int = 0, out_of_memory: bool = False) -> dict[str, str]:
    state = {"Running": False, "ExitCode": code, "OOMKilled": out_of_memory}
    return {"out": f"{json.dumps(state)}\t{{}}\n"}


def play(
    runtime: DockerRuntime, docker: Any, served: Serve, error: Exception | None = None
) -> tuple[str, str]:
    """One rollout in a container whose port is answered; gives the url and the token."""

    async def played() -> tuple[str, str]:
        async with served() as port:
            docker.publishes(port)
            async with runtime(TASK) as place:
                if error is not None:
                    raise error
                return place.url, place.token or ""

    return asyncio.run(played())


def option_values(words: list[str], name: str) -> list[str]:
    return [word.partition("=")[2] for word in words if word.startswith(f"--{name}=")]


def test_a_rollout_costs_three_calls_and_none_of_them_shows_the_token(docker: Any, served: Serve) -> None:
    runtime = DockerRuntime("letters", env={"SECRET": "hidden"})
    asyncio.run(runtime.check())
    before = len(docker.calls)

    url, token = play(runtime, docker, served)

    calls = docker.calls[before:]
    assert [call["words"][0] for call in calls] == ["run", "inspect", "rm"]
    assert url.startswith("tcp://127.0.0.1:")
    assert calls[0]["environ"]["PROCTOR_SERVE_TOKEN"] == token
    assert calls[0]["environ"]["SECRET"] == "hidden"
    assert option_values(calls[0]["words"], "env") == ["SECRET", "PROCTOR_SERVE_TOKEN"]
    assert not any(token in word or "hidden" in word for call in calls for word in call["words"])
    assert len(token) >= 24


def test_settings_stand_on_the_command_line(docker: Any, served: Serve, tmp_path: Path) -> None:
    runtime = DockerRuntime(
        "letters",
        command="proctor serve other.py",
        memory="512m",
        cpus=1.5,
        user="1000",
        mounts=[f"{tmp_path}:/data:ro", "cache:/cache"],
        labels={"run": "r1"},
        run_args=["--gpus", "all"],
    )

    play(runtime, docker, served)

    (words,) = docker.called("run")
    assert words[-4:] == ["sha256:abc", "proctor", "serve", "other.py"]
    assert "--init" in words
    assert words[words.index("--gpus") + 1] == "all"
    assert option_values(words, "publish") == ["127.0.0.1::8765"]
    assert option_values(words, "memory") == option_values(words, "memory-swap") == ["512m"]
    assert option_values(words, "cpus") == ["1.5"]
    assert option_values(words, "user") == ["1000"]
    assert option_values(words, "volume") == [f"{tmp_path}:/data:ro", "cache:/cache"]
    assert option_values(words, "security-opt") == []
    labels = dict(label.split("=", 1) for label in option_values(words, "label"))
    assert labels["run"] == "r1"
    assert labels["proctor.task"] == "a task"
    assert labels["proctor.owner"] == str(this_process())
    assert int(labels["proctor.expires"]) > time.time() + 3600


def test_the_sandbox_opens_what_bubblewrap_needs(docker: Any, served: Serve) -> None:
    play(DockerRuntime("letters", sandbox=True), docker, served)

    (words,) = docker.called("run")
    profile, *others = option_values(words, "security-opt")
    assert "bpf" in json.loads(Path(profile.removeprefix("seccomp=")).read_text())["syscalls"][0]["names"]
    assert others == ["apparmor=unconfined", "systempaths=unconfined"]


def test_variables_that_docker_itself_reads_do_not_reach_it(docker: Any, served: Serve) -> None:
    play(DockerRuntime("letters", env={"DOCKER_HOST": "tcp://inner"}), docker, served)

    run = next(call for call in docker.calls if call["words"][0] == "run")
    assert run["environ"].get("DOCKER_HOST") != "tcp://inner"
    assert "--env=DOCKER_HOST=tcp://inner" in run["words"]


def test_a_container_without_a_network_is_reached_through_the_program(docker: Any, served: Serve) -> None:
    async def played() -> tuple[Path, bytes]:
        async with served() as port, DockerRuntime("letters", network="none", port=port)(TASK) as place:
            socket = Path(urlsplit(place.url).path)
            reader, writer = await asyncio.open_unix_connection(socket)
            writer.write(b'{"id": 7, "method": "tasks.list"}\n')
            line = await reader.readline()
            writer.close()
            return socket, line

    socket, line = asyncio.run(played())

    assert json.loads(line)["id"] == 7
    assert not socket.exists()
    assert option_values(docker.called("run")[0], "publish") == []


def test_an_engine_elsewhere_is_reached_through_the_program_too(docker: Any, served: Serve) -> None:
    docker.answers(context={"out": "ssh://somebody@elsewhere\n"})

    async def played() -> str:
        async with served() as port, DockerRuntime("letters", port=port)(TASK) as place:
            return place.url

    assert asyncio.run(played()).startswith("unix://")
    assert option_values(docker.called("run")[0], "publish") == []


# What is said when it does not work


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (
            {"ps": {"err": "Cannot connect to the Docker daemon at unix:///x", "code": 1}},
            "the Docker engine does not answer; start it, or point DOCKER_HOST to it: Cannot connect",
        ),
        (
            {"image": {"err": "Error: No such image: letters", "code": 1}},
            "no image 'letters'; build it: docker build -t letters .",
        ),
    ],
)
def test_check_says_what_is_missing_before_anything_is_started(
    docker: Any, answers: dict[str, Any], sentence: str
) -> None:
    docker.answers(**answers)

    with pytest.raises(ConfigError, match=sentence):
        asyncio.run(DockerRuntime("letters", pull="never").check())

    assert docker.called("run") == docker.called("pull") == []


def test_an_image_that_is_missing_is_pulled_once_for_all_rollouts(docker: Any) -> None:
    missing = {"err": "Error: No such image: letters", "code": 1}
    docker.answers(image=missing, pull={"err": "pull access denied", "code": 1})
    runtime = DockerRuntime("letters")

    with pytest.raises(ConfigError, match="is not here and cannot be pulled: pull access denied"):
        asyncio.run(runtime.check())

    assert docker.called("pull") == [["pull", "--quiet", "letters"]]


def test_workers_on_one_machine_pull_an_image_once(
    docker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    missing = {"err": "Error: No such image: letters", "code": 1}
    here = {"out": "sha256:abc\n"}
    docker.answers(image=missing, pull={"sleep": 0.3, "then": {"image": here}})

    async def check_all() -> None:
        await asyncio.gather(*(DockerRuntime("letters").check() for _ in range(3)))

    asyncio.run(check_all())

    assert docker.called("pull") == [["pull", "--quiet", "letters"]]


def test_settings_that_the_engine_refuses_are_told_before_any_rollout(docker: Any) -> None:
    docker.answers(
        create={"err": "docker: Error response: only 2 CPUs\n\nRun 'docker run --help' for more", "code": 125}
    )

    with pytest.raises(
        ConfigError, match=r"letters can be created with these settings: Error response: only 2 CPUs$"
    ):
        asyncio.run(DockerRuntime("letters", cpus=99).check())

    assert docker.called("run") == []


def test_a_folder_to_mount_that_is_not_there_is_named(docker: Any) -> None:
    with pytest.raises(ConfigError, match="cannot mount /no/such/folder: it does not exist"):
        asyncio.run(DockerRuntime("letters", mounts=["/no/such/folder:/data"]).check())


def test_a_container_without_the_python_to_reach_it_is_told(docker: Any) -> None:
    docker.answers(exec={"err": "OCI runtime exec failed", "code": 127})
    docker.publishes(1)

    async def played() -> None:
        async with DockerRuntime("letters", network="none", python="snake")(TASK):
            raise AssertionError("nothing to play in")

    with pytest.raises(EnvError, match="snake cannot be run there; name its own"):
        asyncio.run(played())


def test_without_the_program_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigError, match="no `docker` program on PATH"):
        asyncio.run(DockerRuntime("letters").check())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"image": ""}, "docker://IMAGE"),
        ({"memory": "lots"}, "memory 'lots' is not a size; write 512m or 2g"),
        ({"network": "host"}, "use 'bridge' or 'none'"),
        ({"network": "none", "reach": "port"}, "has no port to reach"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        DockerRuntime(**{"image": "letters", **settings})


def test_a_variable_to_pass_on_that_is_not_set_is_named(docker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_HERE", raising=False)

    with pytest.raises(ConfigError, match="NOT_HERE must be passed on, but is not set"):
        asyncio.run(DockerRuntime("letters", env={"NOT_HERE": None}).check())


@pytest.mark.parametrize(
    ("inspect", "logs", "kind", "sentence"),
    [
        (ended(3), "boom", EnvError, r"of letters ended with exit code 3; its last lines:\nboom"),
        (
            ended(1),
            "Error: bubblewrap cannot create a sandbox here (No permissions)",
            EnvError,
            "workspaces in a container need sandbox=True",
        ),
        (ended(137), "", InfraError, r"was killed \(exit code 137\); it printed nothing"),
        (ended(137, out_of_memory=True), "x", EnvError, "ran out of memory \\(limit: 64m\\); give it more"),
        (GONE, "", InfraError, "another program removed the container"),
    ],
)
def test_a_container_that_has_ended_says_why(
    docker: Any, inspect: dict[str, Any], logs: str, kind: type[EnvError], sentence: str
) -> None:
    docker.answers(inspect=inspect, logs={"out": logs})

    async def played() -> None:
        async with DockerRuntime("letters", memory="64m")(TASK):
            raise AssertionError("nothing to play in")

    with pytest.raises(EnvError, match=sentence) as raised:
        asyncio.run(played())

    assert type(raised.value) is kind
    assert len(docker.removed) == 1


def test_a_failure_in_a_container_that_lives_stays_what_it_was(docker: Any, served: Serve) -> None:
    with pytest.raises(EnvError, match="the template is wrong"):
        play(DockerRuntime("letters"), docker, served, EnvError("the template is wrong"))


def test_a_run_that_the_engine_refuses_is_told_and_cleaned_up(docker: Any) -> None:
    docker.answers(run={"err": "docker: Error response: port is taken", "code": 125})

    async def played() -> None:
        async with DockerRuntime("letters")(TASK):
            raise AssertionError("nothing to play in")

    with pytest.raises(InfraError, match=r"no container of letters could be started: .*port is taken"):
        asyncio.run(played())

    assert len(docker.removed) == 1


def test_what_could_not_be_removed_is_tried_again_when_the_runtime_is_closed(
    docker: Any, served: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = DockerRuntime("letters")
    asyncio.run(runtime.check())
    docker.answers(rm={"err": "Error response: device is busy", "code": 1})
    play(runtime, docker, served)
    docker.answers(rm={})

    asyncio.run(runtime.close())

    first, second = docker.removed
    assert first == second
    assert "could not be removed: Error response: device is busy" in caplog.text


def test_a_cancelled_rollout_removes_its_container_before_it_ends(docker: Any, served: Serve) -> None:
    docker.answers(rm={"sleep": 0.2})

    async def cancelled() -> None:
        inside = asyncio.Event()

        async def hold() -> None:
            async with DockerRuntime("letters")(TASK):
                inside.set()
                await asyncio.Event().wait()

        async with served() as port:
            docker.publishes(port)
            holding = asyncio.ensure_future(hold())
            await inside.wait()
            cancelled_at = time.monotonic()
            holding.cancel()
            await asyncio.sleep(0)
            holding.cancel()
            await asyncio.wait([holding])
            assert holding.cancelled()
            assert time.monotonic() - cancelled_at >= 0.2

    asyncio.run(cancelled())

    assert len(docker.removed) == 1


# What dead runs left behind


def test_only_what_nobody_will_come_back_for_is_removed(docker: Any, dead: ProcessIdentity) -> None:
    machine, now = this_machine(), int(time.time())
    other = ProcessIdentity("another-machine", 1, "1")
    lines = {
        "dead": f"{dead}\t{now + 999}",
        "mine": f"{this_process()}\t{now - 999}",
        "parent": f"{ProcessIdentity(machine, os.getppid(), '1')}\t{now + 999}",
        "elsewhere": f"{other}\t{now + 999}",
        "elsewhere-over": f"{other}\t{now - 999}",
        "unowned": "\t",
        "unreadable": "what is this\tsoon",
    }
    docker.answers(ps={"out": "".join(f"{name}\t{rest}\n" for name, rest in lines.items())})

    asyncio.run(DockerRuntime("letters").check())

    words = docker.called("rm")[0]
    assert words == ["rm", "--force", "--volumes", "dead", "parent", "elsewhere-over"]
    assert "label=proctor=1" in docker.called("ps")[0]


@pytest.fixture
def dead() -> ProcessIdentity:
    """A process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return ProcessIdentity(this_machine(), process.pid, "1")


def test_a_process_that_has_ended_but_is_remembered_counts_as_dead() -> None:
    process = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        _, started = stat_of(process.pid) or ("", "")
        assert started
        assert not is_alive(ProcessIdentity(this_machine(), process.pid, started))
    finally:
        process.wait()
