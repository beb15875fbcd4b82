"""Read the tasks of a HUD environment, and serve it anew for every rollout. Runs in that environment's own
Python; knows nothing of Proctor.

The package is imported once. A process that has imported it, and nothing of the environment, is the one that
the processes of rollouts are forked from, so that rollouts share no state and yet start at once:

    this process ── socket ── fork server ── one process per rollout: `hud.environment.server.serve()`

Each process ends when the socket that it was given is closed, so none outlives Proctor.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import hud
from hud.environment import Environment, load_environment
from hud.environment.server import PORT_ANNOUNCEMENT, serve
from hud.eval.taskset import Taskset
from hud.utils.process import run_until_terminated

DATA = (".json", ".jsonl")
ENV_FILE = "env.py"
STOPPING_SECONDS = 10.0
"""How long an environment may take to shut down."""
MESSAGE_BYTES = 65_536


def load(params: dict[str, Any], host: Any) -> ServedTasks:
    """The tasks of a file or folder, and the fork server for their environments."""
    source = Path(params["source"])
    forks = start_fork_server(host)  # before anything of the environment is imported
    tasks = list(Taskset.from_file(source))
    if not tasks:
        raise ValueError(f"{source} has no tasks; write tasks = […] into tasks.py")
    refuse_unsupported(tasks)
    environments = {name: find_environment(source, name) for name in {task.env for task in tasks}}
    return ServedTasks(tasks, environments, forks)


def refuse_unsupported(tasks: list[Any]) -> None:
    for task in tasks:
        config = task.runtime_config
        if config is not None and (config.image is not None or config.compose is not None):
            raise NotImplementedError(
                f"task {task.slug!r} runs in a container of its own ({config.image or 'Compose'}); play it "
                "with --runtime docker://IMAGE"
            )
        if task.verifier is not None:
            raise NotImplementedError(
                f"task {task.slug!r} is graded by a second task (verifier), which only HUD's own runner plays"
            )


def find_environment(source: Path, name: str) -> tuple[Path, Environment]:
    """The file or folder that defines an environment, and the environment."""
    folder = source if source.is_dir() else source.parent
    candidates = [folder / ENV_FILE, folder] if source.suffix in DATA else [source, folder / ENV_FILE, folder]
    reasons = []
    for path in candidates:
        if path.exists():
            try:
                return path, load_environment(path, name=name)
            except ValueError as error:
                reasons.append(str(error))
    raise ValueError(reasons[0] if reasons else f"there is no {ENV_FILE} beside {source}")


class ServedTasks:
    """The tasks, and the running processes of their environments."""

    def __init__(
        self, tasks: list[Any], environments: dict[str, tuple[Path, Environment]], forks: socket.socket
    ) -> None:
        self.rows = tasks
        self.environments = environments
        self.forks = forks
        self.running: dict[int, ServingProcess] = {}

    def describe(self) -> dict[str, Any]:
        versions = {environment.version for _, environment in self.environments.values()}
        return {
            "size": len(self.rows),
            "version": hud.__version__,
            "environment_version": versions.pop() if len(versions) == 1 else None,
            "details": {"templates": sorted({f"{task.env}/{task.id}" for task in self.rows})},
        }

    # Over the control socket

    def tasks(self, start: int, stop: int) -> list[dict[str, Any]]:
        return [
            {
                "id": task.slug,
                "env": task.env,
                "template": task.id,
                "args": task.args,
                "columns": task.columns or {},
            }
            for task in self.rows[start:stop]
        ]

    # Over the calls socket

    async def serve(self, env: str) -> dict[str, Any]:
        """Start a process that serves an environment; its pid, and the port it listens on."""
        ours, theirs = socket.socketpair()
        request = {"source": str(self.environments[env][0]), "env": env}
        with theirs:
            socket.send_fds(self.forks, [json.dumps(request).encode()], [theirs.fileno()])
        reader, writer = await asyncio.open_connection(sock=ours)
        process = ServingProcess(reader, writer)
        try:
            await process.wait_for_port()
        except BaseException:
            await process.end()
            raise
        self.running[process.pid] = process
        return {"pid": process.pid, "port": process.port}

    async def end(self, pid: int) -> None:
        process = self.running.pop(pid, None)
        if process is not None:
            await process.end()

    async def close(self) -> None:
        running, self.running = self.running, {}
        await asyncio.gather(*(process.end() for process in running.values()))
        self.forks.close()


class ServingError(Exception):
    """An environment could not be served; `proctor_details` says what its process reported."""

    def __init__(self, details: dict[str, Any]) -> None:
        super().__init__(str(details.get("message")))
        self.proctor_details = details


class ServingProcess:
    """One process that serves an environment, as this process sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = self.port = 0
        self._reader = reader
        self._writer = writer

    async def wait_for_port(self) -> None:
        while not self.port:
            line = await self._reader.readline()
            if not line:
                raise ServingError({"type": "ProcessError", "message": "its process ended before it served"})
            message = json.loads(line)
            if "error" in message:
                raise ServingError(message["error"])
            self.pid, self.port = message.get("pid", self.pid), message.get("port", 0)

    async def end(self) -> None:
        """Hang up, so that it shuts down; kill it if it does not."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        try:
            await asyncio.wait_for(self._reader.read(), STOPPING_SECONDS + 2)
        except (TimeoutError, OSError):
            kill_group(self.pid)
        self._writer.close()


# In the fork server


def start_fork_server(host: Any) -> socket.socket:
    """Fork the process that processes of rollouts are forked from; the socket on which it is asked."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        host.close_sockets()
        run_fork_server(theirs)
        os._exit(0)
    theirs.close()
    return ours


def run_fork_server(requests: socket.socket) -> None:
    """Fork on request until the parent hangs up. One thread and no event loop, so forking is safe."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    gc.freeze()  # pages that no collection touches stay shared
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(requests, MESSAGE_BYTES, 1)
        except OSError:
            return
        if not message:
            return
        line = socket.socket(fileno=descriptors[0])
        try:
            pid = os.fork()
        except OSError as error:
            report(line, {"error": {"type": "OSError", "message": f"cannot fork: {error.strerror}"}})
        else:
            if pid == 0:
                requests.close()
                serve_environment(json.loads(message), line)
        line.close()


def serve_environment(request: dict[str, str], line: socket.socket) -> None:
    """Serve one environment until the line is closed. Does not return."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    threading.Thread(target=end_when_closed, args=(line,), daemon=True).start()
    code = 0
    try:
        report(line, {"pid": os.getpid()})
        environment = load_environment(Path(request["source"]), name=request["env"])
        sys.stdout = AnnouncementStream(sys.stdout, line)
        run_until_terminated(serve(environment))
    except SystemExit:
        pass  # it was told to end
    except BaseException as error:
        import proctor_inside  # type: ignore[import-not-found]

        report(line, {"error": proctor_inside.describe_error(error)})
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        kill_children()
        os._exit(code)


class AnnouncementStream:
    """Standard output of a serving process: the line that announces the port goes to Proctor."""

    def __init__(self, stream: Any, line: socket.socket) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        first, announced, port = text.partition(PORT_ANNOUNCEMENT)
        if announced and not first:
            report(self._line, {"port": int(port)})
            return len(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def end_when_closed(line: socket.socket) -> None:
    """Shut down once the other end has hung up, and exit soon after in any case."""
    try:
        while line.recv(MESSAGE_BYTES):
            pass
    except OSError:
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOPPING_SECONDS)
    kill_group(os.getpid())


def kill_children() -> None:
    """Kill what the environment started and left behind in this process's group."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(OSError):
        os.killpg(os.getpid(), signal.SIGTERM)


def kill_group(pid: int) -> None:
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def report(line: socket.socket, message: dict[str, Any]) -> None:
    with suppress(OSError):  # the other end has hung up
        line.sendall(json.dumps(message).encode() + b"\n")
