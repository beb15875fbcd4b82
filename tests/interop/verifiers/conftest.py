"""verifiers 0.1 itself, in the virtual environment that Proctor builds for its environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.dialects.isolated import find_python
from proctor.dialects.verifiers.dialect import FRAMEWORK
from proctor.errors import ConfigError
from proctor.packages.loading import EnvironmentLocation

ENVIRONMENTS = Path(__file__).with_name("environments")


@pytest.fixture(scope="session")
def verifiers_python() -> Path:
    """The interpreter that has it; installed once, and kept in the user's cache."""
    found = EnvironmentLocation(
        env_id="arithmetic", module="arithmetic", path=ENVIRONMENTS / "arithmetic.py", isolated=True
    )
    try:
        return find_python(found, FRAMEWORK)
    except ConfigError as error:
        pytest.skip(str(error))
