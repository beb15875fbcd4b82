"""Find the one environment to serve: in a file, a folder, or among installed packages.

Knows nothing of sockets.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from proctor.errors import ConfigError, UnknownNameError, did_you_mean
from proctor.packages import loading as packages
from proctor.packages import task_files
from proctor.packages.modules import import_file


def environment_at(source: str, name: str | None = None) -> Any:
    """The environment with templates at a path, or of a name; `name` selects one of several.

    `file.py:name`, where name is what the file calls it, works as well.
    """
    file, colon, attribute = source.rpartition(":")
    if colon and attribute.isidentifier():
        return environment_named(module_at(file if file.endswith(".py") else f"{file}.py"), attribute)
    path = Path(source).expanduser()
    if path.is_dir() and packages.module_file(path, packages.module_name(path.name)) is not None:
        return environment_in_package(path, name)
    if path.exists() or path.suffix == ".py" or path.is_absolute():
        return choose_environment(environments_at(path), name, source)
    known = packages.load_by_name(source)
    if known is None:
        raise UnknownNameError(f"There is no file {source!r}, and no installed environment of that name.")
    if not task_files.is_environment(known):
        raise ConfigError(f"{source!r} has no templates; only environments made of templates can be served.")
    return known


def environment_in_package(path: Path, name: str | None) -> Any:
    """The environment of a package's folder: its module's, or what load_environment() makes."""
    found = packages.find_environment(str(path.resolve()))
    offered = task_files.environments_in(packages.import_environment(found))
    if offered:
        return choose_environment(offered, name, str(path))
    made = packages.load(found, {})
    if not task_files.is_environment(made):
        raise ConfigError(
            f"{str(path)!r} has no templates; only environments made of templates can be served."
        )
    return made


def environments_at(path: Path) -> dict[str, Any]:
    """Every environment with templates that a file or a folder defines."""
    if path.is_dir():
        files = (
            [path / task_files.ENV_FILE]
            if (path / task_files.ENV_FILE).is_file()
            else task_files.files_in(path)
        )
        return {name: each for file in files for name, each in environments_at(file).items()}
    return {
        name: each
        for name, each in task_files.environments_in(module_at(str(path))).items()
        if getattr(each, "templates", None)
    }


def module_at(file: str) -> ModuleType:
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise ConfigError(f"There is no environment at {file!r}.")
    return import_file(path, packages.module_name(path.stem))


def environment_named(module: ModuleType, attribute: str) -> Any:
    thing = getattr(module, attribute, None)
    if callable(thing) and not task_files.is_environment(thing):
        thing = thing()
    if not task_files.is_environment(thing):
        known = did_you_mean(attribute, task_files.environments_in(module))
        raise UnknownNameError(f"{module.__name__} has no environment {attribute!r}{known}")
    return thing


def choose_environment(found: dict[str, Any], name: str | None, source: str) -> Any:
    if name is not None and name in found:
        return found[name]
    if name is not None:
        raise UnknownNameError(f"{source!r} has no environment {name!r}{did_you_mean(name, found)}")
    if not found:
        raise ConfigError(
            f"{source!r} defines no environment with templates; write env = Environment(…), @env.template()."
        )
    if len(found) > 1:
        raise ConfigError(
            f"{source!r} defines {', '.join(map(repr, found))}; choose one with `proctor serve --env NAME`, "
            "or write FILE.py:VARIABLE."
        )
    return next(iter(found.values()))
