"""The settings that a run was started with, to start another like it.

Secret headers are not stored, and an environment that was made in Python cannot be made again: both are said
rather than guessed. Knows nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.config.endpoints import CUSTOM_CLIENT, Endpoint
from proctor.config.headers import HIDDEN
from proctor.config.schema import EvalConfig
from proctor.contracts import Desk, EnvironmentProtocol, Model, Request
from proctor.endpoints.endpoint import open_model
from proctor.errors import AgentError, ConfigError, ModelError, StoreError
from proctor.evaluation.prepare import Prepared, prepare, resolve_endpoint
from proctor.evaluation.prepare_objects import prepare_instance
from proctor.packages.loading import EnvironmentLocation, find_environment
from proctor.store.folder import read_metadata
from proctor.trace import Reply


class RecordedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was started with."""

    folder: Path
    metadata: Mapping[str, Any]
    given: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return self.folder.resolve().name


def read_recorded_settings(folder: Path) -> RecordedSettings:
    try:
        metadata = read_metadata(folder)
        config = msgspec.convert(metadata.get("config") or {}, EvalConfig)
    except StoreError as error:
        raise ConfigError(f"{error} Name a run by its folder, its id, or 'latest'.") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{folder} does not hold the settings of an evaluation ({error}).") from error
    given = {
        name: value for name in EvalConfig.__struct_fields__ if (value := getattr(config, name)) is not None
    }
    return RecordedSettings(folder=folder, metadata=metadata, given=given)


def prepare_again(
    recorded: RecordedSettings, overrides: Mapping[str, Any], environ: Mapping[str, str]
) -> Prepared:
    """The recorded evaluation with today's code; `overrides` are settings that are to be different."""
    given = merge_settings(recorded, overrides)
    require_known(recorded, given)
    return prepare(
        given, environ, name_origins(recorded, given, overrides), found=find_again(recorded, overrides)
    )


def prepare_rescoring(
    recorded: RecordedSettings,
    overrides: Mapping[str, Any],
    environ: Mapping[str, str],
    environment: EnvironmentProtocol | None = None,
) -> tuple[Prepared, OnDemandModel]:
    """The recorded evaluation in this process, and its model, which is opened only if a judge asks it.

    It is scored with the given `environment`, or with the one that the run was of.
    """
    given = merge_settings(recorded, overrides)
    agent = None if given.get("agent") is None else RecordedAgent(str(given["agent"]))
    for name in ("agent", "runtime", "runtime_args", "num_workers", "on", "on_args"):
        given.pop(name, None)
    model = OnDemandModel(given, recorded.metadata, environ)
    if environment is not None:
        prepared = prepare_instance(environment, given, model, agent)
        return replace(prepared, endpoint=model.describe()), model
    origins, found = name_origins(recorded, given, overrides), find_again(recorded, overrides)
    return prepare(given, environ, origins, agent=agent, found=found, endpoint=model.describe()), model


def merge_settings(recorded: RecordedSettings, overrides: Mapping[str, Any]) -> dict[str, Any]:
    given = {**recorded.given, **overrides}
    if "model" in overrides:  # another model has another endpoint
        for name in ("endpoint_id", "api_base_url", "api_key_var", "api_client_type", "provider"):
            if name not in overrides:
                given.pop(name, None)
    if "task_ids" not in overrides and "num_examples" in overrides:
        given.pop("task_ids", None)
    return given


def name_origins(
    recorded: RecordedSettings, given: Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, str]:
    return {name: f"run {recorded.run_id}" for name in given if name not in overrides}


def require_known(recorded: RecordedSettings, given: Mapping[str, Any]) -> None:
    """Refuse what the record cannot tell."""
    hidden = [name for name, value in (given.get("headers") or {}).items() if value == HIDDEN]
    if hidden:
        raise ConfigError(
            f"The value of header {hidden[0]} is not stored; pass it again with --header '{hidden[0]}: …'."
        )
    if recorded.metadata.get("api_client_type") == CUSTOM_CLIENT and given.get("model") is None:
        raise ConfigError(
            f"The model of {recorded.run_id} was made in Python and cannot be made again; name one with -m."
        )


def find_again(recorded: RecordedSettings, overrides: Mapping[str, Any]) -> EnvironmentLocation:
    """The environment that the run was of, where it was then; or the one that is named instead."""
    env_dir = str(recorded.given.get("env_dir_path", "./environments"))
    if "env_id" in overrides:
        return find_environment(str(overrides["env_id"]), env_dir)
    path = (recorded.metadata.get("environment") or {}).get("path")
    try:
        return find_environment(str(path or recorded.given["env_id"]), env_dir)
    except ConfigError as error:
        raise ConfigError(f"{error} Name the environment of run {recorded.run_id} with --env.") from error


class RecordedAgent:
    """Stands for the agent of a run that is only scored again."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, desk: Desk) -> str:  # noqa: ARG002
        raise AgentError(f"{self.name} does no work when its run is scored again")


class OnDemandModel:
    """A run's model, resolved and opened when it is first asked: scoring again may never need it."""

    def __init__(
        self, given: Mapping[str, Any], metadata: Mapping[str, Any], environ: Mapping[str, str]
    ) -> None:
        self._given = given
        self._metadata = metadata
        self._environ = environ
        self._model: Model | None = None

    @property
    def name(self) -> str:
        return str(self._metadata.get("model") or "")

    def describe(self) -> Endpoint:
        """Its endpoint as recorded, for reports."""
        client_type = str(self._metadata.get("api_client_type") or CUSTOM_CLIENT)
        return Endpoint(
            model=self.name, client_type=client_type, url=str(self._metadata.get("base_url") or "")
        )

    async def check(self) -> None:
        pass

    async def complete(self, request: Request) -> Reply:
        return await self._open().complete(request)

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()

    def _open(self) -> Model:
        if self._model is None:
            try:
                config = msgspec.convert(self._given, EvalConfig)
                self._model = open_model(resolve_endpoint(config, self._environ))
            except ConfigError as error:
                raise ModelError(f"{self.name} is the judge, and cannot be called: {error}") from error
        return self._model
