"""Turn a recipe and a commit into a hosted run: code from the commit, values from the recipe.

Knows nothing of HTTP or git.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Row

from proctor.api.runs import Estimate, NewRun, RunOrigin
from proctor.api.sources import NewSubmission
from proctor.config.experiment import Recipe, parse_recipe
from proctor.config.toml_file import TomlFile
from proctor.datasets.references import DatasetReference
from proctor.errors import ConfigError, did_you_mean
from proctor.projects.settings import RowChoice, build_hosted_settings
from proctor.server.gateway.models import ModelRoute
from proctor.server.hub.records import resolve_version
from proctor.server.ledger.estimate import build_estimate
from proctor.server.ledger.past_rollouts import PlannedRun
from proctor.server.people.tokens import Caller, find_user_caller
from proctor.server.problems import InvalidError
from proctor.server.runs import submission
from proctor.server.secrets.vault import Vault
from proctor.server.sources import origins, run_names

RECIPE_FILE = "recipe"


def read_submitted_recipe(new: NewSubmission) -> Recipe:
    """The recipe, checked as the file was."""
    return read_recipe_table(new.recipe, RowChoice(new.rows, new.offset))


def read_recipe_table(table: Mapping[str, Any], choice: RowChoice) -> Recipe:
    try:
        recipe = parse_recipe(TomlFile(Path(RECIPE_FILE), dict(table), {})).recipe
        choice.check()
    except ConfigError as error:
        raise InvalidError(f"The recipe was refused: {error}", field="recipe") from error
    return recipe


def build_run_request(
    new: NewSubmission, recipe: Recipe, environment: str, caller: Caller, source: Row[Any]
) -> NewRun:
    """The same run as a request for a pushed version would be."""
    settings = build_hosted_settings(
        recipe,
        DatasetReference(new.dataset.owner, new.dataset.name, new.dataset.sha256),
        RowChoice(new.rows, new.offset),
        new.dataset.selected_rows,
    )
    return NewRun(
        environment=environment,
        model=recipe.experiment.model_path,
        settings=settings,
        team=source.owner if source.owner in caller.teams else None,
        permissions=new.permissions,
        timeout_minutes=new.timeout_minutes,
        max_cost_usd=new.max_cost_usd,
        custom_secrets=new.custom_secrets,
    )


def check_files(build: Row[Any], recipe: Recipe) -> None:
    entrypoint = recipe.experiment.entrypoint
    if entrypoint not in build.files:
        near = did_you_mean(entrypoint, [name for name in build.files if name.endswith(".py")])
        raise InvalidError(
            f"rollouts/{build.rollout} has no {entrypoint!r} at commit {build.commit_sha[:12]}{near}",
            code="unknown_entrypoint",
        )


def find_missing_secrets(new: NewSubmission, recipe: Recipe, available: set[str]) -> list[str]:
    return [name for name in recipe.secrets if name not in available | set(new.custom_secrets)]


def refuse_missing_secrets(new: NewSubmission, recipe: Recipe, available: set[str]) -> None:
    missing = find_missing_secrets(new, recipe, available)
    if missing:
        raise InvalidError(
            f"The recipe requires {', '.join(missing)}; set the variable where you submit, name a file with "
            f"--secrets-file, or store it with `proctor secret set --env`.",
            code="missing_secret",
            names=missing,
        )


def estimate_submission(
    connection: Connection, caller: Caller, run: NewRun, new: NewSubmission, route: ModelRoute
) -> Estimate:
    environment, version = resolve_version(
        connection, find_user_caller(connection, caller.user), run.environment
    )
    facts: Mapping[str, Any] = {}
    if new.dataset.prompt_characters is not None:
        facts = {"mean_prompt_characters": new.dataset.prompt_characters}
    planned = PlannedRun(
        environment_id=environment.id,
        version_id=version.id,
        model=route.name,
        price=None if run.settings.get("api_base_url") else route.price,
        settings=run.settings,
        payer=run.team or caller.user,
        reader=caller,
        facts=facts,
    )
    return build_estimate(connection, planned)


def start_submission(
    connection: Connection,
    caller: Caller,
    vault: Vault,
    run: NewRun,
    origin: RunOrigin,
    name: str,
    route: ModelRoute,
) -> str:
    """Create the run, and record where its code and its data come from."""
    if name:
        run_names.check_run_name(connection, caller.user, name)
    else:
        name = run_names.choose_run_name(connection, caller.user, origin.rollout)
    as_owner = find_user_caller(connection, caller.user)
    run_id = submission.submit(connection, as_owner, vault, replace(run, name=name), route)
    origins.save_origin(connection, run_id, origin)
    return run_id


def build_origin(
    new: NewSubmission, recipe: Recipe, source: Row[Any], build: Row[Any], branch: str
) -> RunOrigin:
    return RunOrigin(
        source=f"{source.owner}/{source.name}",
        repository=source.repository,
        rollout=build.rollout,
        entrypoint=recipe.experiment.entrypoint,
        commit_sha=build.commit_sha,
        branch=branch,
        dataset=new.dataset,
        config_hash=recipe.hash,
        recipe=msgspec.to_builtins(recipe),
    )
