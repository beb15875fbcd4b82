"""Virtual environments that are built by a process of their own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from proctor.errors import InstallError
from proctor.runner.build import BuildRequest, build_in_process
from tests.runner.indexes import package_index
from tests.runner.wheels import make_wheel

pytestmark = pytest.mark.usefixtures("sandboxes")


def variables(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, **more}


def test_what_is_built_apart_can_be_used_here(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""})
    order = BuildRequest(cache=tmp_path / "cache", wheel=wheel, wheel_name=wheel.name)
    said: list[str] = []

    venv = asyncio.run(build_in_process(order, variables(PIP_NO_INDEX="1"), said.append))

    assert said[0] == f"Installing {wheel.name}."
    assert asyncio.run(order.venvs.find(wheel, None)) == venv


def test_a_builder_that_takes_too_long_is_ended_and_another_can_build(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""}, requires=["helper"])
    order = BuildRequest(cache=tmp_path / "cache", wheel=wheel, wheel_name=wheel.name)
    packages = tmp_path / "packages"
    packages.mkdir()
    make_wheel(packages, "helper", {"helper.py": ""})

    with (
        package_index(packages, silent=True) as index,
        pytest.raises(InstallError, match="longer than 4 seconds"),
    ):
        asyncio.run(build_in_process(order, variables(PIP_INDEX_URL=index.url), print, seconds=4))
    with package_index(packages) as index:
        venv = asyncio.run(build_in_process(order, variables(PIP_INDEX_URL=index.url), print))

    assert venv.lock.startswith("helper==1.0 ")


def test_a_builder_that_dies_is_reported(tmp_path: Path) -> None:
    order = BuildRequest(cache=tmp_path / "cache", wheel=tmp_path / "absent.whl", wheel_name="no wheel")

    with pytest.raises(InstallError, match="not the name of a wheel"):
        asyncio.run(build_in_process(order, variables(), print))
    with pytest.raises(InstallError, match="ended with exit code"):
        asyncio.run(build_in_process(order, {**variables(), "PYTHONHOME": str(tmp_path)}, print))
