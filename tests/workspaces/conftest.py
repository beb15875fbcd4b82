"""Rollouts of templates, as the tests of the authoring kit play them."""

from __future__ import annotations

from tests.env.conftest import work

__all__ = ["work"]
