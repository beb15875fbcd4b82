from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.errors import InstallError
from proctor.projects.requirements import RolloutRequirements
from proctor.projects.venvs import ensure_venv, find_venv, prune_venvs
from tests.conftest import Ran
from tests.projects.conftest import MadeProject

HELPER = "GREETING = 'from the package of the rollout'\n"


def write_wheel(folder: Path, name: str, source: str, version: str = "1.0") -> str:
    """A wheel with one module; returns the requirement that installs it."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", source)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return f"{name} @ {path.as_uri()}"


def test_a_rollout_runs_with_its_own_packages_which_are_installed_once(
    project: MadeProject, proctor: Callable[..., Ran], tmp_path: Path
) -> None:
    requirement = write_wheel(tmp_path, "rollout_helper", HELPER)
    (project.rollout / "pyproject.toml").write_text(
        f'[project]\nname = "mine"\nversion = "1"\ndependencies = ["{requirement}"]\n'
    )
    source = (project.rollout / "main.py").read_text()
    (project.rollout / "main.py").write_text(f"import rollout_helper\n{source}")
    words = ("eval", "run", "configs/eval/my.toml", "--json")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    first = proctor(*words, environ=environ, timeout=180)
    second = proctor(*words, environ=environ)

    assert first.code == 0, first.stderr
    assert "Installing what my-rollout requires: rollout_helper @" in first.stderr
    assert "Installing" not in second.stderr
    assert second.summary["outcomes"] == {"scored": 3}


def test_a_package_that_cannot_be_installed_leaves_nothing_half_built(tmp_path: Path) -> None:
    requirements = RolloutRequirements((f"nothing @ {(tmp_path / 'nothing-1.0-py3-none-any.whl').as_uri()}",))
    said: list[str] = []

    with pytest.raises(InstallError):
        ensure_venv(requirements, "mine", tmp_path / "cache", os.environ, said.append)

    assert find_venv(requirements, tmp_path / "cache") is None
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_rollout_cannot_replace_what_proctor_needs(tmp_path: Path) -> None:
    requirement = write_wheel(tmp_path, "msgspec", "", version="0.1")

    with pytest.raises(InstallError) as raised:
        ensure_venv(
            RolloutRequirements((requirement,)), "mine", tmp_path / "cache", os.environ, lambda _: None
        )

    assert any("msgspec" in line for line in raised.value.last_lines)


def test_virtual_environments_that_were_not_used_for_long_are_removed(tmp_path: Path) -> None:
    for number in range(12):
        mark = tmp_path / str(number) / "rollout.json"
        mark.parent.mkdir()
        mark.write_text("[]")
        os.utime(mark, (number, number))

    prune_venvs(tmp_path)

    assert sorted(int(path.name) for path in tmp_path.iterdir()) == list(range(2, 12))
