"""DockerRuntime: a fresh container for every rollout.

Made by the `docker` program, so whatever engine that reaches is used. Three calls of it make a rollout: run,
look, remove. A container is removed also when its rollout is cancelled; if this process is killed, the next
run on this machine removes it, by the owner it is labelled with. Knows nothing of what is said there.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Literal

from proctor.errors import ConfigError, EnvError, InfraError
from proctor.logs import log
from proctor.runtimes.container import Container
from proctor.runtimes.docker_client import (
    COMMAND_SECONDS,
    EXPIRY_LABEL,
    MARK,
    OWNER_LABEL,
    Docker,
    DockerError,
)
from proctor.runtimes.finishing import finish
from proctor.runtimes.hello import wait_for_hello
from proctor.runtimes.owners import this_process
from proctor.runtimes.relay import relayed
from proctor.runtimes.runtime import Runtime
from proctor.runtimes.serving import (
    PORT,
    TOKEN_VARIABLE,
    Command,
    Variables,
    fresh_token,
    values_of,
    words_of,
)
from proctor.task import Task

STARTS_AT_ONCE = 8
"""More would only wait for each other in the engine."""
REMOVE_SECONDS = 30.0
PULL_SECONDS = 1800.0
LONGEST_LABEL = 200
CLIENT_VARIABLES = re.compile(r"DOCKER_\w+|PATH|HOME|TMPDIR|SSH_\w+|\w+_PROXY|\w+_proxy")
"""What the program itself reads: a container's values for these must not change where the program looks."""

BRIDGE = Path(__file__).with_name("bridge.py")
SANDBOX = (
    # What bubblewrap needs to make namespaces inside a container, found by leaving out one after the other.
    f"seccomp={Path(__file__).with_name('seccomp.json')}",
    "apparmor=unconfined",
    "systempaths=unconfined",
)


class DockerRuntime:
    """Serves every rollout's environment from a container of its own.

    The image's command, or the one given here, serves an environment on `port`, on all addresses.
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
        if not image:
            raise ConfigError("which image? Name one: docker://IMAGE")
        if network == "host":
            raise ConfigError(
                "network 'host' leaves no port of its own to each rollout; take 'bridge' or 'none'"
            )
        if memory is not None and not re.fullmatch(r"\d+[bkmgBKMG]?", str(memory)):
            raise ConfigError(f"memory {memory!r} is no size; write it as 512m or 2g")
        if network == "none" and reach == "port":
            raise ConfigError(
                "a container without a network has no port to reach; leave out reach, or say 'exec'"
            )
        self.image = image
        self.port = port
        self.command = words_of(command or ())
        self.env = dict(env or {})
        self.memory = memory
        self.network = network
        self.python = python
        self.pull = pull
        self.start_seconds = start_seconds
        self.lease_seconds = lease_seconds
        self._reach: str | None = "exec" if network == "none" else reach
        self._options = [
            *("--init", "--pull", "never", "--network", network),
            *(
                option(name, value)
                for name, value in (("cpus", cpus), ("pids-limit", pids), ("user", user))
                if value
            ),
            *((option("memory", memory), option("memory-swap", memory)) if memory else ()),
            *(option("volume", mount) for mount in mounts),
            *(option("label", f"{name}={value}") for name, value in (labels or {}).items()),
            *(option("security-opt", value) for value in SANDBOX if sandbox),
            *run_args,
        ]
        self._docker = Docker()
        self._image_id: str | None = None
        self._left: set[str] = set()
        """Containers whose removal failed."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = asyncio.Semaphore(STARTS_AT_ONCE)
        self._checking = asyncio.Lock()

    def __repr__(self) -> str:
        return f"DockerRuntime({self.image!r})"

    def __call__(self, task: Task) -> AbstractAsyncContextManager[Runtime]:
        return self._place(task)

    async def check(self) -> None:
        """Find the engine and the image, and remove what dead runs left behind."""
        self._belong_to_this_loop()
        async with self._checking:
            if self._image_id is None:
                self._image_id = await self._prepared()

    async def close(self) -> None:
        """Try once more to remove what could not be removed before."""
        left, self._left = sorted(self._left), set()
        if left:
            try:
                await finish(self._docker.remove(*left, seconds=REMOVE_SECONDS))
            except DockerError as error:
                log.warning("%s still there: %s", ", ".join(left), error)

    def _belong_to_this_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._gate, self._checking = loop, asyncio.Semaphore(STARTS_AT_ONCE), asyncio.Lock()

    async def _prepared(self) -> str:
        values_of(self.env)
        try:
            await self._docker.reap()
            if self._reach is None:
                is_here = (await self._docker.host()).startswith(("unix:", "npipe:"))
                self._reach = "port" if is_here else "exec"
        except DockerError as error:
            raise ConfigError(
                f"the Docker engine does not answer: {error}; start it, or point DOCKER_HOST to it"
            ) from error
        try:
            found = await self._docker.image_id(self.image)
            if found is None and self.pull == "missing":
                await self._docker("pull", "--quiet", self.image, seconds=PULL_SECONDS)
                found = await self._docker.image_id(self.image)
        except DockerError as error:
            raise ConfigError(
                f"the image {self.image!r} is neither here nor can be pulled: {error}"
            ) from error
        if found is None:
            raise ConfigError(
                f"the engine has no image {self.image!r}; build it: docker build -t {self.image} ."
            )
        return found

    @asynccontextmanager
    async def _place(self, task: Task) -> AsyncIterator[Runtime]:
        await self.check()
        token = fresh_token()
        async with self._started(task, token) as container, self._reached(container) as url:
            try:
                yield Runtime(url, token=token)
            except (EnvError, OSError) as error:
                ended = await container.explained()
                if ended is None:
                    raise
                raise ended from error

    @asynccontextmanager
    async def _started(self, task: Task, token: str) -> AsyncIterator[Container]:
        """A running container; gone afterwards, whatever happens."""
        name = f"proctor-{secrets.token_hex(8)}"
        environ = {**values_of(self.env), TOKEN_VARIABLE: token}
        words = self.run_words(name, task, environ)
        passed = {key: value for key, value in environ.items() if not CLIENT_VARIABLES.fullmatch(key)}
        is_started = False
        try:
            async with self._gate:
                # Cancelled in the middle, the engine might make the container after it was removed.
                await finish(self._run(words, passed))
            is_started = True
            yield Container(self._docker, name, self.image, self.port, self.memory)
        finally:
            await finish(self._remove(name, is_started))

    async def _run(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        try:
            await self._docker(*words, seconds=min(self.start_seconds, COMMAND_SECONDS), environ=environ)
        except DockerError as error:
            kind = EnvError if error.code in (126, 127) else InfraError
            raise kind(f"no container of {self.image} could be started: {error}") from error

    def run_words(self, name: str, task: Task, environ: Mapping[str, str]) -> list[str]:
        """The command line that starts a container. Values stay off it: everybody can read command lines."""
        given = (
            f"{key}={value}" if CLIENT_VARIABLES.fullmatch(key) else key for key, value in environ.items()
        )
        labels = {
            OWNER_LABEL: str(this_process()),
            EXPIRY_LABEL: str(int(time.time() + self.lease_seconds)),
            "proctor.image": self.image,
            "proctor.task": task.slug.replace("\0", "")[:LONGEST_LABEL],
        }
        return [
            *("run", "--detach", "--name", name, "--label", MARK),
            *(option("label", f"{key}={value}") for key, value in labels.items()),
            *(option("env", value) for value in given),
            *([f"--publish=127.0.0.1::{self.port}"] if self._reach == "port" else ()),
            *self._options,
            self._image_id or self.image,
            *self.command,
        ]

    async def _remove(self, name: str, is_started: bool) -> None:
        if not is_started:  # the engine may still be at it, and have nothing to remove yet
            self._left.add(name)
        try:
            await self._docker.remove(name, seconds=REMOVE_SECONDS)
        except DockerError as error:
            self._left.add(name)
            log.warning("the container %s could not be removed: %s", name, error)

    @asynccontextmanager
    async def _reached(self, container: Container) -> AsyncIterator[str]:
        """The url at which the environment in a container answers."""
        if self._reach == "port":
            url = f"tcp://127.0.0.1:{await container.published_port()}"
            await self._wait_for(container, url)
            yield url
            return
        script, seconds = BRIDGE.read_text(encoding="utf-8"), str(self.start_seconds)
        bridge = (self.python, "-c", script, str(self.port), seconds)
        async with relayed(lambda: self._docker.joined(container.name, *bridge)) as url:
            await self._wait_for(container, url)
            yield url

    async def _wait_for(self, container: Container, url: str) -> None:
        try:
            async with asyncio.timeout(self.start_seconds):
                await wait_for_hello(url, container.raise_if_ended)
        except TimeoutError:
            raise await container.silent(self.start_seconds) from None


def option(name: str, value: object) -> str:
    return f"--{name}={value}"
