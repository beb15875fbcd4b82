"""Servers for tests, on SQLite, and on PostgreSQL where a test asks for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.platform.serving import Served, serving, settings_in


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server on SQLite without runs of its own."""
    with serving(settings_in(tmp_path)) as server:
        yield server
