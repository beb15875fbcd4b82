"""Recipes on the command line: the flags it can be combined with, and the evaluation it describes.

If the rollout requires packages, its virtual environment is built, and the same command starts again inside.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.cli.commands.custom_secrets import parse_secrets_file
from proctor.cli.hidden import STDIN
from proctor.cli.options import flag_of
from proctor.cli.views.escape import echo
from proctor.config.experiment import Recipe, RecipeFile
from proctor.config.schema import HostedOptions, Presentation, RecipeOptions
from proctor.config.sources import long_flag
from proctor.config.suite import SuiteEntry
from proctor.errors import ConfigError, InstallError
from proctor.projects.code_version import describe_other_code
from proctor.projects.layout import Project, find_project
from proctor.projects.requirements import read_requirements
from proctor.projects.secrets import resolve_secrets
from proctor.projects.settings import RowChoice, build_settings, describe_source, find_dataset
from proctor.projects.venvs import cache_folder, ensure_venv, is_inside, require_python, restart_inside
from proctor.workflow.foreign import dialect_of_rollout

RECIPE_FLAGS = ("temperature", "max_tokens", "sampling_args")
"""Change what is evaluated, and so the recipe's hash."""
OTHER_FLAGS = (
    *("endpoints_path", "provider", "api_base_url", "api_key_var", "api_client_type", "headers"),
    *("name", "output_dir", "state_columns", "min_coverage", "max_retries", "request_timeout"),
    *("max_concurrent", "num_workers", "start_timeout", "save_results"),
)
"""About this machine, or how the results are kept."""
OUTPUTS = "outputs"


def refuse_flags(
    path: Path, settings: Mapping[str, Any], shown: Mapping[str, Any], hosted: Mapping[str, Any]
) -> None:
    """Refuse what the recipe itself decides, and what only another command can do."""
    if any(hosted.values()):
        named = next(name for name, value in hosted.items() if value)
        raise ConfigError(
            f"{flag_of(HostedOptions, named)} is not for recipes; `proctor eval submit {path}` runs one on a "
            f"server."
        )
    allowed = {"env_id", "model", *RECIPE_FLAGS, *OTHER_FLAGS}
    decided = [long_flag(name) for name in settings if name not in allowed]
    if decided:
        raise ConfigError(f"{path} sets {', '.join(decided)}; change it there.")
    if shown.get("upload"):
        raise ConfigError(f"{flag_of(Presentation, 'upload')} is not for recipes; leave it out.")


def build_entry(
    file: RecipeFile, flags: Mapping[str, Any], shown: Mapping[str, Any], options: RecipeOptions
) -> SuiteEntry:
    """The evaluation of a recipe; does not return if it must be prepared in another virtual environment."""
    check_resume(options, shown)
    project = find_project(file.path.parent)
    folder = find_rollout(file, project)
    dataset = find_dataset(file, project, options.dataset_file, os.environ)
    from_file = read_secrets(options.secrets_file)
    os.environ.update(resolve_secrets(file, from_file, os.environ))
    enter_venv(file, folder)
    echo(f"Dataset: {describe_source(dataset, os.environ)}", err=True)
    if warning := describe_other_code(file.recipe.experiment, project.root):
        echo(f"Warning: {file.path}: {warning}", err=True)
    settings = build_settings(
        apply_flags(file.recipe, flags), folder, dataset, RowChoice(options.rows or "", options.offset)
    )
    registry = {"endpoints_path": str(project.registry)} if project.registry else {}
    given = {
        **registry,
        "output_dir": str(project.root / OUTPUTS),
        "save_results": True,
        **settings,
        **{name: value for name, value in flags.items() if name in OTHER_FLAGS},
    }
    from_recipe = [name for name in given if name == "env_id" or name not in flags]
    return SuiteEntry(
        given=given, origins=dict.fromkeys(from_recipe, str(file.path)), resume=find_resume(options)
    )


def check_resume(options: RecipeOptions, shown: Mapping[str, Any]) -> None:
    given = [
        word
        for word, is_given in (
            ("--fresh", options.fresh),
            ("--retry-failed", options.retry_failed),
            ("--resume", shown.get("resume")),
        )
        if is_given
    ]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} exclude each other; give one of them.")


def find_resume(options: RecipeOptions) -> str | None:
    if not options.retry_failed:
        return None
    from proctor.evaluation.resume import FAILED

    return FAILED


def find_rollout(file: RecipeFile, project: Project) -> Path:
    experiment = file.recipe.experiment
    try:
        folder = project.find_rollout(experiment.rollout)
    except ConfigError as error:
        raise ConfigError(f"{file.locate('experiment', 'rollout')}: {error}") from error
    if not (folder / experiment.entrypoint).is_file():
        raise ConfigError(
            f"{file.locate('experiment', 'entrypoint')}: {folder} has no file {experiment.entrypoint!r}."
        )
    return folder


def apply_flags(recipe: Recipe, flags: Mapping[str, Any]) -> Recipe:
    """The recipe with what flags say about the model and its sampling: another recipe, with another hash."""
    advanced = {**recipe.advanced, **{name: flags[name] for name in RECIPE_FLAGS if name in flags}}
    model = flags.get("model", recipe.experiment.model_path)
    experiment = msgspec.structs.replace(recipe.experiment, model_path=model)
    return msgspec.structs.replace(recipe, experiment=experiment, advanced=advanced)


def read_secrets(file: str | None) -> dict[str, str]:
    if file is None:
        return {}
    return parse_secrets_file("/dev/stdin" if file == STDIN else file)


def enter_venv(file: RecipeFile, folder: Path) -> None:
    """Continue where the rollout's requirements are met; one of another framework has a Python of its own."""
    if dialect_of_rollout(folder, file.recipe.experiment.entrypoint) is not None:
        return
    requirements = read_requirements(folder)
    require_python(requirements, f"rollouts/{folder.name}")
    if is_inside(requirements):
        return
    try:
        python = ensure_venv(
            requirements, folder.name, cache_folder(), os.environ, lambda line: echo(line, err=True)
        )
    except InstallError as error:
        for line in error.last_lines:
            echo(line, err=True)
        raise InstallError(
            f"{file.path}: what {folder.name} requires cannot be installed: {error}"
        ) from error
    restart_inside(python, sys.argv[1:], os.environ)
