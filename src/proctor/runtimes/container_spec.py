"""From a runtime's settings to the command line that creates its containers.

Contacts no engine: refuses what is wrong with the settings themselves.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from proctor.errors import ConfigError
from proctor.runtimes.docker_client import EXPIRY_LABEL, MARK, OWNER_LABEL
from proctor.runtimes.owners import this_process

LONGEST_LABEL = 200
CLIENT_VARIABLES = re.compile(r"DOCKER_\w+|PATH|HOME|TMPDIR|SSH_\w+|\w+_PROXY|\w+_proxy")
"""Variables that `docker` itself reads, which a container's values must not override."""

SANDBOX = (
    # What bubblewrap needs to create namespaces inside a container; leaving out any one breaks it.
    f"seccomp={Path(__file__).with_name('seccomp.json')}",
    "apparmor=unconfined",
    "systempaths=unconfined",
)


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What all containers of a runtime have in common."""

    image: str
    port: int
    command: Sequence[str]
    memory: str | int | None
    cpus: float | None
    pids: int | None
    network: str
    user: str | None
    mounts: Sequence[str]
    run_args: Sequence[str]
    labels: Mapping[str, str]
    sandbox: bool
    lease_seconds: float

    def __post_init__(self) -> None:
        if not self.image:
            raise ConfigError("no image is named; pass docker://IMAGE")
        if self.network == "host":
            raise ConfigError("network 'host' gives rollouts no ports of their own; use 'bridge' or 'none'")
        if self.memory is not None and not re.fullmatch(r"\d+[bkmgBKMG]?", str(self.memory)):
            raise ConfigError(f"memory {self.memory!r} is not a size; write 512m or 2g")

    def words(
        self, *verb: str, name: str, image_id: str, task: str, environ: Mapping[str, str], published: bool
    ) -> list[str]:
        """The command line that creates a container, without values: every user can read command lines."""
        labels = {
            OWNER_LABEL: str(this_process()),
            EXPIRY_LABEL: str(int(time.time() + self.lease_seconds)),
            "proctor.image": self.image,
            "proctor.task": task.replace("\0", "")[:LONGEST_LABEL],
            **self.labels,
        }
        return [
            *(*verb, "--name", name, "--init", "--pull", "never", "--network", self.network, "--label", MARK),
            *(format_option("label", f"{key}={value}") for key, value in labels.items()),
            *(
                format_option("env", key if is_passed(key) else f"{key}={value}")
                for key, value in environ.items()
            ),
            *([f"--publish=127.0.0.1::{self.port}"] if published else ()),
            *self._limits(),
            *(format_option("volume", with_absolute_path(mount)) for mount in self.mounts),
            *(format_option("security-opt", value) for value in SANDBOX if self.sandbox),
            *self.run_args,
            image_id,
            *self.command,
        ]

    def _limits(self) -> list[str]:
        limits = {
            "memory": self.memory,
            "memory-swap": self.memory,  # the same, which means no swap
            "cpus": self.cpus,
            "pids-limit": self.pids,
            "user": self.user,
        }
        return [format_option(name, value) for name, value in limits.items() if value is not None]

    def missing_mounts(self) -> list[str]:
        """Mounts that do not exist on this machine; the engine would create empty folders in their place."""
        sources = (mount.partition(":")[0] for mount in self.mounts)
        return [source for source in sources if is_path(source) and not Path(source).expanduser().exists()]


def passed_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that reach a container through the environment of `docker` itself."""
    return {key: value for key, value in environ.items() if is_passed(key)}


def is_passed(key: str) -> bool:
    return CLIENT_VARIABLES.fullmatch(key) is None


def with_absolute_path(mount: str) -> str:
    source, colon, rest = mount.partition(":")
    return f"{Path(source).expanduser().resolve()}{colon}{rest}" if is_path(source) else mount


def is_path(source: str) -> bool:
    """A path, rather than the name of a volume."""
    return source.startswith(("/", ".", "~"))


def format_option(name: str, value: object) -> str:
    return f"--{name}={value}"
