"""A workspace that another server provides over ssh: commands run there, their output comes back.

Knows what an `ssh/2` binding contains, and nothing of what is behind it.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from proctor.contracts import CommandResult, HttpEndpoint
from proctor.errors import EnvError, InfraError
from proctor.support.output import CHUNK_BYTES, OutputBuffer
from proctor.workspaces.ssh import asyncssh

CONNECTING_SECONDS = 30.0
LEAVING_SECONDS = 5.0


class SshWorkspace:
    """A folder on another server, and a shell in it."""

    def __init__(self, url: str, params: Mapping[str, Any]) -> None:
        self.url = url
        self.params = params
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()

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
            raise EnvError(
                "a program in a workspace over ssh cannot reach the model: its network is not ours; "
                "use an agent that works from outside"
            )
        kept = OutputBuffer()
        connection = await self._ensure_connected()
        try:
            process = await connection.create_process(
                build_remote_command(command, variables or {}), encoding=None, stderr=asyncssh.STDOUT
            )
            try:
                async with asyncio.timeout(seconds):
                    await asyncio.gather(send_input(process, stdin), collect_output(process, kept))
                    await process.wait_closed()
                return CommandResult(exit_code(process), kept.text())
            except TimeoutError:
                return CommandResult(None, kept.text())
            finally:
                process.close()
        except (OSError, asyncssh.Error) as error:
            raise InfraError(f"the workspace at {self.url} is lost: {error}") from error

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            await asyncio.wait({asyncio.create_task(self._connection.wait_closed())}, timeout=LEAVING_SECONDS)

    async def _ensure_connected(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                self._connection = await connect_ssh(self.url, self.params)
            return self._connection


async def connect_ssh(url: str, params: Mapping[str, Any]) -> asyncssh.SSHClientConnection:
    address = urlsplit(url)
    if address.hostname is None or address.port is None:
        raise EnvError(f"{url!r} is not the address of a workspace; write ssh://host:port")
    try:
        key, host_key = params.get("client_key"), params.get("host_pubkey")
        async with asyncio.timeout(CONNECTING_SECONDS):
            connection: asyncssh.SSHClientConnection = await asyncssh.connect(
                address.hostname,
                address.port,
                username=params.get("user", "agent"),
                client_keys=[asyncssh.import_private_key(key)] if key else None,
                known_hosts=([asyncssh.import_public_key(host_key)], [], []) if host_key else None,
                agent_path=None,
                config=None,
                keepalive_interval=15,
            )
    except (OSError, asyncssh.Error, asyncssh.KeyImportError) as error:
        raise InfraError(f"cannot connect to the workspace at {url}: {error or 'no answer'}") from error
    return connection


def build_remote_command(command: str | Sequence[str], variables: Mapping[str, str]) -> str:
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    given = [f"{name}={value}" for name, value in variables.items()]
    return shlex.join(["env", *given, *words] if given else words)


async def send_input(process: asyncssh.SSHClientProcess[bytes], stdin: bytes) -> None:
    try:
        for start in range(0, len(stdin), CHUNK_BYTES):
            process.stdin.write(stdin[start : start + CHUNK_BYTES])
            await process.stdin.drain()
        process.stdin.write_eof()
    except OSError:  # a command may end without having read everything
        return


async def collect_output(process: asyncssh.SSHClientProcess[bytes], kept: OutputBuffer) -> None:
    while chunk := await process.stdout.read(CHUNK_BYTES):
        kept.add(chunk)


def exit_code(process: asyncssh.SSHClientProcess[bytes]) -> int:
    if process.returncode is None:
        raise InfraError("a command in a workspace over ssh ended without an exit code; its server has gone")
    return process.returncode
