"""The Harbor dialect: folders with a `task.toml`, what they need, and how they are loaded. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.contracts import EnvironmentProtocol
from proctor.dialects.harbor.environment import HarborEnvironment
from proctor.dialects.harbor.task_folder import (
    CONFIG,
    INSTRUCTION,
    TaskFolder,
    describe_unsupported,
    find_unsupported,
    read_folders,
)
from proctor.errors import ConfigError
from proctor.packages.dialects import DialectFeature
from proctor.packages.loading import EnvironmentLocation


class HarborDialect:
    """Folders of Harbor's tasks."""

    title = "Harbor"

    def claims(self, found: EnvironmentLocation, files: Sequence[Path]) -> bool:  # noqa: ARG002
        path = found.path
        if path is None or not path.is_dir():
            return False
        folders = [path] if (path / CONFIG).is_file() else [file.parent for file in path.glob(f"*/{CONFIG}")]
        return any((each / INSTRUCTION).is_file() or (each / "tests").is_dir() for each in folders)

    def load(self, found: EnvironmentLocation, arguments: Mapping[str, Any]) -> EnvironmentProtocol:
        if arguments:
            raise ConfigError(f"{found.env_id} consists of Harbor's tasks, which take no arguments.")
        assert found.path is not None
        return HarborEnvironment(found.env_id, read_folders(found.path))

    def describe(self, found: EnvironmentLocation, files: Sequence[Path]) -> Sequence[DialectFeature]:  # noqa: ARG002
        assert found.path is not None
        folders = read_folders(found.path)
        playable = [folder for folder in folders if describe_unsupported(folder) is None]
        works = DialectFeature(name=f"{len(playable)} of {len(folders)} tasks, each in a container")
        return [works, *(feature for folder in folders for feature in describe_lacks(folder))]


def describe_lacks(folder: TaskFolder) -> list[DialectFeature]:
    return [
        DialectFeature(name=f"{folder.name}: {name}", supported=False, note=why)
        for name, why in find_unsupported(folder)
    ]


DIALECT = HarborDialect()
