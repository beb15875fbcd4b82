"""What an environment, agent, provider or listener may offer beyond its contract, and how to ask for it.

Each is a Protocol of its own: a part has it by having the method. Knows nothing of its callers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from proctor.contracts import PASS_THRESHOLD, EnvironmentProtocol, Session
from proctor.rollout import RecordedPlay
from proctor.task import Task


@runtime_checkable
class Checkable(Protocol):
    """A provider that can tell beforehand whether any rollout can succeed."""

    async def check(self) -> None: ...


@runtime_checkable
class Closable(Protocol):
    """A provider or listener that is closed when the run is over."""

    async def close(self) -> None: ...


@runtime_checkable
class AcceptsConcurrency(Protocol):
    """An environment or provider that wants to know how many rollouts will be in flight."""

    def set_concurrency(self, concurrency: int) -> None: ...


@runtime_checkable
class AcceptsRunFolder(Protocol):
    """An environment that keeps files with the run's results."""

    def set_run_folder(self, folder: Path) -> None: ...


@runtime_checkable
class HasCapacity(Protocol):
    """A provider with a maximum number of runtimes open at once."""

    @property
    def capacity(self) -> int | None: ...


class EnvironmentFacts(msgspec.Struct, frozen=True):
    """What served environments declare."""

    capacity: int | None = None
    """The smallest that any of them declares."""
    has_workspace: bool = False


@runtime_checkable
class KnowsEnvironments(Protocol):
    """A provider that can find out what the environments it serves declare."""

    async def describe_environments(self, names: Collection[str]) -> EnvironmentFacts: ...


@runtime_checkable
class KeepsWorkspacesElsewhere(Protocol):
    """An environment whose workspaces may be where a program could not ask this run's model."""

    @property
    def known(self) -> Mapping[str, EnvironmentProtocol]:
        """The environments whose code is on this machine too, by name."""

    @property
    def distant_workspaces(self) -> str | None:
        """Where they are; None if they are on this machine, there are none, or that is not known."""


@runtime_checkable
class Configurable(Protocol):
    """An environment that takes settings after construction (`-x`)."""

    def configure(self, settings: Mapping[str, Any]) -> None: ...


@runtime_checkable
class HasName(Protocol):
    """An environment with a name of its own."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class HasVersion(Protocol):
    """An environment that states its version."""

    @property
    def version(self) -> str | None: ...


@runtime_checkable
class HasPassThreshold(Protocol):
    """An environment that sets the reward from which a rollout counts as passed."""

    @property
    def pass_threshold(self) -> float: ...


@runtime_checkable
class HasSampling(Protocol):
    """An environment with sampling parameters of its own, which the user's override."""

    @property
    def sampling_args(self) -> Mapping[str, Any]: ...


@runtime_checkable
class HasProvenance(Protocol):
    """An environment that knows which code and data it consists of."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Added to the run's metadata, over what its package says."""

    @property
    def selection(self) -> str:
        """Which tasks it offers, and why those."""


class Fingerprint(msgspec.Struct, frozen=True):
    """Hashes of what an environment does, so that it is known what a change of its code changes."""

    play: str
    """Of what decides how a rollout is played; empty where the prompts it recorded tell."""
    scoring: str
    """Of what decides its score."""


@runtime_checkable
class HasFingerprint(Protocol):
    """An environment that can tell the code that plays from the code that scores."""

    def fingerprint(self) -> Fingerprint: ...


@runtime_checkable
class RestoresSessions(Protocol):
    """An environment that can score a rollout again from its record, without playing it."""

    def restore(self, task: Task, recorded: RecordedPlay) -> AbstractAsyncContextManager[Session]:
        """A session whose `play` takes over what was recorded, and calls no model."""

    def explain_unrestorable(self) -> str | None:
        """Why a record is not enough to score by, as the end of a sentence; None if it is enough."""


@runtime_checkable
class OffersGold(Protocol):
    """An environment that can state what a perfect model would answer."""

    def gold(self, task: Task) -> Any: ...


@runtime_checkable
class ChecksEnvironment(Protocol):
    """An agent that raises ConfigError, before the first model call, if it cannot work on an environment."""

    def check(self, environment: EnvironmentProtocol) -> None: ...


@runtime_checkable
class PrefersModel(Protocol):
    """An agent with a default model."""

    @property
    def prefers(self) -> Any:
        """A ModelPreference."""


@runtime_checkable
class HasFinalMessage(Protocol):
    """A listener with a last line for the user, printed after it is closed; empty for none."""

    @property
    def final_message(self) -> str: ...


async def check_optional(part: object) -> None:
    if isinstance(part, Checkable):
        await part.check()


async def close_optional(part: object) -> None:
    if isinstance(part, Closable):
        await part.close()


def set_optional_concurrency(part: object, concurrency: int) -> None:
    if isinstance(part, AcceptsConcurrency):
        part.set_concurrency(concurrency)


def get_capacity(part: object) -> int | None:
    return part.capacity if isinstance(part, HasCapacity) else None


async def describe_optional_environments(part: object, names: Collection[str]) -> EnvironmentFacts:
    if isinstance(part, KnowsEnvironments):
        return await part.describe_environments(names)
    return EnvironmentFacts()


def set_optional_run_folder(part: object, folder: Path) -> None:
    if isinstance(part, AcceptsRunFolder):
        part.set_run_folder(folder)


def get_pass_threshold(environment: EnvironmentProtocol) -> float:
    return float(environment.pass_threshold) if isinstance(environment, HasPassThreshold) else PASS_THRESHOLD


def get_sampling(environment: EnvironmentProtocol) -> dict[str, Any]:
    return dict(environment.sampling_args) if isinstance(environment, HasSampling) else {}


def get_version(environment: EnvironmentProtocol) -> str | None:
    return environment.version if isinstance(environment, HasVersion) else None


def get_fingerprint(environment: EnvironmentProtocol) -> Fingerprint | None:
    """None where an environment has none, or an author's objects cannot be hashed."""
    if not isinstance(environment, HasFingerprint):
        return None
    try:
        return environment.fingerprint()
    except Exception:  # whatever attributes of an author's raise; a run does not need it
        return None


def explain_unrestorable(environment: EnvironmentProtocol) -> str | None:
    """Why its rollouts cannot be scored from their record; None if they can."""
    if not isinstance(environment, RestoresSessions):
        return "this kind of environment scores only while it is played"
    return environment.explain_unrestorable()


def get_name(environment: EnvironmentProtocol) -> str:
    return str(environment.name) if isinstance(environment, HasName) else ""
