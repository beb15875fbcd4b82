"""DaytonaRuntime: a Daytona sandbox for every rollout, through Daytona's own package.

The environment's port is reached by ssh, since previews carry only HTTP. A sandbox is deleted with its
rollout, and after `lease_seconds` at the latest, so a killed run does not leave one behind for long. Tested
up to the calls of Daytona's package, not against Daytona itself. Knows nothing of the channel's content.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any

from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.runtime import Runtime
from proctor.runtimes.sandbox_runtime import SandboxRuntime
from proctor.runtimes.serving import (
    PORT,
    TOKEN_VARIABLE,
    Command,
    Variables,
    fresh_token,
    resolve_serve_command,
    resolve_variables,
)
from proctor.support.logs import log
from proctor.support.relay import StreamFarEnd, open_relay, open_stream
from proctor.support.shield import create_or_undo, finish
from proctor.task import Task

REMOVE_SECONDS = 30.0
SSH_TRIES = 10
SSH_PAUSE_SECONDS = 1.0
SESSION = "proctor"
KEY_VARIABLE = "DAYTONA_API_KEY"


class DaytonaRuntime(SandboxRuntime):
    """Serves each rollout's environment from a sandbox of its own, created from a snapshot.

    `command` is started in the sandbox; an empty one leaves it to the snapshot's own entrypoint.
    """

    def __init__(
        self,
        snapshot: str,
        *,
        port: int = PORT,
        command: Command | None = None,
        env: Variables | None = None,
        network: bool = True,
        target: str | None = None,
        known_hosts: str | None = None,
        start_seconds: float = 120.0,
        lease_seconds: float = 3600.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if not snapshot:
            raise ConfigError("no snapshot is named; pass daytona://SNAPSHOT")
        super().__init__(snapshot, port=port, env=env, start_seconds=start_seconds)
        self.command = resolve_serve_command(command, port)
        self.known_hosts = known_hosts
        """A file of host keys to trust; without one, any key that Daytona's gateway presents."""
        self.lease_seconds = lease_seconds
        self._options = {"network_block_all": not network, "target": target, **(options or {})}
        self._client: Any = None

    async def check(self) -> None:
        """Raise unless the packages, a key and the snapshot exist."""
        daytona = import_package("daytona")
        import_package("asyncssh")
        resolve_variables(self.env)
        try:
            await self._open(daytona).snapshot.get(self.image)
        except daytona.DaytonaNotFoundError as error:
            raise ConfigError(f"Daytona has no snapshot {self.image!r}; create it first") from error
        except daytona.DaytonaError as error:
            raise ConfigError(f"Daytona cannot be used: {error}; check {KEY_VARIABLE}") from error

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _open(self, daytona: Any) -> Any:
        if self._client is None:
            self._client = daytona.AsyncDaytona()
        return self._client

    @asynccontextmanager
    async def _open_runtime(self, task: Task) -> AsyncIterator[Runtime]:
        daytona = import_package("daytona")
        token = fresh_token()
        sandbox = await create_or_undo(
            self._create(daytona, task, token), lambda made: delete_sandbox(daytona, made)
        )
        try:
            command = await self._serve(daytona, sandbox)
            async with self._connect_by_ssh(daytona, sandbox) as connection:

                def connect() -> AbstractAsyncContextManager[StreamFarEnd]:
                    return open_stream(connection.open_connection("127.0.0.1", self.port))

                async with open_relay(connect) as url:
                    await self._wait_for(daytona, sandbox, command, url)
                    yield Runtime(url, token=token)
        finally:
            await finish(delete_sandbox(daytona, sandbox))

    async def _create(self, daytona: Any, task: Task, token: str) -> Any:
        try:
            wanted = daytona.CreateSandboxFromSnapshotParams(
                snapshot=self.image,
                env_vars={**resolve_variables(self.env), TOKEN_VARIABLE: token},
                labels={"proctor": "1", "task": task.slug},
                ephemeral=True,
                auto_stop_interval=0,
                ttl_minutes=self._lease_minutes,
                **self._options,
            )
            return await self._open(daytona).create(wanted, timeout=self.start_seconds)
        except daytona.DaytonaNotFoundError as error:
            raise EnvError(f"Daytona has no snapshot {self.image!r}; create it first") from error
        except daytona.DaytonaError as error:
            raise InfraError(f"no Daytona sandbox of {self.image} could be created: {error}") from error

    @property
    def _lease_minutes(self) -> int:
        return max(1, round(self.lease_seconds / 60))

    async def _serve(self, daytona: Any, sandbox: Any) -> str | None:
        """Start the command that serves, if we have one; returns its id."""
        if not self.command:
            return None
        request = daytona.SessionExecuteRequest(command=shlex.join(self.command), run_async=True)
        try:
            await sandbox.process.create_session(SESSION)
            started = await sandbox.process.execute_session_command(SESSION, request)
            return str(started.cmd_id)
        except daytona.DaytonaError as error:
            raise InfraError(f"the environment could not be started in {self.image}: {error}") from error

    @asynccontextmanager
    async def _connect_by_ssh(self, daytona: Any, sandbox: Any) -> AsyncIterator[Any]:
        """An ssh connection; the ssh server may come up a little later than its sandbox."""
        asyncssh = import_package("asyncssh")
        try:
            access = await sandbox.create_ssh_access(expires_in_minutes=self._lease_minutes)
        except daytona.DaytonaError as error:
            raise InfraError(f"Daytona gives no ssh access to a sandbox: {error}") from error
        host, port = parse_ssh_command(access.ssh_command)
        for tries_left in reversed(range(SSH_TRIES)):
            try:
                connection = await asyncssh.connect(
                    host,
                    port,
                    username=access.token,
                    known_hosts=self.known_hosts,
                    config=None,
                    client_keys=None,
                )
                break
            except (OSError, asyncssh.Error) as error:
                if not tries_left:
                    raise InfraError(f"no ssh connection through {host}: {error}") from error
                await asyncio.sleep(SSH_PAUSE_SECONDS)
        async with connection:
            yield connection

    async def _wait_for(self, daytona: Any, sandbox: Any, command: str | None, url: str) -> None:
        async def look() -> None:
            if command is not None:
                await self._raise_if_ended(daytona, sandbox, command)

        await self._wait_until_ready(url, look)

    async def _raise_if_ended(self, daytona: Any, sandbox: Any, command: str) -> None:
        try:
            seen = await sandbox.process.get_session_command(SESSION, command)
            if seen.exit_code is None:
                return
            logs = await sandbox.process.get_session_command_logs(SESSION, command)
        except daytona.DaytonaError as error:
            raise InfraError(f"Daytona does not report the state of {self.image}: {error}") from error
        printed = (logs.output or "").strip()[-1000:]
        raise EnvError(
            f"the command in {self.image} ended with exit code {seen.exit_code}; its last output: {printed}"
        )


async def delete_sandbox(daytona: Any, sandbox: Any) -> None:
    try:
        async with asyncio.timeout(REMOVE_SECONDS):
            await sandbox.delete(timeout=REMOVE_SECONDS)
    except (daytona.DaytonaError, TimeoutError) as error:
        log.warning("a Daytona sandbox could not be deleted: %s", error or "it took too long")


def parse_ssh_command(ssh_command: str) -> tuple[str, int]:
    """Host and port of a command like `ssh -p 2222 TOKEN@HOST`."""
    words = shlex.split(ssh_command)
    port = int(words[words.index("-p") + 1]) if "-p" in words else 22
    host = next((word.rpartition("@")[2] for word in words[1:] if "@" in word), "")
    if not host:
        raise InfraError(f"Daytona's ssh command names no host: {ssh_command.partition('@')[2]!r}")
    return host, port


def import_package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(f"the package {name} is missing; pip install 'proctor[daytona]'") from error
