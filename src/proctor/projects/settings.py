"""A recipe → the settings of an evaluation, here and on a server alike.

Whoever plays a recipe knows two folders: where the rollout is, and where the dataset is. Everything else
follows from the recipe, so that it means the same wherever it is played. Knows nothing of engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.client.contexts import current_context, need_context
from proctor.client.dataset_files import find_own, pin_latest
from proctor.config.experiment import Recipe, RecipeFile
from proctor.datasets.cache import DatasetCache
from proctor.datasets.dataset import describe_missing, list_files, locate_dataset
from proctor.datasets.files import find_scanner, hash_file
from proctor.datasets.references import LATEST, DatasetReference, find_reference
from proctor.errors import ConfigError
from proctor.projects.layout import Project

ENVIRONMENT = "workflow"


class RowChoice(msgspec.Struct, frozen=True):
    """Rows named beside the recipe."""

    rows: str = ""
    """As --rows says it."""
    offset: int = 0

    def check(self) -> None:
        if self.rows and self.offset:
            raise ConfigError("--rows names the rows, and --offset skips some; give one of them.")
        if self.offset < 0:
            raise ConfigError(f"--offset is {self.offset}, and must be at least 0.")


AS_IN_THE_RECIPE = RowChoice()


def find_dataset(
    recipe: RecipeFile, project: Project, given: str | None, environ: Mapping[str, str]
) -> Path | DatasetReference:
    """The recipe's dataset: the given file, the one in data/, or a version on the server in use.

    A bare name is looked up in data/ first, then among your datasets and your teams'.
    """
    if given is not None:
        find_scanner(Path(given))
        return Path(given)
    name = recipe.recipe.experiment.dataset
    try:
        reference = find_reference(name)
        if reference is not None:
            return pin_reference(reference, environ)
        bare, _, version = name.partition("@")
        if list_files(bare, project.data) and not version:
            return locate_dataset(bare, project.data)
        return find_on_server(bare, version or LATEST, project, environ)
    except ConfigError as error:
        raise ConfigError(f"{recipe.locate('experiment', 'dataset')}: {error}") from error


def pin_reference(reference: DatasetReference, environ: Mapping[str, str]) -> DatasetReference:
    """With its whole hash; one that was downloaded before needs no server."""
    if reference.is_pinned:
        cached = DatasetCache().find_prefix(reference.version)
        if cached is not None:
            return reference.pin(cached.stem)
    return pin_latest(reference, need_context(environ))


def find_on_server(name: str, version: str, project: Project, environ: Mapping[str, str]) -> DatasetReference:
    """A dataset of this user or their teams."""
    context = current_context(environ)
    found = None if context is None else find_own(name, context)
    if context is not None and found is not None:
        return pin_latest(found.pin(version), context)
    where = "you are not logged in to a server" if context is None else f"{context.url} has none of yours"
    raise ConfigError(f"{describe_missing(name, project.data)} On a server: {where}.")


def describe_source(dataset: Path | DatasetReference, environ: Mapping[str, str]) -> str:
    """Which dataset is used, and from where."""
    if isinstance(dataset, Path):
        return str(dataset)
    context = current_context(environ)
    return f"{dataset.short} from {context.url if context else 'the cache'}"


def build_settings(
    recipe: Recipe,
    folder: Path,
    dataset: Path | DatasetReference,
    choice: RowChoice = AS_IN_THE_RECIPE,
) -> dict[str, Any]:
    """The settings of an evaluation that plays a recipe's rollout, in this folder, on this dataset."""
    if isinstance(dataset, Path):
        word, sha256 = str(dataset.resolve()), hash_file(dataset)
    else:
        word, sha256 = str(dataset), dataset.version
    shared = build_shared_settings(recipe, word, sha256, choice)
    return {
        **shared,
        "env_id": ENVIRONMENT,
        "env_args": {"folder": str(folder.resolve()), **shared["env_args"]},
        "model": recipe.experiment.model_path,
        "num_examples": -1,
    }


def build_hosted_settings(
    recipe: Recipe, dataset: DatasetReference, choice: RowChoice, selected_rows: int
) -> dict[str, Any]:
    """The same for a run on a server, where the package knows its folder."""
    shared = build_shared_settings(recipe, str(dataset), dataset.version, choice)
    return {**shared, "num_examples": selected_rows}


def build_shared_settings(recipe: Recipe, dataset: str, sha256: str, choice: RowChoice) -> dict[str, Any]:
    choice.check()
    evaluation = recipe.evaluation
    arguments = {
        "entrypoint": recipe.experiment.entrypoint,
        "dataset": dataset,
        "sha256": sha256,
        "env": recipe.env,
        "limit": evaluation.limit,
        "seed": evaluation.seed if evaluation.limit is None else 0,
        "offset": choice.offset,
        "rows": choice.rows,
    }
    return {
        "name": recipe.experiment.rollout,
        **recipe.advanced,
        "env_args": {name: value for name, value in arguments.items() if value},
        "rollouts_per_example": evaluation.n,
        "max_concurrent": evaluation.batch_size * evaluation.n,
        "timeout": evaluation.agent_workflow_timeout_s,
        "scoring_timeout": evaluation.grader_timeout_s,
        "pass_threshold": evaluation.pass_threshold,
        "config_hash": recipe.hash,
    }
