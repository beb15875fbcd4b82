"""DaytonaRuntime: a Daytona sandbox for every rollout, through Daytona's own package.

The environment's port is reached by ssh, since previews carry only HTTP. Tested up to the calls of Daytona's
package, not against Daytona itself. Knows nothing of the channel's content.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any

from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.cloud_runtime import REMOVE_SECONDS, CloudRuntime, SandboxAccess
from proctor.runtimes.serving import PORT, Command, Variables, resolve_variables
from proctor.support.relay import StreamFarEnd, open_stream
from proctor.task import Task

SSH_TRIES = 10
SSH_PAUSE_SECONDS = 1.0
SESSION = "proctor"
KEY_VARIABLE = "DAYTONA_API_KEY"


class DaytonaRuntime(CloudRuntime):
    """Serves each rollout's environment from a sandbox of its own, created from a snapshot.

    `command` is started in the sandbox; an empty one leaves it to the snapshot's own entrypoint.
    """

    vendor = "Daytona"

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
        super().__init__(
            snapshot,
            port=port,
            command=command,
            env=env,
            start_seconds=start_seconds,
            lease_seconds=lease_seconds,
        )
        self.known_hosts = known_hosts
        """A file of host keys to trust; without one, any key that Daytona's gateway presents."""
        self._options = {"network_block_all": not network, "target": target, **(options or {})}
        self._client: Any = None

    async def check(self) -> None:
        """Raise unless the packages, a key and the snapshot exist."""
        daytona = self._daytona
        import_package("asyncssh")
        resolve_variables(self.env)
        try:
            await self._open().snapshot.get(self.image)
        except daytona.DaytonaNotFoundError as error:
            raise ConfigError(f"Daytona has no snapshot {self.image!r}; create it first") from error
        except daytona.DaytonaError as error:
            raise ConfigError(f"Daytona cannot be used: {error}; check {KEY_VARIABLE}") from error

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def _daytona(self) -> Any:
        return import_package("daytona")

    @property
    def _vendor_error(self) -> type[Exception]:
        error: type[Exception] = self._daytona.DaytonaError
        return error

    @property
    def _lease_minutes(self) -> int:
        return max(1, round(self.lease_seconds / 60))

    def _open(self) -> Any:
        if self._client is None:
            self._client = self._daytona.AsyncDaytona()
        return self._client

    async def _create(self, task: Task, variables: Mapping[str, str]) -> Any:
        daytona = self._daytona
        try:
            wanted = daytona.CreateSandboxFromSnapshotParams(
                snapshot=self.image,
                env_vars=dict(variables),
                labels={"proctor": "1", "task": task.slug},
                ephemeral=True,
                auto_stop_interval=0,
                ttl_minutes=self._lease_minutes,
                **self._options,
            )
            return await self._open().create(wanted, timeout=self.start_seconds)
        except daytona.DaytonaNotFoundError as error:
            raise EnvError(f"Daytona has no snapshot {self.image!r}; create it first") from error
        except daytona.DaytonaError as error:
            raise InfraError(f"no Daytona sandbox of {self.image} could be created: {error}") from error

    async def _delete(self, sandbox: Any) -> None:
        await sandbox.delete(timeout=REMOVE_SECONDS)

    @asynccontextmanager
    async def _access(self, sandbox: Any) -> AsyncIterator[SandboxAccess]:
        command = await self._serve(sandbox)
        async with self._connect_by_ssh(sandbox) as connection:

            def connect() -> AbstractAsyncContextManager[StreamFarEnd]:
                return open_stream(connection.open_connection("127.0.0.1", self.port))

            yield SandboxAccess(connect, lambda: self._raise_if_ended(sandbox, command))

    async def _serve(self, sandbox: Any) -> str | None:
        """Start the command that serves, if we have one; returns its id."""
        if not self.command:
            return None
        request = self._daytona.SessionExecuteRequest(command=shlex.join(self.command), run_async=True)
        try:
            await sandbox.process.create_session(SESSION)
            started = await sandbox.process.execute_session_command(SESSION, request)
            return str(started.cmd_id)
        except self._vendor_error as error:
            raise InfraError(f"the environment could not be started in {self.image}: {error}") from error

    @asynccontextmanager
    async def _connect_by_ssh(self, sandbox: Any) -> AsyncIterator[Any]:
        """An ssh connection; the ssh server may come up a little later than its sandbox."""
        asyncssh = import_package("asyncssh")
        try:
            access = await sandbox.create_ssh_access(expires_in_minutes=self._lease_minutes)
        except self._vendor_error as error:
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

    async def _raise_if_ended(self, sandbox: Any, command: str | None) -> None:
        if command is None:
            return
        try:
            seen = await sandbox.process.get_session_command(SESSION, command)
            if seen.exit_code is None:
                return
            logs = await sandbox.process.get_session_command_logs(SESSION, command)
        except self._vendor_error as error:
            raise InfraError(f"Daytona does not report the state of {self.image}: {error}") from error
        printed = (logs.output or "").strip()[-1000:]
        raise EnvError(
            f"the command in {self.image} ended with exit code {seen.exit_code}; its last output: {printed}"
        )


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
