"""Is a project ready to run? Every check says what is wrong and how to fix it.

Nothing is changed, built or called. Knows nothing of terminals.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from proctor import plugins
from proctor.client.contexts import current_context
from proctor.config.endpoint_choice import choose_endpoint
from proctor.config.endpoints import NO_REGISTRY
from proctor.config.experiment import RecipeFile, is_recipe, parse_recipe
from proctor.config.registry import open_registry
from proctor.config.toml_file import read_toml
from proctor.datasets.dataset import list_files, locate_dataset, validate
from proctor.errors import ConfigError
from proctor.projects.code_version import run_git
from proctor.projects.layout import RECIPES, ROLLOUTS, Project
from proctor.projects.requirements import PYPROJECT, read_requirements
from proctor.projects.secrets import resolve_secrets
from proctor.projects.venvs import cache_folder, find_venv, require_python
from proctor.workflow.foreign import dialect_of_rollout


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    what: str
    problem: str = ""
    """Empty if all is well."""
    fix: str = ""
    is_warning: bool = False
    """It runs here all the same."""


def examine(project: Project, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    yield check_git(project)
    yield check_installer()
    rollouts = project.list_rollouts()
    if not rollouts:
        yield Diagnosis(f"{ROLLOUTS}/", "there is no rollout", "proctor rollout init NAME")
    for folder in rollouts:
        yield check_rollout(folder)
    recipes = project.list_recipes()
    if not recipes:
        yield Diagnosis(
            f"{RECIPES}/", "there is no recipe", "write one: [experiment] with rollout, entrypoint …"
        )
    for path in recipes:
        yield from check_recipe_file(path, project, environ)


def check_git(project: Project) -> Diagnosis:
    what = "git repository"
    if shutil.which("git") is None:
        return Diagnosis(what, "git is not installed", "install git", is_warning=True)
    if not run_git(project.root, "rev-parse", "--git-dir"):
        return Diagnosis(what, f"{project.root} is not in one", "git init", is_warning=True)
    if not run_git(project.root, "rev-parse", "--verify", "HEAD"):
        return Diagnosis(what, "it has no commit", "git add -A && git commit", is_warning=True)
    if not run_git(project.root, "remote"):
        fix = "git remote add origin URL; a server fetches code from there"
        return Diagnosis(what, "it has no remote", fix, is_warning=True)
    return Diagnosis(what)


def check_installer() -> Diagnosis:
    if shutil.which("uv") or importlib.util.find_spec("pip") is not None:
        return Diagnosis("installer")
    return Diagnosis("installer", "neither uv nor pip is available", "python -m ensurepip")


def check_rollout(folder: Path) -> Diagnosis:
    what = f"{ROLLOUTS}/{folder.name}"
    if not (folder / PYPROJECT).is_file():
        fix = f"write {what}/{PYPROJECT} with [project] and its dependencies"
        return Diagnosis(what, f"it has no {PYPROJECT}, so only Proctor is there", fix, is_warning=True)
    try:
        requirements = read_requirements(folder)
        if dialect_of_rollout(folder) is not None:  # the first run finds or builds a Python for it
            return Diagnosis(what)
        require_python(requirements, what)
    except ConfigError as error:
        return Diagnosis(what, str(error))
    if requirements.packages and find_venv(requirements, cache_folder()) is None:
        return Diagnosis(
            what, "its packages are not installed yet", "the first run does that", is_warning=True
        )
    return Diagnosis(what)


def check_recipe_file(path: Path, project: Project, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    what = f"{RECIPES}/{path.name}"
    try:
        file = read_toml(path)
        if not is_recipe(file):  # a suite
            return
        recipe = parse_recipe(file)
    except ConfigError as error:
        yield Diagnosis(what, str(error))
        return
    problems = list(find_recipe_problems(recipe, project, environ))
    yield from (Diagnosis(what, problem, fix) for problem, fix in problems)
    if not problems:
        yield Diagnosis(what)


def find_recipe_problems(
    recipe: RecipeFile, project: Project, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """What is missing, and how to fix it."""
    experiment = recipe.recipe.experiment
    try:
        folder = project.find_rollout(experiment.rollout)
        if not (folder / experiment.entrypoint).is_file():
            yield f"{folder} has no {experiment.entrypoint}", "name the file with the two classes"
    except ConfigError as error:
        yield str(error), f"proctor rollout init {experiment.rollout}"
    if is_local_dataset(experiment.dataset, project, environ):
        try:
            report = validate(locate_dataset(experiment.dataset, project.data))
            yield from ((problem, "mend the row") for problem in report.describe_problems())
        except ConfigError as error:
            yield str(error), f"put the file into {project.data}, or log in to the server that has it"
    try:
        resolve_secrets(recipe, {}, environ)
    except ConfigError as error:
        yield str(error), "export NAME=VALUE"
    yield from find_model_problems(recipe, project, environ)


def is_local_dataset(name: str, project: Project, environ: Mapping[str, str]) -> bool:
    """Whether a recipe's dataset must be a file here; a server, if there is one, is not asked."""
    if "/" in name or "@" in name:
        return False
    return bool(list_files(name, project.data)) or current_context(environ) is None


def find_model_problems(
    recipe: RecipeFile, project: Project, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    advanced, path = recipe.recipe.advanced, project.registry
    try:
        choose_endpoint(
            model=recipe.recipe.experiment.model_path,
            url=advanced.get("api_base_url"),
            key_var=advanced.get("api_key_var"),
            client_type=advanced.get("api_client_type"),
            headers={},
            request_seconds=1.0,
            environ=environ,
            registry=open_registry(str(path), plugins.list_names(plugins.MODELS)) if path else NO_REGISTRY,
        )
    except ConfigError as error:
        yield str(error), "set the key, or try another model with -m"
