"""A workplace for tests: the real `proctor server` in a process of its own, and people with a shell each."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.commands import COMMANDS
from tests.ports import free_port
from tests.server.serving import Api, root_token
from tests.waiting import SECONDS, wait_for

MODELS = """
[[endpoint]]
endpoint_id = "parrot"
model = "parrot"
type = "scripted"

[[endpoint]]
endpoint_id = "slow-parrot"
model = "slow-parrot"
type = "scripted"
url = "{slow}"
"""
SUMS = '''
"""Repeat the question."""

import os
from proctor import Rubric, SingleTurnEnv
from proctor.trace import text_of


def same(completion, answer):
    return float(text_of(completion[-1]) == answer)


def load_environment(tasks: int = 6, shout: str = ""):
    print(f"loading {tasks} tasks {shout}")
    rows = [{"question": f"say {number}", "answer": f"say {number}"} for number in range(tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(same))
'''
PYPROJECT = """
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "Repeat the question."
requires-python = ">=3.11"
dependencies = ["proctor"]

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]
"""


class Said(NamedTuple):
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


class Person:
    """Somebody with a home of their own and the command line."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.url = url
        home.mkdir(parents=True, exist_ok=True)

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PROCTOR_")}
        return {
            **kept,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_STATE_HOME": str(self.home / "state"),
        }

    def __call__(self, *words: str, stdin: str = "", seconds: float = SECONDS) -> Said:
        done = COMMANDS.run(words, cwd=self.home, env=self.environ, input=stdin, timeout=seconds)
        return Said(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, stdin: str = "", seconds: float = SECONDS) -> Said:
        said = self(*words, stdin=stdin, seconds=seconds)
        assert said.code == 0, (words, said)
        return said

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "proctor", *words],
            cwd=self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def write_environment(self, name: str = "sums", code: str = SUMS, version: str = "0.1.0") -> Path:
        module = name.replace("-", "_")
        folder = self.home / "environments" / module
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{module}.py").write_text(code)
        (folder / "pyproject.toml").write_text(PYPROJECT.format(name=name, version=version, module=module))
        return folder


class Workplace:
    """One server, started and killed as a test wants it."""

    def __init__(
        self,
        folder: Path,
        *words: str,
        environ: Mapping[str, str] | None = None,
        models: str = "",
        descriptors: int | None = None,
    ) -> None:
        self.folder = folder
        self.descriptors = descriptors
        self.words = words
        self.environ = {**os.environ, **(environ or {})}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.log = folder / "server.log"
        slow = folder / "slow.jsonl"
        slow.write_text('{"delay_seconds": 0.4}\n')
        broken = folder / "broken.jsonl"
        broken.write_text('{"error": "timeout"}\n')
        told = (MODELS + models).replace("{slow}", str(slow)).replace("{broken}", str(broken))
        (folder / "endpoints.toml").write_text(told)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def token(self) -> str:
        return root_token(self.url, self.data)

    @property
    def root(self) -> Api:
        return Api(self.url, self.token)

    def start(self) -> None:
        here = ("--port", str(self.port), "--data", str(self.data))
        words = (*here, "--endpoints", "endpoints.toml", "--main-index", "none")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "proctor", "server", *words, *self.words],
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self.limit_descriptors,
            )
        wait_for(lambda: "Proctor is at" in self.log.read_text() and answers(self.url))

    def limit_descriptors(self) -> None:
        if self.descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))

    def kill(self) -> None:
        """As a power cut would, for the server alone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(SECONDS)

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS)

    def person(self, name: str) -> Person:
        """A new user who is logged in."""
        made = self.root.post("/users", {"name": name})
        person = Person(self.folder / name, self.url)
        person.ok("login", self.url, stdin=made["token"] + "\n")
        return person

    def hosts(self) -> list[int]:
        """Processes that play runs for this server, or for one before it that was killed."""
        return [
            process.pid
            for process in processes()
            if process.words[-2:] == ("-m", "proctor.runner") and process.folder == str(self.folder)
        ]


class Process(NamedTuple):
    """What the kernel tells of a process."""

    pid: int
    words: tuple[str, ...]
    folder: str
    environ: str


def processes() -> Iterator[Process]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
            environ = (place / "environ").read_text(errors="replace")
            yield Process(int(place.name), tuple(words), str((place / "cwd").readlink()), environ)


@contextmanager
def workplace(
    folder: Path,
    *words: str,
    environ: Mapping[str, str] | None = None,
    models: str = "",
    descriptors: int | None = None,
) -> Iterator[Workplace]:
    folder.mkdir(parents=True, exist_ok=True)
    made = Workplace(folder, *words, environ=environ, models=models, descriptors=descriptors)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def answers(url: str) -> bool:
    try:
        return Api(url)("GET", "/health").status == 200
    except OSError:
        return False
