"""ModalRuntime: a Modal sandbox for every rollout, through Modal's own package.

The environment's port is reached through an encrypted tunnel, which is public: the token keeps others out. A
sandbox ends with its rollout, and after `lease_seconds` at the latest, so a killed run does not leave one
behind for long. Tested up to the calls of Modal's package, not against Modal itself. Knows nothing of the
channel's content.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

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
LONGEST_TAG = 60


class ModalRuntime(SandboxRuntime):
    """Serves every rollout's environment from a sandbox of its own."""

    def __init__(
        self,
        image: str,
        *,
        image_from: Literal["registry", "name", "id"] = "registry",
        app: str = "proctor",
        port: int = PORT,
        command: Command | None = None,
        env: Variables | None = None,
        cpu: float | None = None,
        memory: int | None = None,
        gpu: str | None = None,
        region: str | None = None,
        allowed_domains: list[str] | None = None,
        start_seconds: float = 600.0,
        lease_seconds: int = 3600,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if not image:
            raise ConfigError("no image is named; pass modal://IMAGE")
        super().__init__(image, port=port, env=env, start_seconds=start_seconds)
        self.image_from = image_from
        self.app = app
        self.command = resolve_serve_command(command, port)
        self.lease_seconds = lease_seconds
        given = {"cpu": cpu, "memory": memory, "gpu": gpu, "region": region}
        self._options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if allowed_domains is not None:
            self._options["outbound_domain_allowlist"] = list(allowed_domains)
        self._options.update(options or {})

    async def check(self) -> None:
        """Raise unless the package is installed and Modal accepts the login."""
        modal = import_modal()
        resolve_variables(self.env)
        try:
            await modal.App.lookup.aio(self.app, create_if_missing=True)
        except modal.exception.AuthError as error:
            raise ConfigError(f"Modal refused the login: {error}; run `modal token new`") from error
        except modal.exception.Error as error:
            raise ConfigError(f"the Modal app {self.app!r} cannot be used: {error}") from error

    @asynccontextmanager
    async def _open_runtime(self, task: Task) -> AsyncIterator[Runtime]:
        modal = import_modal()
        token = fresh_token()
        sandbox = await create_or_undo(
            self._create(modal, task, token), lambda made: terminate_sandbox(modal, made)
        )
        try:
            host, port = await self._tunnel(modal, sandbox)

            def connect() -> AbstractAsyncContextManager[StreamFarEnd]:
                secure = ssl.create_default_context()
                return open_stream(asyncio.open_connection(host, port, ssl=secure, server_hostname=host))

            async with open_relay(connect) as url:
                await self._wait_until_ready(url, lambda: self._raise_if_ended(modal, sandbox))
                yield Runtime(url, token=token)
        finally:
            await finish(terminate_sandbox(modal, sandbox))

    async def _create(self, modal: Any, task: Task, token: str) -> Any:
        secret = modal.Secret.from_dict({**resolve_variables(self.env), TOKEN_VARIABLE: token})
        try:
            app = await modal.App.lookup.aio(self.app, create_if_missing=True)
            return await modal.Sandbox.create.aio(
                *self.command,
                app=app,
                image=self._image(modal),
                secrets=[secret],
                timeout=self.lease_seconds,
                encrypted_ports=[self.port],
                tags={"proctor": "1", "task": task.slug[:LONGEST_TAG]},
                **self._options,
            )
        except modal.exception.InvalidError as error:
            raise EnvError(f"Modal cannot create a sandbox from {self.image}: {error}") from error
        except modal.exception.Error as error:
            raise InfraError(f"no Modal sandbox of {self.image} could be created: {error}") from error

    def _image(self, modal: Any) -> Any:
        makers = {
            "registry": modal.Image.from_registry,
            "name": modal.Image.from_name,
            "id": modal.Image.from_id,
        }
        return makers[self.image_from](self.image)

    async def _tunnel(self, modal: Any, sandbox: Any) -> tuple[str, int]:
        try:
            tunnels = await sandbox.tunnels.aio(timeout=int(self.start_seconds))
        except (modal.exception.Error, TimeoutError) as error:
            await self._raise_if_ended(modal, sandbox)
            raise InfraError(f"the sandbox of {self.image} has no tunnel: {error}") from error
        host, port = tunnels[self.port].tls_socket
        return host, port

    async def _raise_if_ended(self, modal: Any, sandbox: Any) -> None:
        try:
            code = await sandbox.poll.aio()
            printed = "" if code is None else await sandbox.stderr.read.aio()
        except modal.exception.Error as error:
            raise InfraError(
                f"Modal does not report the state of the sandbox of {self.image}: {error}"
            ) from error
        if code is not None:
            raise EnvError(
                f"the sandbox of {self.image} ended with exit code {code}; its last output: {printed[-1000:]}"
            )


async def terminate_sandbox(modal: Any, sandbox: Any) -> None:
    try:
        async with asyncio.timeout(REMOVE_SECONDS):
            await sandbox.terminate.aio()
    except (modal.exception.Error, TimeoutError) as error:
        log.warning("a Modal sandbox could not be terminated: %s", error or "it took too long")


def import_modal() -> Any:
    try:
        import modal
    except ImportError as error:
        raise ConfigError("Modal's package is missing; pip install 'proctor[modal]'") from error
    return modal
