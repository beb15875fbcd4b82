from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proctor.errors import ConfigError, FileError
from proctor.projects.requirements import RolloutRequirements, read_requirements
from proctor.projects.venvs import require_python

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def write(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_packages_are_read_without_proctor_itself(tmp_path: Path) -> None:
    packages = '["openai>=1", "proctor[local]", "proctor-extras"]'
    text = f'[project]\ndependencies = {packages}\nrequires-python = ">=3.11"\n'

    found = read_requirements(write(tmp_path, text))

    assert found == RolloutRequirements(("openai>=1", "proctor-extras"), ">=3.11")


def test_a_rollout_without_a_pyproject_requires_nothing(tmp_path: Path) -> None:
    assert read_requirements(tmp_path) == RolloutRequirements()


@pytest.mark.parametrize(
    "text", ['[project]\ndependencies = "openai"\n', '[project]\nrequires-python = "new"\n']
)
def test_a_pyproject_that_cannot_be_followed_is_reported_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileError, match=r"pyproject\.toml:2: "):
        read_requirements(write(tmp_path, text))


@pytest.mark.parametrize(
    ("python", "is_right"),
    [
        ("", True),
        (f">={VERSION}", True),
        (f">={VERSION},<4", True),
        (f"=={VERSION}.*", True),
        (f"~={VERSION}", True),
        (f"!={VERSION}.*", False),
        (">=3.99", False),
        ("<3.9", False),
        ("==2.7.*", False),
    ],
)
def test_the_python_of_a_rollout_must_be_the_one_proctor_runs_on(python: str, is_right: bool) -> None:
    requirements = RolloutRequirements((), python)

    assert requirements.is_right_python is is_right
    if not is_right:
        with pytest.raises(ConfigError, match=r"requires Python .* and Proctor runs on"):
            require_python(requirements, "mine")
