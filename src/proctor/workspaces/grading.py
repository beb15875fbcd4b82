"""What a command sees that grades an agent's work: nothing that the agent could have written, but the work.

Programs read configuration from their home, from variables and from the folders they search for other
programs. While the agent works, its workspace is its home, so for grading all of these are replaced. Knows
nothing of sandboxes or rollouts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from proctor.errors import EnvError
from proctor.isolation.command_line import WORKSPACE_PATH

HOME_PATH = "/home/grader"
TESTS_PATH = "/tests"
PYTHON_PATH = "/run/proctor/python"
"""Paths inside the sandbox: an empty home, the tests, and a module that Python imports first."""
REPLACED = ("HOME", "ENV", "BASH_ENV", "CDPATH")
REPLACED_PREFIXES = ("PYTHON", "GIT_")
FIXED = {
    "PYTHONNOUSERSITE": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_PAGER": "cat",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "/dev/null",
}
"""A repository's own settings rank below these: it could otherwise name programs for git to run."""

Tests = str | Path | Mapping[str, str | bytes]
"""A file or folder, or texts by file name."""


@dataclass(frozen=True)
class GradingFolders:
    """What one grading command gets, on this machine."""

    home: Path
    tests: Path | None = None
    python: Path | None = None
    """Holds the module that lets Python find the agent's work, after everything else."""


def make_grading_folders(
    within: Path, tests: Tests | None, beside: Path | None, workspace: str
) -> GradingFolders:
    """New folders for one command: an earlier one ran the agent's code, and may have written to its own.

    Blocks.
    """
    home = make_folder(within, "home")
    if tests is None:
        return GradingFolders(home)
    python = make_folder(within, "python")
    # Last, so that no file of the agent is imported in place of a test's own modules.
    (python / "sitecustomize.py").write_text(f"import sys\n\nsys.path.append({workspace!r})\n")
    return GradingFolders(home, copy_tests(make_folder(within, "tests"), tests, beside), python)


def make_folder(within: Path, name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=within))
    folder.chmod(0o755)
    return folder


def copy_tests(folder: Path, tests: Tests, beside: Path | None) -> Path:
    """Put the tests into a folder; a relative path is `beside` the file that made the workspace."""
    try:
        if isinstance(tests, Mapping):
            for name, content in tests.items():
                write_test(folder, name, content)
        else:
            source = (beside or Path.cwd()) / Path(tests).expanduser()
            if source.is_dir():
                shutil.copytree(source, folder, dirs_exist_ok=True)
            else:
                shutil.copy(source, folder)
    except (OSError, shutil.Error) as error:
        raise EnvError(f"the tests cannot be copied: {error}") from error
    return folder


def write_test(folder: Path, name: str, content: str | bytes) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise EnvError(f"a test cannot be called {name!r}; give its path in the folder of tests")
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())


def grading_variables(given: Mapping[str, str], workspace: str = WORKSPACE_PATH) -> dict[str, str]:
    """A workspace's own variables, without those that could lead a program to the agent's files."""
    kept = {name: value for name, value in given.items() if not is_replaced(name)}
    if "PATH" in kept:
        kept["PATH"] = safe_path(kept["PATH"], workspace)
    return {**kept, **FIXED}


def tests_variables(tests: str, python: str, workspace: str) -> dict[str, str]:
    return {"PYTHONPATH": python, "TESTS": tests, "WORKSPACE": workspace}


def is_replaced(name: str) -> bool:
    return name in REPLACED or name.startswith(REPLACED_PREFIXES)


def safe_path(path: str, workspace: str) -> str:
    """The entries of PATH in which the agent cannot have put a program."""
    writable = (workspace, "/tmp", "/dev/shm")
    return os.pathsep.join(
        entry
        for entry in path.split(os.pathsep)
        if entry.startswith("/")
        and not any(PurePosixPath(entry).is_relative_to(folder) for folder in writable)
    )
