"""DockerRuntime: a fresh container for every rollout.

Uses the `docker` program, and so whatever engine that is set up to reach. A rollout takes three calls: run,
inspect, remove. A container is also removed when its rollout is cancelled; if this process is killed, the
next run on this machine removes it, by its owner label. Knows nothing of the channel's content.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import platformdirs

from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.container import Container
from proctor.runtimes.container_spec import ContainerSpec, passed_variables
from proctor.runtimes.docker_client import CANNOT_RUN, COMMAND_SECONDS, Docker, DockerError
from proctor.runtimes.hello import wait_for_hello
from proctor.runtimes.runtime import Runtime
from proctor.runtimes.sandbox_runtime import SandboxRuntime
from proctor.runtimes.serving import (
    PORT,
    TOKEN_VARIABLE,
    Command,
    Variables,
    fresh_token,
    resolve_variables,
    split_command,
)
from proctor.support import sandbox_bridge
from proctor.support.cancellation import finish
from proctor.support.file_lock import hold_file_lock
from proctor.support.logs import log
from proctor.support.relay import StreamFarEnd, open_relay
from proctor.task import Task

STARTS_AT_ONCE = 8
"""More would only queue in the engine."""
REMOVE_SECONDS = 30.0
PULL_SECONDS = 1800.0


class DockerRuntime(SandboxRuntime):
    """Serves each rollout's environment from a container of its own.

    The image's command, or the one given here, must serve an environment on `port`, on all addresses.
    """

    def __init__(
        self,
        image: str,
        *,
        port: int = PORT,
        command: Command | None = None,
        env: Variables | None = None,
        memory: str | int | None = None,
        cpus: float | None = None,
        pids: int | None = 4096,
        network: str = "bridge",
        user: str | None = None,
        mounts: Sequence[str] = (),
        run_args: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        sandbox: bool = False,
        reach: Literal["port", "exec"] | None = None,
        python: str = "python3",
        pull: Literal["never", "missing"] = "missing",
        start_seconds: float = 120,
        lease_seconds: float = 24 * 3600,
    ) -> None:
        if network == "none" and reach == "port":
            raise ConfigError(
                "a container without a network has no port to reach; leave out reach, or set it to 'exec'"
            )
        super().__init__(image, port=port, env=env, start_seconds=start_seconds)
        self._spec = ContainerSpec(
            image=image,
            port=port,
            command=split_command(command or ()),
            memory=memory,
            cpus=cpus,
            pids=pids,
            network=network,
            user=user,
            mounts=mounts,
            run_args=run_args,
            labels=labels or {},
            sandbox=sandbox,
            lease_seconds=lease_seconds,
        )
        self._reach: str | None = "exec" if network == "none" else reach
        self._python = python
        self._pull = pull
        self._docker = Docker()
        self._image_id: str | None = None
        """The id that the image's name resolved to, so that all rollouts of a run use the same image."""
        self._left: set[str] = set()
        """Containers that may still exist although they were removed."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._start_limit = asyncio.Semaphore(STARTS_AT_ONCE)
        self._checking = asyncio.Lock()

    async def check(self) -> None:
        """Remove what dead runs left behind; raise unless engine, image and settings work."""
        await self._resolve_image()

    async def close(self) -> None:
        """Retry removing containers whose removal failed."""
        left, self._left = sorted(self._left), set()
        if left:
            try:
                await finish(self._docker.remove(*left, seconds=REMOVE_SECONDS))
            except DockerError as error:
                log.warning("Could not remove containers %s: %s", ", ".join(left), error)

    async def _resolve_image(self) -> str:
        """The id of the image, looked up once."""
        self._bind_to_loop()
        async with self._checking:
            if self._image_id is None:
                resolve_variables(self.env)
                await self._find_engine()
                found = await self._find_image()
                await self._try_settings(found)
                self._image_id = found
            return self._image_id

    def _bind_to_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._start_limit, self._checking = (
                loop,
                asyncio.Semaphore(STARTS_AT_ONCE),
                asyncio.Lock(),
            )

    async def _find_engine(self) -> None:
        try:
            await self._docker.reap()
            if self._reach is None:
                is_here = (await self._docker.host()).startswith(("unix:", "npipe:"))
                self._reach = "port" if is_here else "exec"
        except DockerError as error:
            raise ConfigError(
                f"the Docker engine does not answer; start it, or point DOCKER_HOST to it: {error}"
            ) from error

    async def _find_image(self) -> str:
        try:
            found = await self._docker.image_id(self.image)
            if found is None and self._pull == "missing":
                found = await self._pull_image()
        except DockerError as error:
            raise ConfigError(
                f"the image {self.image!r} is not here and cannot be pulled: {error}"
            ) from error
        if found is None:
            raise ConfigError(
                f"the engine has no image {self.image!r}; build it: docker build -t {self.image} ."
            )
        return found

    async def _pull_image(self) -> str | None:
        """Once for all workers on this machine: those that wait find it there."""
        async with hold_file_lock(pull_lock_file(self.image)):
            found = await self._docker.image_id(self.image)
            if found is None:
                await self._docker("pull", "--quiet", self.image, seconds=PULL_SECONDS)
                found = await self._docker.image_id(self.image)
            return found

    async def _try_settings(self, image_id: str) -> None:
        """Create a container without starting it, so that bad settings fail before the first rollout."""
        missing = self._spec.missing_mounts()
        if missing and self._reach == "port":
            raise ConfigError(f"cannot mount {missing[0]}: it does not exist")
        name, environ = fresh_name(), resolve_variables(self.env)
        words = self._words("create", name=name, image_id=image_id, task="", environ=environ)
        try:
            await finish(self._docker(*words, environ=passed_variables(environ)))
        except DockerError as error:
            raise ConfigError(
                f"no container of {self.image} can be created with these settings: {error}"
            ) from error
        await finish(self._remove(name))

    def _words(
        self, *verb: str, name: str, image_id: str, task: str, environ: Mapping[str, str]
    ) -> list[str]:
        published = self._reach == "port"
        return self._spec.words(
            *verb, name=name, image_id=image_id, task=task, environ=environ, published=published
        )

    @asynccontextmanager
    async def _open_runtime(self, task: Task) -> AsyncIterator[Runtime]:
        image_id, token = await self._resolve_image(), fresh_token()
        async with self._run_container(image_id, task, token) as container, self._open_url(container) as url:
            try:
                yield Runtime(url, token=token)
            except (EnvError, OSError) as error:
                ended = await container.explain_end()
                if ended is None:
                    raise
                raise ended from error

    @asynccontextmanager
    async def _run_container(self, image_id: str, task: Task, token: str) -> AsyncIterator[Container]:
        """A running container, removed when the block ends, however it ends."""
        name, environ = fresh_name(), {**resolve_variables(self.env), TOKEN_VARIABLE: token}
        words = self._words("run", "--detach", name=name, image_id=image_id, task=task.slug, environ=environ)
        try:
            async with self._start_limit:
                # Cancelled halfway, the engine might create the container after its removal.
                await finish(self._run(name, words, passed_variables(environ)))
            spec = self._spec
            yield Container(self._docker, name, self.image, self.port, spec.memory, spec.sandbox)
        finally:
            await finish(self._remove(name))

    async def _run(self, name: str, words: Sequence[str], environ: Mapping[str, str]) -> None:
        try:
            await self._docker(*words, seconds=min(self.start_seconds, COMMAND_SECONDS), environ=environ)
        except DockerError as error:
            self._left.add(name)  # the engine may still be creating it
            kind = EnvError if error.code in CANNOT_RUN else InfraError
            raise kind(f"no container of {self.image} could be started: {error}") from error

    async def _remove(self, name: str) -> None:
        try:
            await self._docker.remove(name, seconds=REMOVE_SECONDS)
        except DockerError as error:
            self._left.add(name)
            log.warning("container %s could not be removed: %s", name, error)

    @asynccontextmanager
    async def _open_url(self, container: Container) -> AsyncIterator[str]:
        """The URL of the environment in a container."""
        if self._reach == "port":
            url = f"tcp://127.0.0.1:{await container.published_port()}"
            await self._wait_for(container, url, [])
            yield url
            return
        script, seconds = inspect.getsource(sandbox_bridge), str(self.start_seconds)
        broken: list[DockerError] = []

        @asynccontextmanager
        async def connect() -> AsyncIterator[StreamFarEnd]:
            words = (self._python, "-c", script, "stdio", str(self.port), seconds)
            try:
                async with self._docker.open_exec(container.name, *words) as far:
                    yield far
            except DockerError as error:
                broken.append(error)

        async with open_relay(connect) as url:
            await self._wait_for(container, url, broken)
            yield url

    async def _wait_for(self, container: Container, url: str, broken: Sequence[DockerError]) -> None:
        async def look() -> None:
            await container.raise_if_ended()
            if broken:
                raise EnvError(
                    f"{self.image} is reached through its Python, but {broken[0]}; name its own: python=…"
                )

        try:
            async with asyncio.timeout(self.start_seconds):
                await wait_for_hello(url, look)
        except TimeoutError:
            raise await container.no_answer_error(self.start_seconds) from None


def fresh_name() -> str:
    return f"proctor-{secrets.token_hex(8)}"


def pull_lock_file(image: str) -> Path:
    """One for each image and engine."""
    what = f"{os.environ.get('DOCKER_HOST', '')} {image}"
    name = hashlib.sha256(what.encode()).hexdigest()[:32]
    return platformdirs.user_cache_path("proctor") / "pulls" / f"{name}.lock"
