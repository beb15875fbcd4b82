"""Sandboxes and instances for environments that run on a server: what an author uses.

    async with sandbox() as box:
        await box.write("a.py", b"print(6 * 7)")
        ran = await box.run("python3 a.py", seconds=60)

    async with instance(["python3", "-m", "http.server", "8000"], port=8000) as site:
        ...  # ask site.url with site.headers

Refusals are EnvErrors in the server's words: the rollout fails, and says what to do. Knows nothing of walls.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar
from urllib.parse import quote

import msgspec

from proctor.api.common import IDEMPOTENCY_HEADER
from proctor.api.sandboxes import Backend, Exec, ExecResult, Instance, NewInstance, NewSandbox, Sandbox
from proctor.client.connection import ServerConnection, ServerError, decode_answer
from proctor.client.contexts import KEY_VARIABLE, URL_VARIABLE, Context
from proctor.contracts import CommandResult
from proctor.errors import ConfigError, EnvError, InfraError
from proctor.support.logs import log

COMMAND_SECONDS = 120.0
SLACK_SECONDS = 30.0
"""For the round trip, on top of what a command may take."""
LOOK_SECONDS = 0.5
MISSING = "no_such_file"

Made = TypeVar("Made", Sandbox, Instance)


class ServerSandbox:
    """A folder on the server, and commands in it that see nothing else."""

    def __init__(self, server: ServerConnection, sandbox_id: str) -> None:
        self.id = sandbox_id
        self._server = server

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float = COMMAND_SECONDS,
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command: a text by `sh`, a list as it is. It runs once, however often the request is
        repeated."""
        words = command if isinstance(command, str) else [*command]
        asked = Exec(command=words, stdin=stdin, variables=variables or {}, timeout_seconds=seconds)
        with server_boundary():
            answer = await self._server.ask(
                "POST",
                f"/sandboxes/{self.id}/exec",
                body=msgspec.json.encode(asked),
                headers={IDEMPOTENCY_HEADER: secrets.token_hex(16)},
                seconds=seconds + SLACK_SECONDS,
            )
            result = decode_answer(answer, ExecResult)
        return CommandResult(result.code, result.output)

    async def read(self, path: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        with server_boundary():
            try:
                return await self._server.ask("GET", self._file(path))
            except ServerError as error:
                if error.code == MISSING:
                    return None
                raise

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file, completely or not at all, replacing whatever is there."""
        data = content if isinstance(content, bytes) else content.encode()
        with server_boundary():
            await self._server.ask("PUT", self._file(path), body=data)

    def _file(self, path: str) -> str:
        if ".." in path.split("/"):
            raise EnvError(f"{path!r} leads out of the sandbox; give a path below its folder")
        return f"/sandboxes/{self.id}/files/{quote(path)}"


class ServerInstance(msgspec.Struct, frozen=True):
    """A program with a port, as it is reached from here."""

    id: str
    url: str
    """Ends in a slash; append the path to request from the program."""
    headers: Mapping[str, str]
    """Send them with every request; the program does not see them."""


@asynccontextmanager
async def sandbox(
    *,
    backend: Backend | None = None,
    image: str | None = None,
    memory_mb: int | None = None,
    minutes: int = 60,
) -> AsyncIterator[ServerSandbox]:
    """A sandbox on the server for as long as the block lasts; the run must have --allow-sandbox-access."""
    new = NewSandbox(backend=backend, image=image, memory_mb=memory_mb, timeout_minutes=minutes)
    async with ServerConnection(find_server()) as server:
        with server_boundary():
            made = await server.post("/sandboxes", new, Sandbox)
        async with hold_sandbox(server, f"/sandboxes/{made.id}", made):
            yield ServerSandbox(server, made.id)


@asynccontextmanager
async def instance(
    command: Sequence[str],
    port: int,
    *,
    files: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    backend: Backend | None = None,
    image: str | None = None,
    memory_mb: int | None = None,
    minutes: int = 60,
) -> AsyncIterator[ServerInstance]:
    """A program on the server that listens on a port, for as long as the block lasts; the run must have
    --allow-instances-access. `files` are written before it starts, by path."""
    new = NewInstance(
        command=[*command],
        port=port,
        files=files or {},
        variables=variables or {},
        backend=backend,
        image=image,
        memory_mb=memory_mb,
        timeout_minutes=minutes,
    )
    async with ServerConnection(find_server()) as server:
        with server_boundary():
            made = await server.post("/instances", new, Instance)
        async with hold_sandbox(server, f"/instances/{made.id}", made):
            context = server.context
            headers = {"authorization": f"Bearer {context.token}"}
            yield ServerInstance(made.id, context.url + made.url, headers)


def find_server() -> Context:
    """The server whose hosted run this is part of."""
    url, token = os.environ.get(URL_VARIABLE, ""), os.environ.get(KEY_VARIABLE, "")
    if not url or not token:
        raise ConfigError(
            "Sandboxes and instances are for runs on a Proctor server; play this environment there, with "
            "`proctor eval run OWNER/NAME --hosted --allow-sandbox-access`."
        )
    return Context(url=url.rstrip("/"), token=token)


@asynccontextmanager
async def hold_sandbox(server: ServerConnection, path: str, made: Made) -> AsyncIterator[None]:
    """Wait until a sandbox is ready; end it afterwards, whatever happened."""
    try:
        while made.status == "starting":
            await asyncio.sleep(LOOK_SECONDS)
            with server_boundary():
                made = await server.get(path, type(made))
        if made.status != "ready":
            raise EnvError(f"{made.id} failed to start: {made.message or made.status}")
        yield
    finally:
        await asyncio.shield(delete_sandbox(server, path))


async def delete_sandbox(server: ServerConnection, path: str) -> None:
    try:
        await server.delete(path)
    except ServerError as error:
        log.warning("could not end %s, which ends with the run: %s", path, error)


@contextmanager
def server_boundary() -> Iterator[None]:
    try:
        yield
    except ServerError as error:
        kind = InfraError if error.is_transient else EnvError
        raise kind(str(error)) from error
