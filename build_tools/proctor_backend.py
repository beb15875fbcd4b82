"""The build backend: hatchling, plus Node where the dashboard must be built and this machine has none.

A hook of hatchling's could also ask for Node, but pip would then download it for editable installs as well,
which never build the dashboard.
"""

from __future__ import annotations

from typing import Any

from dashboard import NODE_WHEEL, ROOT, find_npm, is_current, is_left_out
from hatchling.build import *  # noqa: F403
from hatchling.build import get_requires_for_build_sdist as hatchling_for_sdist
from hatchling.build import get_requires_for_build_wheel as hatchling_for_wheel


def node_requirement() -> list[str]:
    return [] if is_left_out() or is_current(ROOT) or find_npm() else [NODE_WHEEL]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*hatchling_for_wheel(config_settings), *node_requirement()]


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*hatchling_for_sdist(config_settings), *node_requirement()]
