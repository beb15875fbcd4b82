"""List environments without importing any: in ./environments, registered by plugins, or installed.

An installed package counts as an environment if it depends on proctor or verifiers and one of its modules
has a load_environment(), or if it is a folder of tasks. Knows nothing of what environments do.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Container, Iterator
from importlib.metadata import Distribution, entry_points
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from proctor import plugins
from proctor.errors import ConfigError
from proctor.packages import loading as packages
from proctor.packages.loading import (
    EnvironmentLocation,
    local_names,
    module_file,
    module_name,
    read_pyproject,
)
from proctor.packages.source import EnvironmentSource, read_source

KITS = frozenset({"proctor", "verifiers"})
"""Environments are written with one of these, so their packages depend on it."""

TASKS_FILES = ("env.py", "tasks.py")
"""What a folder of tasks holds in place of a module of its own."""

Kind = Literal["local", "registered", "installed"]


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One environment that can be run."""

    name: str
    kind: Kind
    module: str
    version: str | None = None
    path: Path | None = None
    description: str = ""
    problem: str = ""
    """Why it cannot be run as it is, if that can be seen."""


def list_environments(env_dir: str = "./environments") -> list[CatalogEntry]:
    """Every environment, local ones first; the first of a name hides the others."""
    seen: dict[str, CatalogEntry] = {}
    for entry in (*list_local(env_dir), *list_registered(), *list_installed()):
        seen.setdefault(entry.module, entry)
    return list(seen.values())


def list_local(env_dir: str) -> Iterator[CatalogEntry]:
    for folder_name in local_names(env_dir):
        folder = Path(env_dir) / folder_name
        module = module_name(folder_name)
        file = module_file(folder, module) or find_tasks_file(folder)
        declared = read_project_table(folder)
        if file is None and not declared:
            continue
        source = read_source(file) if file else None
        yield CatalogEntry(
            name=str(declared.get("name") or folder_name),
            kind="local",
            module=module,
            version=packages.declared_version(folder),
            path=folder,
            description=describe_environment(source, declared),
            problem=problem_of(source, folder, module),
        )


def list_registered() -> Iterator[CatalogEntry]:
    for point in entry_points(group=plugins.ENVIRONMENTS):
        if point.name in plugins.UNLISTED:
            continue
        found = EnvironmentLocation(env_id=point.name, module=module_name(point.name), registered=True)
        file = packages.main_file(found)
        source = read_source(file) if file else None
        yield CatalogEntry(
            name=point.name,
            kind="registered",
            module=module_name(point.name),
            version=point.dist.version if point.dist else None,
            path=file,
            description=source.description if source else "",
            problem="" if file else f"{point.value} cannot be found",
        )


def list_installed() -> Iterator[CatalogEntry]:
    for distribution in importlib.metadata.distributions():
        if not KITS & set(dependency_names(distribution)):
            continue
        for module, file in modules_of(distribution):
            source = read_source(file)
            if source.loader == "missing" and not is_tasks_file(file):
                continue
            yield CatalogEntry(
                name=distribution.metadata["Name"],
                kind="installed",
                module=module,
                version=distribution.version,
                path=file if file.stem == module else file.parent,
                description=source.description or str(distribution.metadata.json.get("summary") or ""),
            )


def dependency_names(distribution: Distribution) -> Iterator[str]:
    """Names of the packages it depends on, in one spelling."""
    for requirement in distribution.requires or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
        if name:
            yield canonical_name(name[0])


def modules_of(distribution: Distribution) -> Iterator[tuple[str, Path]]:
    """Its top-level modules and their files, also for editable installs."""
    folder = linked_folder(distribution)
    if folder is not None:
        module = module_name(canonical_name(distribution.metadata["Name"]))
        file = module_file(folder, module)
        if file is not None:
            yield module, file
        return
    files = {path.parts: Path(str(path.locate())) for path in distribution.files or ()}
    for parts, file in files.items():
        if len(parts) == 1 and file.suffix == ".py":
            yield file.stem, file
        elif len(parts) == 2 and (parts[1] == "__init__.py" or is_tasks_package(file, parts[0], files)):
            yield parts[0], file


def is_tasks_package(file: Path, package: str, files: Container[tuple[str, ...]]) -> bool:
    """Whether a package consists of tasks, and this file speaks for it."""
    return (package, "__init__.py") not in files and file == find_tasks_file(file.parent)


def find_tasks_file(folder: Path) -> Path | None:
    """The file of a folder of tasks that can say what they are: the templates', or else that of the tasks."""
    return next((folder / name for name in TASKS_FILES if (folder / name).is_file()), None)


def is_tasks_file(file: Path) -> bool:
    return file.name in TASKS_FILES


def linked_folder(distribution: Distribution) -> Path | None:
    """The folder of an editable install, which lists none of its modules."""
    try:
        origin: Any = msgspec.json.decode(distribution.read_text("direct_url.json") or "{}")
    except msgspec.DecodeError:
        return None
    if not isinstance(origin, dict) or not (origin.get("dir_info") or {}).get("editable"):
        return None
    return Path(unquote(urlsplit(str(origin.get("url", ""))).path))


def read_project_table(folder: Path) -> dict[str, Any]:
    """The [project] table of a folder, as far as it can be read."""
    file = folder / "pyproject.toml"
    try:
        project = read_pyproject(file).get("project", {}) if file.is_file() else {}
    except ConfigError:
        return {}
    return project if isinstance(project, dict) else {}


def describe_environment(source: EnvironmentSource | None, project: dict[str, Any]) -> str:
    return (source.description if source else "") or str(project.get("description") or "")


def problem_of(source: EnvironmentSource | None, folder: Path, module: str) -> str:
    if source is None:
        return f"{folder} holds neither {module}.py nor a package {module}"
    if source.fault:
        return f"{source.file.name}:{source.fault_line}: {source.fault}"
    if source.loader == "missing" and not is_tasks_file(source.file):
        return f"{source.file.name} has no load_environment()"
    return ""


def canonical_name(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_versions() -> dict[str, str]:
    """What is installed, by canonical name."""
    return {
        canonical_name(each.metadata["Name"]): each.version
        for each in importlib.metadata.distributions()
        if each.metadata["Name"]
    }
