"""The rollouts of a project, and which recipes use them. Knows nothing of terminals."""

from __future__ import annotations

import msgspec

from proctor.config.experiment import is_recipe
from proctor.config.toml_file import read_toml
from proctor.errors import ConfigError
from proctor.projects.layout import Project
from proctor.projects.requirements import read_requirements
from proctor.projects.venvs import cache_folder, find_venv, is_inside, require_python
from proctor.workflow.foreign import dialect_of_rollout


class RolloutListing(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout."""

    name: str
    folder: str
    packages: tuple[str, ...] = ()
    is_installed: bool = False
    recipes: tuple[str, ...] = ()
    problem: str = ""


def describe_rollouts(project: Project) -> list[RolloutListing]:
    users = find_users(project)
    entries = []
    for folder in project.list_rollouts():
        packages: tuple[str, ...] = ()
        is_installed, problem = False, ""
        try:
            requirements = read_requirements(folder)
            packages = requirements.packages
            is_installed = is_inside(requirements) or find_venv(requirements, cache_folder()) is not None
            if dialect_of_rollout(folder) is None:
                require_python(requirements, folder.name)
        except ConfigError as error:
            problem = str(error)
        entries.append(
            RolloutListing(
                name=folder.name,
                folder=str(folder),
                packages=packages,
                is_installed=is_installed,
                recipes=tuple(users.get(folder.name, ())),
                problem=problem,
            )
        )
    return entries


def find_users(project: Project) -> dict[str, list[str]]:
    """The recipes of each rollout; broken ones are the doctor's affair."""
    users: dict[str, list[str]] = {}
    for path in project.list_recipes():
        try:
            file = read_toml(path)
        except ConfigError:
            continue
        experiment = file.data.get("experiment")
        if is_recipe(file) and isinstance(experiment, dict):
            users.setdefault(str(experiment.get("rollout")), []).append(path.name)
    return users
