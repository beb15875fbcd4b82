"""One rollout's container: files copied in, commands run there, and its removal. Knows nothing of tasks.

Proctor is not inside, and nothing in the image is needed but a shell.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from proctor.contracts import CommandResult, HttpEndpoint
from proctor.errors import AgentError, EnvError, InfraError
from proctor.runtimes.container_spec import ContainerSpec, passed_variables
from proctor.runtimes.docker_client import Docker, DockerError
from proctor.support.cancellation import finish
from proctor.support.logs import log
from proctor.support.output import OutputPipe

KEEP_RUNNING = ("sh", "-c", "sleep infinity")
REMOVE_SECONDS = 60.0
START_SECONDS = 120.0
KILL_SECONDS = 30.0
MARK = "PROCTOR_COMMAND"
SHELL = 'if command -v bash > /dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'
KILL = f"""
for process in /proc/[0-9]*; do
  if grep -q "{MARK}=$1" "$process/environ" 2> /dev/null; then kill -9 "${{process#/proc/}}" 2> /dev/null; fi
done
"""


class ContainerWorkspace:
    """Runs commands in a container, as a given user."""

    def __init__(self, name: str, *, user: str | int | None = None, folder: str | None = None) -> None:
        self.name = name
        self.docker = Docker()
        self._user = user
        self._folder = folder

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        endpoint: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
    ) -> CommandResult:
        if endpoint is not None or mounts:
            raise AgentError(
                "a command-line program cannot reach its model from the container of a Harbor task; use an "
                "agent that works with tools, such as tool_loop or claude"
            )
        return await self.execute(command, seconds=seconds, stdin=stdin, variables=variables, user=self._user)

    async def execute(
        self,
        command: str | Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        user: str | int | None = None,
    ) -> CommandResult:
        """A text is run by bash, or by sh where there is none. Ended with all it started when time is up."""
        words = ["sh", "-c", SHELL, "sh", command] if isinstance(command, str) else list(command)
        token = secrets.token_hex(8)
        options = [
            *("exec", "--interactive", "--env", f"{MARK}={token}"),
            *(f"--env={name}={value}" for name, value in (variables or {}).items()),
            *([f"--user={user}"] if user is not None else ()),
            *([f"--workdir={self._folder}"] if self._folder is not None else ()),
        ]
        async with OutputPipe.open() as output:
            process = await asyncio.create_subprocess_exec(
                self.docker.program(),
                *(*options, self.name, *words),
                stdin=asyncio.subprocess.PIPE,
                stdout=output.pipe,
                stderr=output.pipe,
                start_new_session=True,
            )
            output.close_pipe()
            try:
                async with asyncio.timeout(seconds):
                    await write_and_wait(process, stdin)
            except TimeoutError:
                return CommandResult(None, await output.text())
            finally:
                if process.returncode is None:
                    process.kill()
                    await finish(self._kill(token))
                    await process.wait()
            return CommandResult(process.returncode, await output.text())

    async def copy_in(self, source: Path, target: str) -> None:
        """The content of a folder, into a folder of the container."""
        await self.check_run("root", ["mkdir", "-p", target])
        try:
            await self.docker("cp", f"{source}/.", f"{self.name}:{target}", seconds=START_SECONDS)
        except DockerError as error:
            raise InfraError(f"{source.name}/ cannot be copied into the container: {error}") from error

    async def check_run(self, user: str | int | None, words: Sequence[str]) -> str:
        """What a command prints that must succeed."""
        ran = await self.execute(words, seconds=START_SECONDS, user=user)
        if ran.code != 0:
            raise EnvError(f"`{' '.join(words)}` failed in the container: {ran.output.strip()[-500:]}")
        return ran.output

    async def read_text(self, path: str) -> str | None:
        """A small file; None if it is not there."""
        ran = await self.execute(["cat", path], seconds=START_SECONDS, user="root")
        return ran.output if ran.code == 0 else None

    async def _kill(self, token: str) -> None:
        with suppress(DockerError):  # the container may be gone
            words = ("exec", "--user=root", self.name, "sh", "-c", KILL, "sh", token)
            await self.docker(*words, seconds=KILL_SECONDS)


async def write_and_wait(process: asyncio.subprocess.Process, stdin: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it read no more of it
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()
    await process.wait()


@asynccontextmanager
async def open_container(spec: ContainerSpec, task: str, environ: Mapping[str, str]) -> AsyncIterator[str]:
    """The name of a running container, until the block ends."""
    docker, name = Docker(), f"proctor-harbor-{secrets.token_hex(8)}"
    words = spec.words(
        *("run", "--detach"), name=name, image_id=spec.image, task=task, environ=environ, published=False
    )
    try:
        try:
            await finish(docker(*words, environ=passed_variables(environ), seconds=START_SECONDS))
        except DockerError as error:
            raise InfraError(f"the container of {task} cannot be started: {error}") from error
        yield name
    finally:
        try:
            await finish(docker.remove(name, seconds=REMOVE_SECONDS))
        except DockerError as error:
            log.warning("Could not remove container %s: %s", name, error)
