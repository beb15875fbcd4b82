"""Package an environment's folder for a hub: a source archive, and a wheel built from it.

The wheel is built from the packed source, never from the folder: so nothing is in it that is not in the
source, and nothing is left behind in the folder. The project's own build backend does it: the installed one
where it is there, which works offline, and otherwise one that uv or pip fetches. Knows nothing of servers.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError, InstallError
from proctor.packages.archive import hash_archives, pack, unpack
from proctor.packages.catalog import canonical_name
from proctor.packages.loading import read_pyproject
from proctor.packages.source_files import source_files

PROJECT_FILE = "pyproject.toml"
BUILD_SECONDS = 600.0
LAST_LINES = 15
DEFAULT_SYSTEM = {"requires": ["setuptools"], "build-backend": "setuptools.build_meta:__legacy__"}
HOOK = """
import functools, importlib, sys
where, target, *paths = sys.argv[1:]
sys.path[:0] = paths
module, _, names = where.partition(":")
backend = functools.reduce(getattr, filter(None, names.split(".")), importlib.import_module(module))
backend.build_wheel(target)
"""
"""Calls a build backend according to PEP 517."""


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """What `proctor env push` uploads."""

    name: str
    version: str
    wheel: Path
    source: Path
    content_hash: str
    files: int
    """In the source."""


def build_package(folder: Path, into: Path, changes: Mapping[str, bytes] | None = None) -> Package:
    """Pack and build a folder, with replaced contents for some files."""
    name = project_name(folder)
    source = into / "source.tar.gz"
    files = pack_source(folder, source, changes or {})
    copy = into / "copy"
    unpack(source, copy)
    wheel = build_wheel(copy, into / "wheel")
    shutil.rmtree(copy)
    built_name, version = wheel.name.split("-")[:2]
    if canonical_name(built_name) != name:
        raise ConfigError(
            f"{folder} is named {name!r} but builds a wheel of {built_name!r}; make the names equal."
        )
    return Package(
        name=name,
        version=version,
        wheel=wheel,
        source=source,
        content_hash=hash_archives(source, wheel),
        files=files,
    )


def pack_source(folder: Path, source: Path, changes: Mapping[str, bytes]) -> int:
    """Pack the source files of a folder; returns how many there are."""
    files = source_files(folder)
    pack(
        (
            (path, changes.get(path) or (folder / path).read_bytes(), os.access(folder / path, os.X_OK))
            for path in files
        ),
        source,
    )
    return len(files)


def project_name(folder: Path) -> str:
    file = folder / PROJECT_FILE
    if not file.is_file():
        raise ConfigError(
            f"{folder} has no {PROJECT_FILE}, so it is not a package; `proctor env init` creates one."
        )
    name = read_pyproject(file).get("project", {}).get("name")
    if not isinstance(name, str):
        raise ConfigError(f"{file} has no name under [project].")
    return canonical_name(name)


def build_wheel(folder: Path, target: Path) -> Path:
    """The wheel of a folder."""
    target.mkdir()
    run_builder(build_command(folder, target), folder)
    wheels = list(target.glob("*.whl"))
    if len(wheels) != 1:
        raise InstallError(f"The build backend produced {len(wheels)} wheels instead of one.")
    return wheels[0]


def build_command(folder: Path, target: Path) -> list[str]:
    system: dict[str, Any] = {
        **DEFAULT_SYSTEM,
        **read_pyproject(folder / PROJECT_FILE).get("build-system", {}),
    }
    if is_installed(system["requires"]):
        inside = [str(folder / path) for path in system.get("backend-path", ())]
        return [sys.executable, "-c", HOOK, system["build-backend"], str(target), *inside]
    uv = shutil.which("uv")
    if uv:
        return [uv, "build", "--wheel", "--out-dir", str(target), str(folder)]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(target), str(folder)]
    raise ConfigError(f"Building needs {', '.join(system['requires'])}; install it, or uv, which fetches it.")


def is_installed(requirements: Sequence[str]) -> bool:
    try:
        for requirement in requirements:
            named = re.match(r"[A-Za-z0-9._-]+", requirement)
            distribution(named[0] if named else requirement)
    except (PackageNotFoundError, ValueError):
        return False
    return True


def run_builder(words: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"The build took more than {BUILD_SECONDS:g} s and was killed.") from error
    if done.returncode:
        last = done.stdout.decode(errors="replace").strip().splitlines()[-LAST_LINES:]
        raise InstallError(
            f"The wheel could not be built (exit code {done.returncode}); its last lines are above.", last
        )
