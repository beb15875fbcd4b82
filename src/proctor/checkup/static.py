"""What can be found without running anything: in the source, and in pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.checkup.finding import Finding
from proctor.config.sources import resolve
from proctor.errors import ConfigError
from proctor.packages.loading import (
    EnvironmentLocation,
    dialect_of,
    main_file,
    package_defaults,
    source_files,
)
from proctor.packages.source import EnvironmentSource, read_source


def find_static_problems(found: EnvironmentLocation, arguments: Mapping[str, Any]) -> list[Finding]:
    return [*package_findings(found), *dialect_findings(found), *source_findings(found, arguments)]


def dialect_findings(found: EnvironmentLocation) -> Iterator[Finding]:
    """What an environment of another framework uses, and whether that works here."""
    dialect = dialect_of(found)
    if dialect is None:
        return
    features = dialect.describe(found, [file for file in source_files(found) if file.suffix == ".py"])
    works = ", ".join(feature.name for feature in features if feature.supported)
    uses = f", of which it uses {works}" if works else ""
    yield Finding("N121", f"written for {dialect.title}{uses}; played as it is")
    for feature in features:
        if feature.note:
            yield Finding("N122" if feature.supported else "W121", f"{feature.name}: {feature.note}")


def source_findings(found: EnvironmentLocation, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    file = main_file(found)
    if file is None:
        if found.path is not None and not lacks_module(found):
            words = f"there is neither {found.module}.py nor a package {found.module} in this folder"
            yield Finding("E102", words, shorten_path(found.path))
        return
    if file.suffix != ".py":
        return
    source = read_source(file)
    if source.fault:
        yield Finding("E101", source.fault, f"{shorten_path(source.file)}:{source.fault_line}")
        return
    if not source.description:
        yield Finding(
            "W112", "the module has no docstring; say in its first line what it is", shorten_path(file)
        )
    yield from argument_findings(source, arguments)


def argument_findings(source: EnvironmentSource, given: Mapping[str, Any]) -> Iterator[Finding]:
    for argument in source.arguments:
        if argument.default is not None:
            continue
        where = f"{shorten_path(source.file)}:{argument.line}"
        if argument.name in given:
            yield Finding("W111", f"argument {argument.name!r} of load_environment() has no default", where)
        else:
            words = f"argument {argument.name!r} of load_environment() has no default; give it one, or use -a"
            yield Finding("E104", words, where)


def package_findings(found: EnvironmentLocation) -> Iterator[Finding]:
    folder = found.path if found.path is not None and found.path.is_dir() else None
    if folder is not None and not (folder / "pyproject.toml").is_file() and not lacks_module(found):
        yield Finding(
            "W113", "there is no pyproject.toml; `proctor env init` shows one", shorten_path(folder)
        )
    where = shorten_path(folder / "pyproject.toml") if folder is not None else ""
    try:
        defaults, source = package_defaults(found)
        resolve({"env_id": found.env_id}, defaults, source)
    except ConfigError as error:
        yield Finding("E108", str(error), where)


def lacks_module(found: EnvironmentLocation) -> bool:
    """Whether another framework's files make it an environment, without a module under its name."""
    return main_file(found) is None and dialect_of(found) is not None


def shorten_path(path: Path) -> str:
    """A path as short as it can be written from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
