"""Sandboxes that are containers without a network, created with the `docker` program as configured on this
machine.

Commands of one sandbox share its processes: one that takes too long is ended by restarting the container,
which ends all of them and keeps the files. Knows nothing of runs.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from proctor.contracts import CommandResult
from proctor.errors import ConfigError, EnvError, InfraError
from proctor.isolation.streams import input_descriptor
from proctor.runtimes.container_spec import ContainerSpec, format_option, is_passed, passed_variables
from proctor.runtimes.docker_client import Docker, DockerError, kill
from proctor.server.sandboxes.backend import SandboxSpec, ServedProgram
from proctor.support import sandbox_bridge
from proctor.support.output import OutputBuffer, OutputPipe
from proctor.support.processes import summarize_output
from proctor.support.relay import StreamFarEnd, open_relay

FOLDER = "/workspace"
IDLE_COMMAND = ("sh", "-c", "while :; do sleep 3600; done")
CONFINEMENT_OPTIONS = ("--cap-drop=ALL", "--security-opt=no-new-privileges", f"--workdir={FOLDER}")
LEASE_SECONDS = 24 * 3600.0
KEPT_BYTES = 20_000
REACH_SECONDS = "10"
PATIENCE_SECONDS = 3600.0
"""How long to wait for a program at most; callers have shorter timeouts."""
REACH_SCRIPT = """
if command -v python3 > /dev/null; then exec python3 -c "$1" stdio "$2" "$3"; else exec nc 127.0.0.1 "$2"; fi
"""
WAIT_SCRIPT = """
while :; do
  if command -v python3 > /dev/null
  then python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])))' "$1"
  else nc -z 127.0.0.1 "$1"; fi 2> /dev/null && exit
  sleep 0.1
done
"""


class DockerBackend:
    """Creates containers from images that the engine already has: which ones is the operator's choice."""

    def __init__(self) -> None:
        self.docker = Docker()

    async def check(self) -> None:
        try:
            await self.docker("version", "--format", "{{.Server.Version}}")
        except DockerError as error:
            raise ConfigError(f"The Docker engine does not answer: {error}.") from error

    async def open(self, spec: SandboxSpec) -> DockerSandbox:
        if spec.image is None:
            raise ConfigError("A container needs an image; name one, or ask the operator to set a default.")
        try:
            image_id = await self.docker.image_id(spec.image)
            if image_id is None:
                raise ConfigError(
                    f"The engine has no image {spec.image!r}; ask the operator to pull or build it."
                )
            name = f"proctor-place-{secrets.token_hex(8)}"
            command = build_recipe(spec).words(
                *("run", "--detach"), name=name, image_id=image_id, task="", environ={}, published=False
            )
            try:
                await self.docker(*command)
            except BaseException:
                await asyncio.shield(self.docker.remove(name))
                raise
        except DockerError as error:
            raise InfraError(f"Could not start a container of {spec.image}: {error}.") from error
        return DockerSandbox(self.docker, name)

    async def clear(self) -> None:
        try:
            await self.docker.reap()
        except DockerError as error:
            raise InfraError(f"Containers of an earlier server may still be there: {error}.") from error


def build_recipe(spec: SandboxSpec) -> ContainerSpec:
    return ContainerSpec(
        image=spec.image or "",
        port=0,
        command=IDLE_COMMAND,
        memory=f"{spec.memory_mb}m",
        cpus=None,
        pids=spec.processes,
        network="none",
        user=None,
        mounts=(),
        run_args=CONFINEMENT_OPTIONS,
        labels={},
        sandbox=False,
        lease_seconds=LEASE_SECONDS,
    )


class DockerSandbox:
    """A container, and what runs in it."""

    def __init__(self, docker: Docker, name: str) -> None:
        self.docker = docker
        self.name = name
        self._serving = AsyncExitStack()
        self._program: asyncio.subprocess.Process | None = None
        self._output: OutputPipe | None = None

    async def run(
        self, command: Sequence[str], *, stdin: bytes, variables: Mapping[str, str], seconds: float
    ) -> CommandResult:
        with input_descriptor(stdin) as to_read:
            async with OutputPipe.open() as output:
                process = await self._exec(command, to_read, output.pipe, output.pipe, variables)
                output.close_pipe()
                try:
                    async with asyncio.timeout(seconds):
                        code: int | None = await process.wait()
                except TimeoutError:
                    code = None
                finally:
                    if process.returncode is None:
                        await asyncio.shield(self._end_all(process))
                return CommandResult(code, await output.text())

    @asynccontextmanager
    async def open_command(self, command: Sequence[str]) -> AsyncIterator[DockerPipes]:
        process = await self._exec(command, subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL, {})
        try:
            yield DockerPipes(process)
        finally:
            if process.returncode is None:
                kill(process)
                await asyncio.shield(process.wait())

    async def serve(self, program: ServedProgram) -> Path:
        if program.mounts:
            raise EnvError("A container cannot see paths of the server.")
        self._output = await self._serving.enter_async_context(OutputPipe.open(OutputBuffer(0, KEPT_BYTES)))
        pipe = self._output.pipe
        self._program = await self._exec(program.command, subprocess.DEVNULL, pipe, pipe, program.variables)
        self._output.close_pipe()
        await self._wait_until_it_listens(program.port)
        command = ("sh", "-c", REACH_SCRIPT, "sh", inspect.getsource(sandbox_bridge))

        @asynccontextmanager
        async def connect() -> AsyncIterator[StreamFarEnd]:
            async with self.docker.open_exec(self.name, *command, str(program.port), REACH_SECONDS) as far:
                yield far

        url = await self._serving.enter_async_context(open_relay(connect))
        return Path(url.removeprefix("unix://"))

    async def _wait_until_it_listens(self, port: int) -> None:
        assert self._program is not None
        command = ["sh", "-c", WAIT_SCRIPT, "sh", str(port)]
        waiting = asyncio.create_task(self.run(command, stdin=b"", variables={}, seconds=PATIENCE_SECONDS))
        ending = asyncio.create_task(self._program.wait())
        try:
            await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                raise EnvError(await self.describe_exit() or "It ended before it listened on its port.")
        finally:
            waiting.cancel()
            ending.cancel()
            await asyncio.wait({waiting, ending})

    async def describe_exit(self) -> str | None:
        if self._program is None or self._program.returncode is None:
            return None
        last_output = summarize_output((await self._output.text()).splitlines()) if self._output else ""
        return f"It ended with exit code {self._program.returncode}" + (
            f": {last_output}" if last_output else "."
        )

    async def used_bytes(self) -> int:
        try:
            return int(await self.docker("inspect", "--size", "--format", "{{.SizeRw}}", self.name))
        except (DockerError, ValueError):
            return 0  # the engine is busy: asked again later

    async def close(self) -> None:
        try:
            await self.docker.remove(self.name)
        except DockerError as error:
            raise InfraError(f"Could not remove the container {self.name}: {error}.") from error
        finally:
            await self._serving.aclose()
            if self._program is not None:
                await self._program.wait()

    async def _exec(
        self, command: Sequence[str], stdin: int, stdout: int, stderr: int, variables: Mapping[str, str]
    ) -> asyncio.subprocess.Process:
        """Values stay off the command line, which every user can read."""
        named = (
            format_option("env", key if is_passed(key) else f"{key}={value}")
            for key, value in variables.items()
        )
        return await asyncio.create_subprocess_exec(
            *(self.docker.program(), "exec", "--interactive", *named, self.name, *command),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **passed_variables(variables)},
            start_new_session=True,
        )

    async def _end_all(self, process: asyncio.subprocess.Process) -> None:
        """Killing the local client does not end the command in the container."""
        kill(process)
        await process.wait()
        try:
            await self.docker("restart", "--time", "0", self.name)
        except DockerError as error:
            raise InfraError(f"Could not end a command: {error}.") from error


class DockerPipes:
    """A command in a container, with pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._process = process

    async def wait(self) -> int:
        return await self._process.wait()
