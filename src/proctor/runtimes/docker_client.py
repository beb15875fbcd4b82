"""The `docker` program as it is set up on this machine, with its contexts, DOCKER_HOST and logins.

Knows the commands a runtime needs. Knows nothing of environments.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from proctor.errors import ConfigError
from proctor.runtimes.owners import ProcessIdentity, is_abandoned, this_machine
from proctor.support.logs import log
from proctor.support.relay import StreamFarEnd

COMMAND_SECONDS = 60.0
KEPT_LINES = 20
KEPT_CHARACTERS = 2000
CANNOT_RUN = (126, 127)
"""Exit codes for a command that does not exist or cannot be executed."""
ADVICE = ("Run 'docker", "See 'docker", "Usage:")

OWNER_LABEL = "proctor.owner"
EXPIRY_LABEL = "proctor.expires"
MARK = "proctor=1"
"""The label by which all our containers are found."""


class DockerError(Exception):
    """The program failed; the message is the end of its output."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class ContainerState(msgspec.Struct, frozen=True):
    """What the engine knows about a container."""

    running: bool = msgspec.field(name="Running", default=False)
    code: int = msgspec.field(name="ExitCode", default=0)
    out_of_memory: bool = msgspec.field(name="OOMKilled", default=False)


class Docker:
    """Runs the program; every call starts a process, so callers make few."""

    async def __call__(
        self,
        *words: str,
        seconds: float = COMMAND_SECONDS,
        environ: Mapping[str, str] | None = None,
        both: bool = False,
    ) -> str:
        """The standard output; with `both`, standard error as well."""
        process = await asyncio.create_subprocess_exec(
            self.program(),
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if both else asyncio.subprocess.PIPE,
            env={**os.environ, **environ} if environ else None,
            start_new_session=True,  # Ctrl-C is ours to handle: it must not reach a client that is removing
        )
        try:
            async with asyncio.timeout(seconds):
                out, err = await process.communicate()
        except TimeoutError:
            raise DockerError(f"`docker {words[0]}` took more than {seconds:g} s") from None
        finally:
            if process.returncode is None:
                kill(process)
                await process.wait()
        if process.returncode:
            message = extract_error((err or out or b"").decode(errors="replace"))
            raise DockerError(
                message or f"`docker {words[0]}` ended with exit code {process.returncode}",
                process.returncode,
            )
        return out.decode(errors="replace")

    @staticmethod
    def program() -> str:
        found = shutil.which("docker")
        if found is None:
            raise ConfigError("there is no `docker` program on PATH; install Docker's command-line client")
        return found

    async def host(self) -> str:
        """The address of the engine in use."""
        return (await self("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")).strip()

    async def image_id(self, image: str) -> str | None:
        """The id an image's name resolves to now; None if the engine has no such image."""
        try:
            return (await self("image", "inspect", "--format", "{{.Id}}", image)).strip()
        except DockerError as error:
            if "no such image" in str(error).lower():
                return None
            raise

    async def inspect(self, container: str, port: int) -> tuple[ContainerState, int | None] | None:
        """The state of a container and its published port; None if it is gone."""
        try:
            printed = await self(
                "inspect", "--format", "{{json .State}}\t{{json .NetworkSettings.Ports}}", container
            )
        except DockerError as error:
            if is_gone(error):
                return None
            raise
        state, _, ports = printed.partition("\t")
        bindings = (msgspec.json.decode(ports) or {}).get(f"{port}/tcp") or ()
        published = next((int(binding["HostPort"]) for binding in bindings), None)
        return msgspec.json.decode(state, type=ContainerState), published

    async def read_last_lines(self, container: str) -> str:
        """The end of a container's output."""
        try:
            return last_lines(await self("logs", "--tail", str(KEPT_LINES), container, both=True))
        except DockerError as error:
            return f"(its log cannot be read: {error})"

    async def remove(self, *containers: str, seconds: float = COMMAND_SECONDS) -> None:
        try:
            await self("rm", "--force", "--volumes", *containers, seconds=seconds)
        except DockerError as error:
            if not all(is_gone(line) for line in str(error).splitlines()):
                raise

    async def reap(self) -> list[str]:
        """Remove the containers of dead runs; never one that a live run still uses."""
        form = f'{{{{.ID}}}}\t{{{{.Label "{OWNER_LABEL}"}}}}\t{{{{.Label "{EXPIRY_LABEL}"}}}}'
        listed = await self("ps", "--all", "--no-trunc", "--filter", f"label={MARK}", "--format", form)
        abandoned = find_abandoned(listed, this_machine(), time.time())
        if abandoned:
            try:
                await self.remove(*abandoned)
            except DockerError as error:
                log.warning("containers of an earlier run could not be removed: %s", error)
        return abandoned

    @asynccontextmanager
    async def open_exec(self, container: str, *words: str) -> AsyncIterator[StreamFarEnd]:
        """Run a program inside a container, joined to its pipes; DockerError if it cannot be run there."""
        process = await asyncio.create_subprocess_exec(
            self.program(),
            *("exec", "--interactive", container, *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield StreamFarEnd(process.stdout, process.stdin)
        finally:
            if process.returncode is None:
                kill(process)
            await process.wait()
        if process.returncode in CANNOT_RUN:
            raise DockerError(f"{words[0]} cannot be run there", process.returncode)


def find_abandoned(listed: str, machine: str, now: float) -> list[str]:
    """The listed containers whose owner is dead or whose lease has expired; unlabelled ones are kept."""
    abandoned = []
    for line in listed.splitlines():
        container, _, rest = line.partition("\t")
        owner_text, _, expiry = rest.partition("\t")
        owner = ProcessIdentity.read(owner_text)
        if owner is not None and expiry.isdecimal() and is_abandoned(owner, int(expiry), machine, now):
            abandoned.append(container)
    return abandoned


def kill(process: asyncio.subprocess.Process) -> None:
    """By pid: `process.kill` may notice the exit before the event loop does, which then warns."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)


def is_gone(error: DockerError | str) -> bool:
    text = str(error).lower()
    return "no such container" in text or "no such object" in text or "already in progress" in text


def last_lines(text: str) -> str:
    kept = [line.rstrip() for line in text.strip().splitlines() if line.strip()][-KEPT_LINES:]
    return "\n".join(kept)[-KEPT_CHARACTERS:]


def extract_error(text: str) -> str:
    """The program's error message, without its advice to read the help."""
    lines = (line.removeprefix("docker: ") for line in last_lines(text).splitlines())
    return "\n".join(line for line in lines if not line.startswith(ADVICE))
