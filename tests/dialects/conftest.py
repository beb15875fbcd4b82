"""A package index on this machine that has one package: a stand-in for verifiers."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

STAND_IN = Path(__file__).parent / "stand_in/verifiers.py"
INFO = "verifiers-0.1.99.dist-info"


def write_wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / "verifiers-0.1.99-py3-none-any.whl", "w") as wheel:
        wheel.write(STAND_IN, "verifiers.py")
        wheel.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: verifiers\nVersion: 0.1.99\n")
        wheel.writestr(
            f"{INFO}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{INFO}/RECORD", "")


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables under which installers find the stand-in and nothing else, and virtual environments are kept
    for this session only."""
    folder = tmp_path_factory.mktemp("index")
    write_wheel(folder)
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
    variables |= {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(folder)}
    return {**variables, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
