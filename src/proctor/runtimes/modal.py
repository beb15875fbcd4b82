"""ModalRuntime: a Modal sandbox for every rollout, through Modal's own package.

The environment's port is reached through an encrypted tunnel, which is public: the token keeps others out.
Tested up to the calls of Modal's package, not against Modal itself. Knows nothing of the channel's content.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.cloud_runtime import CloudRuntime, SandboxAccess
from proctor.runtimes.serving import PORT, Command, Variables, resolve_variables
from proctor.support.relay import StreamFarEnd, open_stream
from proctor.task import Task

LONGEST_TAG = 60


class ModalRuntime(CloudRuntime):
    """Serves every rollout's environment from a sandbox of its own."""

    vendor = "Modal"

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
        super().__init__(
            image,
            port=port,
            command=command,
            env=env,
            start_seconds=start_seconds,
            lease_seconds=lease_seconds,
        )
        self.image_from = image_from
        self.app = app
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

    @property
    def _vendor_error(self) -> type[Exception]:
        error: type[Exception] = import_modal().exception.Error
        return error

    async def _create(self, task: Task, variables: Mapping[str, str]) -> Any:
        modal = import_modal()
        secret = modal.Secret.from_dict(dict(variables))
        try:
            app = await modal.App.lookup.aio(self.app, create_if_missing=True)
            return await modal.Sandbox.create.aio(
                *self.command,
                app=app,
                image=self._image(modal),
                secrets=[secret],
                timeout=int(self.lease_seconds),
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

    async def _delete(self, sandbox: Any) -> None:
        await sandbox.terminate.aio()

    @asynccontextmanager
    async def _access(self, sandbox: Any) -> AsyncIterator[SandboxAccess]:
        host, port = await self._tunnel(sandbox)

        def connect() -> AbstractAsyncContextManager[StreamFarEnd]:
            secure = ssl.create_default_context()
            return open_stream(asyncio.open_connection(host, port, ssl=secure, server_hostname=host))

        yield SandboxAccess(connect, lambda: self._raise_if_ended(sandbox))

    async def _tunnel(self, sandbox: Any) -> tuple[str, int]:
        try:
            tunnels = await sandbox.tunnels.aio(timeout=int(self.start_seconds))
        except (self._vendor_error, TimeoutError) as error:
            await self._raise_if_ended(sandbox)
            raise InfraError(f"the sandbox of {self.image} has no tunnel: {error}") from error
        host, port = tunnels[self.port].tls_socket
        return host, port

    async def _raise_if_ended(self, sandbox: Any) -> None:
        try:
            code = await sandbox.poll.aio()
            printed = "" if code is None else await sandbox.stderr.read.aio()
        except self._vendor_error as error:
            raise InfraError(
                f"Modal does not report the state of the sandbox of {self.image}: {error}"
            ) from error
        if code is not None:
            raise EnvError(
                f"the sandbox of {self.image} ended with exit code {code}; its last output: {printed[-1000:]}"
            )


def import_modal() -> Any:
    try:
        import modal
    except ImportError as error:
        raise ConfigError("Modal's package is missing; pip install 'proctor[modal]'") from error
    return modal
