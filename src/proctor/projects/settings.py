"""A recipe → the settings of an evaluation, here and on a server alike.

Whoever plays a recipe knows two folders: where the rollout is, and where the dataset is. Everything else
follows from the recipe, so that it means the same wherever it is played. Knows nothing of engines.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from proctor.config.experiment import Recipe, RecipeFile
from proctor.datasets.dataset import locate_dataset
from proctor.datasets.files import find_scanner, hash_file
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


def find_dataset(recipe: RecipeFile, project: Project, given: str | None) -> Path:
    """The recipe's dataset as a file: the given one, or the one in data/."""
    if given is not None:
        find_scanner(Path(given))
        return Path(given)
    name = recipe.recipe.experiment.dataset
    if "/" in name or "@" in name:
        raise ConfigError(
            f"{recipe.place('experiment', 'dataset')}: {name!r} is on a server; pull it with "
            f"`proctor dataset pull {name}`, and name the file with --dataset-file."
        )
    try:
        return locate_dataset(name, project.data)
    except ConfigError as error:
        raise ConfigError(f"{recipe.place('experiment', 'dataset')}: {error}") from error


def build_settings(
    recipe: Recipe, folder: Path, dataset: Path, choice: RowChoice = AS_IN_THE_RECIPE
) -> dict[str, Any]:
    """The settings of an evaluation that plays a recipe's rollout, in this folder, on this dataset."""
    shared = build_shared_settings(recipe, hash_file(dataset), choice)
    places = {"folder": str(folder.resolve()), "dataset": str(dataset.resolve())}
    return {
        **shared,
        "env_id": ENVIRONMENT,
        "env_args": {**places, **shared["env_args"]},
        "model": recipe.experiment.model_path,
        "num_examples": -1,
    }


def build_hosted_settings(
    recipe: Recipe, sha256: str, choice: RowChoice, selected_rows: int
) -> dict[str, Any]:
    """The same for a run on a server, where the package knows its folder, and the host the dataset's."""
    return {**build_shared_settings(recipe, sha256, choice), "num_examples": selected_rows}


def build_shared_settings(recipe: Recipe, sha256: str, choice: RowChoice) -> dict[str, Any]:
    choice.check()
    evaluation = recipe.evaluation
    arguments = {
        "entrypoint": recipe.experiment.entrypoint,
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
