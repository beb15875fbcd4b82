"""Workers on other machines, up to what Ray itself does: `tests/interop/ray` has the real cluster."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import pickle
import ssl
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import ConfigError, __version__, evaluate
from proctor.cluster import connect as connecting
from proctor.cluster.actor import ProcessParent
from proctor.cluster.address import parse_address
from proctor.cluster.messages import StartedProcess
from proctor.evaluation import prepare
from proctor.workers import link as links
from proctor.workers import ray_backend
from proctor.workers.certificates import Certificate, client_context, make_certificate
from proctor.workers.link import TOKEN_BYTES, WELCOME, Link
from proctor.workers.ray_backend import check_greeting
from tests.conftest import Provider, Ran
from tests.waiting import SECONDS
from tests.workers.local_nodes import LocalNodes

Run = Callable[..., Ran]

SETUP = """
import os
from pathlib import Path
from proctor import Rubric, SingleTurnEnv

NEIGHBOUR = (Path(__file__).parent / "neighbour.txt").read_text()

def right(completion, answer):
    return float(answer in completion[-1]["content"])

async def process(state):
    return float(os.getpid())

class Played(SingleTurnEnv):
    async def setup_state(self, state):
        marker = Path(state["info"]["marker"])
        if state["answer"] == "say 3" and not marker.exists():
            marker.write_text(os.getcwd())
            print("about to die", flush=True)
            os.kill(os.getpid(), 9)
        state["words"] = [NEIGHBOUR, state["info"]["inside"], state["info"]["outside"], os.environ["WORD"]]
        return state

def load_environment(inside, outside, marker):
    info = {"inside": Path(inside).read_text(), "outside": Path(outside).read_text(), "marker": marker}
    rows = [{"question": f"say {n}", "answer": f"say {n}", "info": info} for n in range(12)]
    return Played(rows, rubric=Rubric(right, process, weights=[1.0, 0.0]))
"""


def place_on(nodes: LocalNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_backend, "connect", nodes.connect)
    monkeypatch.setattr(prepare, "need_ray", lambda: None)


def test_workers_elsewhere_have_the_files_arguments_and_variables_and_a_lost_one_costs_no_rollout(
    tmp_path: Path, provider: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lab", "home", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "lab" / "played.py").write_text(SETUP)
    (tmp_path / "lab" / "neighbour.txt").write_text("beside it")
    (tmp_path / "home" / "inside.txt").write_text("in the working directory")
    (tmp_path / "elsewhere" / "outside.txt").write_text("somewhere else")
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("WORD", "by name")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place_on(LocalNodes(), monkeypatch)
    arguments = {
        "inside": "inside.txt",
        "outside": str(tmp_path / "elsewhere" / "outside.txt"),
        "marker": str(tmp_path / "marker"),
    }

    result = asyncio.run(
        evaluate(
            str(tmp_path / "lab" / "played.py"),
            "m",
            api_base_url=provider().url,
            env_args=arguments,
            num_examples=12,
            max_concurrent=4,
            num_workers=2,
            on="ray",
            on_args={"variables": ["WORD"]},
            state_columns=("words",),
        )
    )

    assert [rollout.task.id for rollout in result] == list(range(12))
    assert {rollout.score.reward for rollout in result if rollout.score} == {1.0}
    words = ["beside it", "in the working directory", "somewhere else", "by name"]
    assert all(rollout.columns["words"] == words for rollout in result)
    again = [rollout for rollout in result if rollout.earlier]
    assert again
    assert all("was killed by SIGKILL" in str(each.earlier[0].failure) for each in again)
    assert Path((tmp_path / "marker").read_text()).parent.name.startswith("proctor-worker-")
    assert not Path((tmp_path / "marker").read_text()).exists(), "its folder is removed"
    assert len(list((tmp_path / "cache" / "proctor" / "bundles").iterdir())) == 3, "unpacked once"


async def knock(link: Link, own: Certificate | None, token: str, *, theirs: str = "") -> bytes:
    """What a caller hears."""
    context: ssl.SSLContext | None = None
    if own is not None:
        context = client_context(own, theirs or link.certificate)
    try:
        reader, writer = await asyncio.open_connection(link.host, link.port, ssl=context)
        writer.write(token.encode())
        async with asyncio.timeout(SECONDS):
            heard = await reader.read(100)
        writer.close()
    except OSError:
        return b""
    return heard


def test_strangers_wrong_tokens_and_used_tokens_are_refused_before_anything_is_unpickled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pickle, "loads", None)
    monkeypatch.setattr(links, "GREETING_SECONDS", 2.0)
    asyncio.run(check_who_is_let_in())


async def check_who_is_let_in() -> None:
    link, worker, stranger = Link(), make_certificate(), make_certificate()
    await link.open("127.0.0.1")
    try:
        expected, other = link.expect(), link.expect()
        expected.pin(worker.public)

        assert await knock(link, None, "x" * 500) != WELCOME
        assert await knock(link, stranger, expected.token) == b"", "a certificate that nobody announced"
        assert await knock(link, worker, "0" * TOKEN_BYTES) == b"", "another token"
        assert await knock(link, worker, other.token) == b"", "the token of a worker not yet known"
        other.pin(stranger.public)
        assert await knock(link, worker, other.token) == b"", "the token of another worker"
        assert await knock(link, worker, "") == b"", "silence"
        assert await knock(link, worker, expected.token, theirs=stranger.public) == b"", "another run"

        assert await knock(link, worker, expected.token) == WELCOME
        assert await knock(link, worker, expected.token) == b"", "a token works once"
        await expected.wait_for_it(1)
    finally:
        await link.close()


def try_place(nodes: LocalNodes, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place_on(nodes, monkeypatch)
    return evaluate("echo", "m", api_base_url=url, num_workers=1, on="ray", on_args={"room_seconds": 0.6})


def test_a_cluster_without_room_is_refused_in_one_sentence_and_a_stop_is_obeyed_meanwhile(
    tmp_path: Path, provider: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = provider().url

    with pytest.raises(ConfigError, match="No node of ray is large enough for a worker with 1 CPU"):
        asyncio.run(try_place(LocalNodes(room=0), tmp_path, url, monkeypatch))

    async def stop_soon() -> None:
        nodes = LocalNodes(room=0)
        playing = asyncio.create_task(try_place(nodes, tmp_path, url, monkeypatch))
        while not nodes.launched:
            await asyncio.sleep(0.01)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(SECONDS):
                await playing

    asyncio.run(stop_soon())


def test_a_model_on_this_machine_is_not_looked_for_on_another(
    tmp_path: Path, provider: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"The model is at http://127.*another machine on node 10\.0\.0\.9"):
        asyncio.run(try_place(LocalNodes(host="10.0.0.9"), tmp_path, provider().url, monkeypatch))


@pytest.mark.parametrize(
    ("started", "sentence"),
    [
        (
            {"hello": '{"proctor": "9.9", "python": "3", "certificate": ""}'},
            "Proctor is 9.9 on node far",
        ),
        (
            {"hello": json.dumps({"proctor": __version__, "python": "3.8.1", "certificate": ""})},
            r"Python is 3\.8\.1 on node far and 3\.\d+\.\d+ here; use the same minor version on both",
        ),
        ({"code": 1, "last_words": "No module named 'proctor'"}, "Proctor is not installed for Ray's Python"),
        ({"code": 1, "last_words": "boom"}, "The worker on node far ended with exit code 1: boom"),
    ],
)
def test_a_node_that_cannot_play_is_named(started: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        check_greeting(StartedProcess(node="n", host="far", pid=1, **started))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--on", "rey"], "'rey' names no cluster; give here, ray or ray://HOST:PORT"),
        (["--on", "ray://host:99999"], "names no cluster"),
        (
            ["--on", "ray", "--on-args", '{"cpu": 1}'],
            "unknown field `cpu`; the settings of a worker",
        ),
        (["--on", "ray", "--on-args", '{"memory": "much"}'], "memory is 'much'; give bytes"),
        (["--on-args", '{"cpus": 1}'], "pass --on"),
        (["--on", "ray://127.0.0.1:1"], "No Ray cluster answers at ray://127.0.0.1:1"),
    ],
)
def test_places_that_cannot_be_used_are_refused_in_one_sentence(
    proctor: Run, words: list[str], sentence: str, provider: Callable[..., Provider]
) -> None:
    if sys.modules.get("ray") is None and "answers" in sentence:
        pytest.importorskip("ray", reason="without Ray another sentence comes first")
    ran = proctor("eval", "echo", "-m", "m", "-b", provider().url, *words)

    assert ran.code == 2, ran.stderr
    assert sentence in ran.stderr


def test_the_embedded_model_is_refused_on_a_cluster(proctor: Run) -> None:
    ran = proctor("eval", "echo", "-m", "local", "--on", "ray")

    assert ran.code == 2
    assert "load the embedded model again" in ran.stderr


def test_without_the_extra_a_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    async def connect() -> None:
        async with connecting.connect(parse_address("ray")):
            pass

    with pytest.raises(ConfigError, match=r"pip install 'proctor\[ray\]'"):
        asyncio.run(connect())


def test_without_the_extra_no_run_begins(proctor: Run, provider: Callable[..., Provider]) -> None:
    if importlib.util.find_spec("ray") is not None:
        pytest.skip("Ray is installed")

    ran = proctor("eval", "echo", "-m", "m", "-b", provider().url, "--on", "ray")

    assert ran.code == 2
    assert ran.stderr == "Error: Ray is not installed here; install it with `pip install 'proctor[ray]'`.\n"
    assert not list(ran.cwd.rglob("metadata.json"))


def test_of_what_a_process_on_a_node_printed_only_the_end_is_read(tmp_path: Path) -> None:
    async def main() -> dict[str, Any]:
        parent = ProcessParent()
        parent._output = tmp_path / "output.log"
        await parent.launch("this", "", {}, 20.0)
        with parent._output.open("wb") as file:
            file.seek(2**30)
            file.write(b"boom")
        return await parent.wait_for_end(20.0)

    tracemalloc.start()
    try:
        end = asyncio.run(main())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert end["last_words"].endswith("boom")
    assert most < 2**25


def test_ray_is_never_imported_unless_workers_run_on_it(
    tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    (tmp_path / "ray.py").write_text("import os; open(os.environ['MARKER'], 'w').close()")
    words = ["eval", "echo", "-m", "m", "-b", provider().url, "-n", "2", "-r", "1", "-w", "2", "--json"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "MARKER": str(tmp_path / "imported")}

    ran = subprocess.run(
        [sys.executable, "-m", "proctor", *words],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        timeout=SECONDS,
    )

    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "imported").exists()
