"""The virtual environments of rollouts: each built once for its requirements, and reused.

Proctor is not installed there but visible from this installation, after the rollout's own packages. What
Proctor itself requires bounds their versions, so that a rollout cannot replace what Proctor needs. One that
is built to be alone sees nothing of Proctor, and may belong to another Python.

    CACHE/KEY/venv/           the virtual environment
    CACHE/KEY/rollout.json    what it was built for; written last
    CACHE/KEY.lock            locked by the process that builds it

Knows nothing of runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import platformdirs

import proctor
from proctor.errors import ConfigError
from proctor.packages.host_venv import host_import_paths, make_empty_venv, show_host
from proctor.packages.install import InstallerCommand, find_installer, run_installer
from proctor.projects.requirements import RolloutRequirements

LAYOUT = "1"
MARK = "rollout.json"
KEPT_VENVS = 10
KEPT_SECONDS = 30 * 86_400.0
"""Longer than any run lasts."""


def require_python(requirements: RolloutRequirements, rollout: str) -> None:
    if not requirements.is_right_python:
        version = ".".join(map(str, sys.version_info[:3]))
        raise ConfigError(
            f"{rollout} requires Python {requirements.python}, and Proctor runs on {version}; install "
            f"Proctor with such a Python, for example `python3.12 -m pip install proctor`."
        )


def is_inside(requirements: RolloutRequirements) -> bool:
    """Whether this process runs where these requirements are met: in their virtual environment, or anywhere
    if there are none."""
    if not requirements.packages:
        return True
    return read_mark(Path(sys.prefix).parent) == list(requirements.packages)


def read_mark(folder: Path) -> list[str] | None:
    try:
        return msgspec.json.decode((folder / MARK).read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):
        return None


def cache_folder() -> Path:
    return platformdirs.user_cache_path("proctor") / "rollouts"


def find_venv(requirements: RolloutRequirements, cache: Path, alone: Path | None = None) -> Path | None:
    """The interpreter of a virtual environment that was built before."""
    folder = cache / cache_key(requirements, alone)
    return folder / "venv/bin/python" if read_mark(folder) is not None else None


def ensure_venv(
    requirements: RolloutRequirements,
    rollout: str,
    cache: Path,
    environ: Mapping[str, str],
    report: Callable[[str], None],
    alone: Path | None = None,
) -> Path:
    """The interpreter of the rollout's virtual environment, built if it is not there.

    With `alone`, it is a virtual environment of that Python, in which Proctor is not visible.
    """
    folder = cache / cache_key(requirements, alone)
    with hold_lock(folder.with_suffix(".lock"), report):
        found = find_venv(requirements, cache, alone)
        if found is not None:
            (folder / MARK).touch()
            return found
        prune_venvs(cache)
        report(f"Installing what {rollout} requires: {', '.join(requirements.packages)}.")
        shutil.rmtree(folder, ignore_errors=True)  # a builder that was killed left it
        try:
            build_venv(folder, requirements, environ, alone)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder / "venv/bin/python"


def prune_venvs(cache: Path) -> None:
    """Remove virtual environments that were not used for long; the newest are kept whatever their age."""
    marks = sorted(cache.glob(f"*/{MARK}"), key=lambda mark: mark.stat().st_mtime, reverse=True)
    for mark in marks[KEPT_VENVS:]:
        if time.time() - mark.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(mark.parent, ignore_errors=True)


def build_venv(
    folder: Path, requirements: RolloutRequirements, environ: Mapping[str, str], alone: Path | None = None
) -> None:
    """Packages are resolved before Proctor is visible: what this machine happens to have does not count."""
    venv = folder / "venv"
    make_empty_venv(venv, alone)
    constraints = folder / "constraints.txt"
    bounds = list_own_requirements() if alone is None else []
    constraints.write_text("".join(f"{line}\n" for line in bounds))
    installer = find_installer(str(venv / "bin/python"))
    words = (*installer, "-c", str(constraints), *requirements.packages)
    run_installer(InstallerCommand(words), environ)
    if alone is None:
        show_host(venv)
    mark = folder / f"{MARK}.new"
    mark.write_bytes(msgspec.json.encode(list(requirements.packages)))
    mark.rename(folder / MARK)


def list_own_requirements() -> list[str]:
    """What Proctor needs to run, without its extras."""
    try:
        found = importlib.metadata.requires("proctor") or []
    except importlib.metadata.PackageNotFoundError:  # used from a checkout, without being installed
        return []
    return [line for line in found if "extra ==" not in line]


def cache_key(requirements: RolloutRequirements, alone: Path | None = None) -> str:
    host = (sys.version, sys.base_prefix, proctor.__version__, *host_import_paths())
    parts = (LAYOUT, *(host if alone is None else (str(alone),)), *requirements.packages)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@contextmanager
def hold_lock(file: Path, report: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock against all other processes; the kernel releases it when its holder dies."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("w") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("Waiting for another process that installs the same packages.")
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def restart_inside(python: Path, words: list[str], environ: Mapping[str, str]) -> None:
    """Replace this process with the same command, run by another interpreter."""
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: files in the working directory must not shadow a library's
    os.execve(python, [str(python), "-P", "-m", "proctor", *words], dict(environ))
