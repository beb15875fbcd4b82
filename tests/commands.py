"""Run `proctor` in a process of its own, but do not load it anew: that is most of a short command's time."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from tests.waiting import SECONDS

FORKING = Path(__file__).with_name("forking.py")
BEFORE_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ")
"""Variables that an interpreter, or a library it has loaded, reads only once."""


class CommandForks:
    """Commands, each forked from one process that has loaded Proctor."""

    def __init__(self, tests: socket.socket, environ: Mapping[str, str]) -> None:
        self._tests = tests
        self._read_once = read_once(environ)
        self._one_at_a_time = threading.Lock()

    def run(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], given: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        if read_once(env) != self._read_once or not self._one_at_a_time.acquire(blocking=False):
            return run_anew(words, cwd, env, given, timeout)
        try:
            return self._run(words, cwd, env, given, timeout)
        finally:
            self._one_at_a_time.release()

    def _run(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], given: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            stdin.write(given.encode())
            stdin.seek(0)
            asked = json.dumps({"words": list(words), "cwd": str(cwd), "env": dict(env)}).encode()
            socket.send_fds(self._tests, [asked], [file.fileno() for file in (stdin, stdout, stderr)])
            self._tests.settimeout(SECONDS)
            command = int(self._tests.recv(100))
            self._tests.settimeout(timeout)
            try:
                code = int(self._tests.recv(100))
            except TimeoutError:
                os.kill(command, signal.SIGKILL)
                self._tests.settimeout(SECONDS)
                self._tests.recv(100)
                raise subprocess.TimeoutExpired(list(words), timeout, *read(stdout, stderr)) from None
            return subprocess.CompletedProcess(list(words), code, *read(stdout, stderr))


def read(*files: BinaryIO) -> Iterator[str]:
    for file in files:
        file.seek(0)
        yield file.read().decode().replace("\r\n", "\n")


def read_once(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(BEFORE_START)}


def run_anew(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], given: str, timeout: float
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proctor", *words],
        cwd=cwd,
        env=env,
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


class Commands:
    """Those of this process: the first one starts what the others are forked from."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._forks: CommandForks | None = None
        self._one_at_a_time = threading.Lock()

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        input: str = "",  # noqa: A002
        timeout: float = SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """As subprocess.run() with its output captured as text."""
        with self._one_at_a_time:
            if self._forks is None:
                self._forks = self._opened.enter_context(forking())
        return self._forks.run(words, cwd, env, input, timeout)

    def close(self) -> None:
        self._opened.close()
        self._forks = None


COMMANDS = Commands()


@contextmanager
def forking() -> Iterator[CommandForks]:
    environ = dict(os.environ)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, str(FORKING), str(theirs.fileno())],
                env=environ,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        yield CommandForks(ours, environ)
    process.wait(SECONDS)
