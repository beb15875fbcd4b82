"""The Python that a foreign environment runs in: this one, or a virtual environment of its own.

Its own is built once for what the environment requires, and kept; Proctor is not visible there, so that the
dependencies of the two never meet. The environment itself is not installed but imported from where it is:
an edited file is used at once. Knows nothing of frameworks beyond their names.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import platformdirs
from packaging.requirements import Requirement

from proctor.errors import ConfigError, InstallError
from proctor.packages.loading import EnvironmentLocation, distribution_of
from proctor.projects.requirements import RolloutRequirements, read_requirements
from proctor.projects.venvs import ensure_venv, find_venv
from proctor.support.logs import log

INLINE = re.compile(r"(?m)^# /// script\s*$\s(?P<content>(?:^#(?:| .*)$\s)+)^# ///\s*$")
"""Requirements in a comment of a single file, as PEP 723 has them."""
NEWEST_MINOR = 20
ASK_SECONDS = 20.0


class Framework(msgspec.Struct, frozen=True):
    """What every environment of a dialect needs."""

    package: str
    """What it imports."""
    requirements: tuple[str, ...]
    """What to install, in addition to what the environment says; the framework itself comes first."""
    python: str = ""
    """The Pythons that it runs on, as `requires-python` spells them; empty for any."""


def find_python(found: EnvironmentLocation, framework: Framework) -> Path:
    """The interpreter that can run the environment; its virtual environment is built if necessary."""
    needed = complete_requirements(read_foreign_requirements(found), framework)
    if runs_here(found, needed, framework):
        return Path(sys.executable)
    python = choose_python(needed, found.env_id)
    try:
        return ensure_venv(needed, found.env_id, cache_folder(), os.environ, report_line, alone=python)
    except InstallError as error:
        lines = "".join(f"\n  {line}" for line in error.last_lines)
        raise ConfigError(
            f"What {found.env_id} requires ({', '.join(needed.packages)}) cannot be installed: {error} "
            f"Correct the dependencies in its pyproject.toml, or check the network.{lines}"
        ) from error


def has_python(found: EnvironmentLocation, framework: Framework) -> bool:
    """Whether `find_python` would return at once, without building anything."""
    needed = complete_requirements(read_foreign_requirements(found), framework)
    if runs_here(found, needed, framework):
        return True
    return find_venv(needed, cache_folder(), choose_python(needed, found.env_id)) is not None


def runs_here(found: EnvironmentLocation, needed: RolloutRequirements, framework: Framework) -> bool:
    """Whether this Python has the framework, and no other one was requested."""
    return not found.isolated and needed.is_right_python and has_framework(framework)


def read_foreign_requirements(found: EnvironmentLocation) -> RolloutRequirements:
    """What the environment requires: by pyproject.toml, a comment in its file, or its installed package."""
    path = found.path
    if path is None:
        distribution = distribution_of(found)
        return RolloutRequirements() if distribution is None else installed_requirements(distribution)
    if path.is_dir():
        return read_requirements(path)
    inline = INLINE.search(path.read_text(encoding="utf-8", errors="replace"))
    return read_inline(inline["content"], path) if inline else read_requirements(path.parent)


def read_inline(comment: str, path: Path) -> RolloutRequirements:
    text = "".join(line[2:] if line.startswith("# ") else line[1:] for line in comment.splitlines(True))
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The `# /// script` comment of {path} is not valid TOML: {error}.") from error
    return RolloutRequirements(
        tuple(map(str, content.get("dependencies", ()))), str(content.get("requires-python", ""))
    )


def installed_requirements(distribution: importlib.metadata.Distribution) -> RolloutRequirements:
    """The package itself, in the version that is installed here, brings what it requires."""
    python: str | None = distribution.metadata["Requires-Python"]
    name = f"{distribution.metadata['Name']}=={distribution.version}"
    return RolloutRequirements((name,), python or "")


def complete_requirements(requirements: RolloutRequirements, framework: Framework) -> RolloutRequirements:
    packages = tuple(dict.fromkeys((*requirements.packages, *framework.requirements)))
    python = ",".join(filter(None, (requirements.python, framework.python)))
    return msgspec.structs.replace(requirements, packages=packages, python=python)


def choose_python(requirements: RolloutRequirements, name: str) -> Path:
    """A Python that the environment accepts: this one if it does, else another one of this machine."""
    if requirements.is_right_python:
        return Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in list_pythons():
        if requirements.accepts(ask_version(str(found))):
            return found
    version = ".".join(map(str, sys.version_info[:3]))
    raise ConfigError(
        f"{name} requires Python {requirements.python}; Proctor runs on {version}, and no other Python here "
        f"fits. Install one, for example with `uv python install` or `pyenv install`, or put it on the PATH."
    )


def list_pythons() -> list[Path]:
    """Interpreters on the PATH, newest first, then those that pyenv and uv keep."""
    named = (shutil.which(f"python3.{minor}") for minor in range(NEWEST_MINOR, 7, -1))
    kept = (
        Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions",
        platformdirs.user_data_path("uv") / "python",
    )
    managed = [python for folder in kept for python in folder.glob("*/bin/python3")]
    return [*(Path(each) for each in named if each), *sorted(managed, key=version_in_path, reverse=True)]


def version_in_path(python: Path) -> tuple[int, ...]:
    """As the name of its folder says: `3.12.1`, or `cpython-3.12.1-linux-x86_64-gnu`."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", python.parent.parent.name)
    return tuple(int(each or 0) for each in found.groups()) if found else (0, 0, 0)


def ask_version(python: str) -> tuple[int, ...]:
    """The version of an interpreter; a broken one has none that anything accepts."""
    words = [python, "-c", "import sys; print(*sys.version_info[:3])"]
    try:
        done = subprocess.run(words, capture_output=True, timeout=ASK_SECONDS, check=True)
        return tuple(map(int, done.stdout.split()))
    except (OSError, subprocess.SubprocessError, ValueError):
        return (0, 0, 0)


def has_framework(framework: Framework) -> bool:
    """Whether this Python can import it, in a release that the dialect plays."""
    if not is_installed(framework.package):
        return False
    wanted = Requirement(framework.requirements[0])
    try:
        version = importlib.metadata.version(wanted.name)
    except importlib.metadata.PackageNotFoundError:  # a folder on the path: it is what it is
        return True
    return wanted.specifier.contains(version, prereleases=True)


def is_installed(package: str) -> bool:
    """Whether this Python can import it."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def cache_folder() -> Path:
    return platformdirs.user_cache_path("proctor") / "dialects"


def report_line(line: str) -> None:
    log.warning("%s", line)
