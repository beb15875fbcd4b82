"""Where things are in a project: a repository with rollouts, recipes and data.

    rollouts/NAME/          a rollout: its entrypoint, and a pyproject.toml with its dependencies
    configs/eval/*.toml     recipes
    data/NAME.jsonl         datasets; also .csv and .parquet

Knows nothing of what is in the files.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from proctor.config.schema import DEFAULT_REGISTRY
from proctor.errors import ConfigError, did_you_mean

ROLLOUTS = "rollouts"
RECIPES = "configs/eval"
DATA = "data"


class Project(msgspec.Struct, frozen=True):
    """A repository with rollouts."""

    root: Path

    @property
    def rollouts(self) -> Path:
        return self.root / ROLLOUTS

    @property
    def data(self) -> Path:
        return self.root / DATA

    @property
    def recipes(self) -> Path:
        return self.root / RECIPES

    @property
    def registry(self) -> Path | None:
        """The project's endpoint registry, if it has one."""
        path = self.root / DEFAULT_REGISTRY
        return path if path.is_file() else None

    def list_rollouts(self) -> list[Path]:
        if not self.rollouts.is_dir():
            return []
        folders = [path for path in self.rollouts.iterdir() if path.is_dir()]
        return sorted(path for path in folders if not path.name.startswith((".", "_")))

    def list_recipes(self) -> list[Path]:
        return sorted(self.recipes.glob("*.toml"))

    def find_rollout(self, name: str) -> Path:
        folder = self.rollouts / name
        if not folder.is_dir():
            known = [path.name for path in self.list_rollouts()]
            raise ConfigError(f"There is no rollout {name!r} in {self.rollouts}{did_you_mean(name, known)}")
        return folder


def find_project(start: Path) -> Project:
    """The project that a file or folder is in: the nearest folder above it that holds rollouts/."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / ROLLOUTS).is_dir():
            return Project(folder)
    raise ConfigError(
        f"{start} is in no project: no folder above it holds {ROLLOUTS}/. Create one with "
        f"`proctor rollout init NAME`."
    )
