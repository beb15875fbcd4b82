"""What tests of runtimes share: somebody who answers hello, and a `docker` that does as it is told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DOCKER = """#!{python} -S
import json, os, sys, time
folder = {folder!r}
words = sys.argv[1:]
with open(folder + "/calls.jsonl", "a") as calls:
    calls.write(json.dumps({{"words": words, "environ": dict(os.environ)}}) + "\\n")
with open(folder + "/answers.json") as file:
    answer = json.load(file).get(words[0], {{}})
if words[0] == "exec" and not answer:
    place = words.index("-c") - 1
    os.execv({python!r}, [{python!r}, *words[place + 1 :]])
time.sleep(answer.get("sleep", 0))
if "then" in answer:
    with open(folder + "/answers.json", "r+") as file:
        answers = {{**json.load(file), **answer["then"]}}
        file.seek(0)
        file.write(json.dumps(answers))
        file.truncate()
sys.stdout.write(answer.get("out", ""))
sys.stderr.write(answer.get("err", ""))
sys.exit(answer.get("code", 0))
"""


@dataclass
class FakeDocker:
    """A program on PATH that answers by its first word, and remembers how it was called."""

    folder: Path

    def answers(self, **answers: Mapping[str, Any]) -> None:
        self._answers = {**getattr(self, "_answers", {}), **answers}
        (self.folder / "answers.json").write_text(json.dumps(self._answers))

    def publishes(self, port: int) -> None:
        """Containers run, and their port is this one."""
        self.answers(inspect={"out": seen(running=True, port=port)})

    @property
    def calls(self) -> list[dict[str, Any]]:
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def removed(self) -> list[str]:
        """Containers that were run and are removed, once for each time."""
        run = {words[words.index("--name") + 1] for words in self.called("run")}
        return [name for words in self.called("rm") for name in words if name in run]

    def called(self, word: str) -> list[list[str]]:
        return [call["words"] for call in self.calls if call["words"][0] == word]


def seen(running: bool, port: int | None = None, code: int = 0, out_of_memory: bool = False) -> str:
    """What the engine tells of a container."""
    state = {"Running": running, "ExitCode": code, "OOMKilled": out_of_memory}
    ports = {"8765/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]} if port else {}
    return f"{json.dumps(state)}\t{json.dumps(ports)}\n"


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    folder = tmp_path / "docker"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(DOCKER.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    fake = FakeDocker(folder)
    fake.answers(
        image={"out": "sha256:abc\n"},
        context={"out": "unix:///var/run/docker.sock\n"},
        run={"out": "0123456789ab\n"},
    )
    return fake


Serve = Callable[[], AbstractAsyncContextManager[int]]


@asynccontextmanager
async def answering() -> AsyncIterator[int]:
    """Somebody on a port who answers every line: a hello with a refusal, whatever else by repeating it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            frame = json.loads(line)
            answer = {"error": {"message": "no token"}} if frame["method"] == "hello" else {"result": frame}
            writer.write(json.dumps({"id": frame["id"], **answer}).encode() + b"\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
def served() -> Serve:
    return answering
