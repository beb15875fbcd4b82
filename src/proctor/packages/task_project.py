"""Give a file or folder of tasks the pyproject.toml that it lacks, so that it can be pushed as a package.

`tasks.py`, `env.py` and `tasks.jsonl` stand for their folder. A file of another name is packed as `tasks`,
with the `env.py` beside it and nothing else. Knows nothing of servers.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from proctor.errors import ConfigError
from proctor.packages import task_files
from proctor.packages.catalog import find_tasks_file
from proctor.packages.scaffold import PROJECT_FILE, check_name, render_task_project, suggest_name
from proctor.packages.source import read_source
from proctor.packages.source_files import source_files


class TaskProject(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that are to become a package."""

    name: str
    files: dict[str, Path]
    """Each file by its path within the package."""


def plan_task_project(path: Path, name: str | None = None) -> TaskProject | None:
    """The package of a file or folder of tasks; None if it has a pyproject.toml, or no tasks."""
    path = path.expanduser().resolve()
    folder = path if path.is_dir() else path.parent
    stands_for_folder = path.is_dir() or path.name in (*task_files.FIRST_CHOICE, task_files.ENV_FILE)
    if stands_for_folder and (folder / PROJECT_FILE).is_file():
        return None
    if path.is_dir() and not task_files.has_tasks(path):
        return None
    if path.is_file() and path.suffix not in (".py", *task_files.DATA):
        return None
    if path.is_file() and path.suffix == ".py" and read_source(path).loader != "missing":
        raise ConfigError(
            f"{path.name} has a load_environment(), so it is not a file of tasks; push the folder of its "
            "package, as `proctor env init` writes one."
        )
    chosen = name or suggest_name(folder.name if stands_for_folder else path.stem)
    check_name(chosen)
    if stands_for_folder:
        files = {each: folder / each for each in source_files(folder)}
    else:
        neighbors = task_files.find_environment_file(path)
        files = {f"tasks{path.suffix}": path, **{each.name: each for each in neighbors}}
    return TaskProject(name=chosen, files=files)


def write_task_project(project: TaskProject, version: str, folder: Path) -> None:
    """Write the files with their pyproject.toml into a new folder."""
    folder.mkdir()
    for path, file in project.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy(file, target)
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error
    described = find_tasks_file(folder)
    description = read_source(described).description if described is not None else ""
    text = render_task_project(project.name, version, description)
    (folder / PROJECT_FILE).write_text(text, encoding="utf-8")
