"""Hatchling's hook: the built dashboard belongs into wheel and sdist, although git ignores it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from dashboard import DIST, ROOT, build, is_left_out


class DashboardHook(BuildHookInterface[Any]):
    """Builds the dashboard before it is packed; never for an editable install, which finds it in the tree."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or is_left_out():
            return
        build(ROOT)
        build_data["artifacts"].append(f"/{DIST}/**")
