"""A task of Harbor: its folder, and what `task.toml` says. Starts nothing."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError, EnvError
from proctor.task import Task

CONFIG = "task.toml"
INSTRUCTION = "instruction.md"
COMPOSE_FILES = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
SIZE = re.compile(r"\s*([\d.]+)\s*([KMG])\s*", re.IGNORECASE)
MEGABYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}
VARIABLE = re.compile(r"\$\{(\w+)(?::-(.*))?\}", re.DOTALL)
PUBLIC, NO_NETWORK = "public", "no-network"


class HealthcheckSection(msgspec.Struct, frozen=True):
    """A command that must succeed before the agent begins."""

    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    retries: int = 3


class EnvironmentSection(msgspec.Struct, frozen=True):
    """The container."""

    docker_image: str | None = None
    build_timeout_sec: float = 600.0
    os: str = "linux"
    cpus: float | None = None
    memory_mb: int | None = None
    memory: str | None = None
    storage_mb: int | None = None
    gpus: int | None = None
    tpu: Any = None
    network_mode: str | None = None
    allow_internet: bool | None = None
    mcp_servers: list[Any] = []
    env: dict[str, str] = {}
    workdir: str | None = None
    healthcheck: HealthcheckSection | None = None

    @property
    def network(self) -> str:
        return self.network_mode or (NO_NETWORK if self.allow_internet is False else PUBLIC)

    @property
    def megabytes(self) -> int | None:
        """Of memory; older files write it as `2G`."""
        if self.memory_mb is not None or self.memory is None:
            return self.memory_mb
        size = SIZE.fullmatch(self.memory)
        if size is None:
            raise ConfigError(f"memory = {self.memory!r} is not a size; write memory_mb, or 512M or 2G")
        return int(float(size[1]) * MEGABYTES[size[2].upper()])


class AgentSection(msgspec.Struct, frozen=True):
    """How the agent works."""

    timeout_sec: float | None = None
    user: str | int | None = None
    network_mode: str | None = None


class VerifierSection(msgspec.Struct, frozen=True):
    """How the tests run."""

    timeout_sec: float = 600.0
    user: str | int | None = None
    env: dict[str, str] = {}
    environment_mode: str | None = None
    environment: Any = None
    network_mode: str | None = None
    collect: list[Any] = []


class SolutionSection(msgspec.Struct, frozen=True):
    """How the solution runs."""

    env: dict[str, str] = {}


class HarborConfig(msgspec.Struct, frozen=True):
    """What `task.toml` says, as far as it matters here."""

    environment: EnvironmentSection = EnvironmentSection()
    agent: AgentSection = AgentSection()
    verifier: VerifierSection = VerifierSection()
    solution: SolutionSection = SolutionSection()
    metadata: dict[str, Any] = {}
    steps: list[Any] = []


class TaskFolder(msgspec.Struct, frozen=True):
    """One task."""

    path: Path
    config: HarborConfig
    instruction: str

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def tests(self) -> Path:
        return self.path / "tests"

    @property
    def solution(self) -> Path:
        return self.path / "solution"

    @property
    def build_folder(self) -> Path:
        return self.path / "environment"

    def as_task(self) -> Task:
        prompt = ({"role": "user", "content": self.instruction},)
        info = {"metadata": self.config.metadata, "content": hash_folder(self.path)}
        return Task(id=self.name, prompt=prompt, info=info)


def read_folders(path: Path) -> list[TaskFolder]:
    """The task in a folder, or those in its folders, by name."""
    if (path / CONFIG).is_file():
        return [read_folder(path)]
    return [read_folder(file.parent) for file in sorted(path.glob(f"*/{CONFIG}"))]


def read_folder(path: Path) -> TaskFolder:
    try:
        content = tomllib.loads((path / CONFIG).read_text(encoding="utf-8"))
        config = msgspec.convert(content, HarborConfig)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path / CONFIG} is not valid TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path / CONFIG} cannot be read: {error}.") from error
    instruction = path / INSTRUCTION
    if not instruction.is_file() and not config.steps:
        raise ConfigError(f"{path} has a {CONFIG} but no {INSTRUCTION}; it is not a task of Harbor.")
    text = instruction.read_text(encoding="utf-8", errors="replace") if instruction.is_file() else ""
    return TaskFolder(path, config, text)


def find_unsupported(folder: TaskFolder) -> Iterator[tuple[str, str]]:
    """What the task needs and cannot get here, and why."""
    config, environment, verifier = folder.config, folder.config.environment, folder.config.verifier
    if any((folder.build_folder / name).is_file() for name in COMPOSE_FILES):
        yield "docker-compose", "the task consists of several containers, and only one is started here"
    elif environment.docker_image is None and not (folder.build_folder / "Dockerfile").is_file():
        yield "environment", "it has neither environment/Dockerfile nor a docker_image"
    if config.steps:
        yield "steps", "tasks in several steps are not played"
    if environment.os.lower() != "linux":
        yield "os", f"containers of {environment.os} are not started"
    if environment.gpus or environment.tpu is not None:
        yield "gpus", "containers get no accelerators here"
    if environment.mcp_servers:
        yield "mcp_servers", "servers inside the container are not lent to the agent"
    modes = {environment.network, config.agent.network_mode, verifier.network_mode} - {None}
    if modes - {PUBLIC, NO_NETWORK} or len(modes) > 1:
        yield "network_mode", "the network is on or off for the whole rollout; there is no list of hosts"
    if verifier.environment_mode == "separate" or verifier.environment is not None:
        yield "verifier.environment", "the tests run in the agent's container only"
    if verifier.collect:
        yield "verifier.collect", "nothing is collected before the tests"
    if not (folder.tests / "test.sh").is_file():
        yield "tests", "there is no tests/test.sh"


def describe_unsupported(folder: TaskFolder) -> str | None:
    """Why the task cannot be played, as one sentence; None if it can."""
    reasons = [f"{name}: {why}" for name, why in find_unsupported(folder)]
    return f"{folder.name} cannot be played here ({'; '.join(reasons)})" if reasons else None


def resolve_variables(variables: Mapping[str, str], where: str) -> dict[str, str]:
    """The values, with `${NAME}` and `${NAME:-default}` taken from this machine's variables."""
    return {name: resolve_variable(text, where) for name, text in variables.items()}


def resolve_variable(text: str, where: str) -> str:
    match = VARIABLE.fullmatch(text)
    if match is None:
        return text
    name, default = match.groups()
    if name in os.environ:
        return os.environ[name]
    if default is None:
        raise EnvError(f"{where} needs the variable {name}, which is not set; export it")
    return str(default)


def hash_folder(path: Path) -> str:
    """Changes with the name, mode or content of any file."""
    digest = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        mode = "x" if os.access(file, os.X_OK) else "-"
        digest.update(f"{file.relative_to(path)}\0{mode}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
