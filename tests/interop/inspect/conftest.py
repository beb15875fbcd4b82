"""Inspect itself, in the virtual environment that Proctor builds for its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.dialects.inspect.dialect import FRAMEWORK
from proctor.dialects.isolated import find_python
from proctor.errors import ConfigError
from proctor.packages.loading import EnvironmentLocation

TASKS = Path(__file__).with_name("tasks")


@pytest.fixture(scope="session")
def inspect_python() -> Path:
    """The interpreter that has it; installed once, and kept in the user's cache."""
    found = EnvironmentLocation(
        env_id="arithmetic", module="arithmetic", path=TASKS / "arithmetic.py", isolated=True
    )
    try:
        return find_python(found, FRAMEWORK)
    except ConfigError as error:
        pytest.skip(str(error))
