"""The fixtures that play environments, for workspaces too."""

from __future__ import annotations

from tests.env.conftest import play, work

__all__ = ["play", "work"]
