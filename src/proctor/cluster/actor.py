"""What runs on a node: a parent for one process, and a look at what the node has.

Travels to the node as source, so it imports nothing but the standard library and Ray, and works on nodes that
have another Proctor or none. Knows nothing of what the process does.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

RUN_MODULE = "import importlib, sys; importlib.import_module(sys.argv[1]).main()"
VERSION = "import importlib.metadata as m; import proctor; print(m.version('proctor'))"
CRYPTOGRAPHY = "import cryptography"
PROBE_SECONDS = 10.0
LAST_BYTES = 16_384
LOOK_SECONDS = 0.05
KILLING_SECONDS = 5.0
LINGER_SECONDS = 5.0
"""How long a parent that leaves by itself can still be asked how its process ended."""


class ProcessParent:
    """Starts one process of this node's Python in a folder of its own, and says how it ended.

    The process gets its instructions as lines on its standard input. Its first line to the descriptor that
    is its second argument is its greeting.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._folder = tempfile.mkdtemp(prefix="proctor-worker-")
        self._output = Path(self._folder, "output.log")

    async def where(self) -> dict[str, str]:
        """The node that this is."""
        import ray

        node: str = ray.get_runtime_context().get_node_id()
        return {"node": node, "host": ray.util.get_node_ip_address()}

    async def launch(
        self, module: str, line: str, variables: Mapping[str, str], seconds: float, leaves: bool = False
    ) -> dict[str, Any]:
        """Start `main()` of a module and wait for its greeting. With `leaves`, this parent ends by itself
        some time after the process, whether or not anybody asked how that ended."""
        work = Path(self._folder, "work")
        work.mkdir()
        theirs: int
        ours, theirs = os.pipe()
        try:
            with self._output.open("wb") as output:
                # Started in this actor's event loop, whose thread lives as long as the actor does: the
                # process asks the kernel to die with the thread that started it.
                self._process = process = subprocess.Popen(
                    [sys.executable, "-P", "-c", RUN_MODULE, module, str(theirs), str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    pass_fds=[theirs],
                    cwd=work,
                    env={**os.environ, **variables},
                    start_new_session=True,
                )
        finally:
            os.close(theirs)
        if leaves:
            self._leaving = asyncio.create_task(self._leave(process))
        await self.send_line(line)
        with os.fdopen(ours, "rb") as pipe:
            hello = await read_line(pipe, seconds)
        end = {} if hello else await self.wait_for_end(KILLING_SECONDS)
        return {"pid": process.pid, "hello": hello, **end}

    async def send_line(self, line: str) -> None:
        """Give the process its next line."""
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it has ended, perhaps a while ago
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    async def wait_for_end(self, seconds: float | None = None) -> dict[str, Any]:
        """How the process ended; it is killed if it takes longer than that."""
        assert self._process is not None
        process, waited = self._process, 0.0
        while process.poll() is None:
            if seconds is not None and waited >= seconds:
                self._kill_group()
            await asyncio.sleep(LOOK_SECONDS)
            waited += LOOK_SECONDS
        self._kill_group()  # what it started and cannot close any more
        end = {"code": process.returncode, "last_words": self._last_words()}
        if process.stdin is not None:
            process.stdin.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return end

    async def kill(self) -> None:
        if self._process is not None:
            await self.wait_for_end(0.0)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _leave(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(LINGER_SECONDS)
        await self.kill()
        os._exit(0)

    def _kill_group(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _last_words(self) -> str:
        try:
            with self._output.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
                return file.read(LAST_BYTES).decode(errors="replace")
        except OSError:
            return ""


async def read_line(pipe: Any, seconds: float) -> str:
    """One line of a pipe; empty if the other end closes it or takes too long."""
    try:
        async with asyncio.timeout(seconds):
            line = await wait_for_line(pipe.fileno())
    except TimeoutError:
        return ""
    return line.decode(errors="replace").strip()


async def wait_for_line(descriptor: int) -> bytes:
    os.set_blocking(descriptor, False)
    line = b""
    while not line.endswith(b"\n"):
        try:
            piece = os.read(descriptor, 65536)
        except BlockingIOError:
            await asyncio.sleep(LOOK_SECONDS / 5)
            continue
        if not piece:
            break
        line += piece
    return line


def probe(host: str, port: int, nonce: str) -> dict[str, Any]:
    """What this node has, and whether it reaches the machine that asks."""
    import ray

    return {
        "python": platform.python_version(),
        "ray": ray.__version__,
        "proctor": run([sys.executable, "-P", "-c", VERSION]),
        "cryptography": run([sys.executable, "-P", "-c", CRYPTOGRAPHY + "; print(True)"]) == "True",
        "bubblewrap": probe_bubblewrap(),
        "route": probe_route(host, port, nonce),
    }


def probe_bubblewrap() -> str:
    found = run(["bwrap", "--version"]).removeprefix("bubblewrap ")
    makes_one = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "echo", "made"]
    return found if found and run(makes_one) == "made" else ""


def probe_route(host: str, port: int, nonce: str) -> str:
    try:
        with socket.create_connection((host, port), PROBE_SECONDS) as connection:
            connection.sendall(nonce.encode() + b"\n")
            return "" if connection.recv(16) == b"ok" else f"{host}:{port} is another program"
    except OSError as error:
        return f"{host}:{port}: {error.strerror or error}"


def run(words: list[str]) -> str:
    """What a command prints; empty if it fails."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
