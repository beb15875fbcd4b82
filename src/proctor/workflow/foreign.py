"""Find out whether a rollout was written for another framework, by what its files import. Runs nothing."""

from __future__ import annotations

from pathlib import Path

from proctor.packages.dialects import Dialect, find_dialect
from proctor.packages.loading import EnvironmentLocation, is_own_file, module_name


def locate_rollout(folder: Path, entrypoint: str) -> EnvironmentLocation:
    return EnvironmentLocation(
        env_id=folder.name,
        module=module_name(folder.name),
        path=folder / entrypoint if entrypoint else folder,
    )


def dialect_of_rollout(folder: Path, entrypoint: str = "") -> Dialect | None:
    """The dialect that plays it; None if its classes, or its server, run as they are."""
    files = [file for file in sorted(folder.rglob("*.py")) if is_own_file(file.relative_to(folder))]
    return find_dialect(locate_rollout(folder, entrypoint), files)
