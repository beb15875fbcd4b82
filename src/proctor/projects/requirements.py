"""What a rollout's pyproject.toml asks for: packages, and a Python. Knows nothing of installers."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from proctor.config.toml_file import read_toml
from proctor.errors import FileError

PYPROJECT = "pyproject.toml"
OWN_NAME = re.compile(r"proctor(?![\w.-])", re.IGNORECASE)
SPECIFIER = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?\s*")


class RolloutRequirements(msgspec.Struct, frozen=True):
    """What must be there for a rollout to run."""

    packages: tuple[str, ...] = ()
    """Without Proctor, which is always there."""
    python: str = ""
    """As pyproject.toml says it; empty for any."""

    @property
    def is_right_python(self) -> bool:
        return self.accepts(sys.version_info[:3])

    def accepts(self, version: tuple[int, ...]) -> bool:
        """Whether a Python of this version may be used."""
        return all(is_satisfied(each, version) for each in self.python.split(",") if each.strip())


def read_requirements(folder: Path) -> RolloutRequirements:
    """The requirements of a rollout; none, if it has no pyproject.toml."""
    path = folder / PYPROJECT
    if not path.is_file():
        return RolloutRequirements()
    file = read_toml(path)
    project: Any = file.data.get("project", {})
    packages = project.get("dependencies", []) if isinstance(project, dict) else None
    if not isinstance(packages, list) or not all(isinstance(each, str) for each in packages):
        where = ("project", "dependencies")
        raise FileError(str(path), [(file.line_of(where), "'dependencies' must be a list of requirements.")])
    python = project.get("requires-python", "")
    if not isinstance(python, str) or any(
        SPECIFIER.fullmatch(each) is None for each in python.split(",") if each.strip()
    ):
        where = ("project", "requires-python")
        raise FileError(str(path), [(file.line_of(where), "'requires-python' must look like '>=3.11'.")])
    return RolloutRequirements(tuple(each for each in packages if not OWN_NAME.match(each.strip())), python)


def is_satisfied(specifier: str, version: tuple[int, ...]) -> bool:
    """Whether a Python of this version meets one condition."""
    found = SPECIFIER.fullmatch(specifier)
    if found is None:
        return True
    operator, text, is_prefix = found.groups()
    wanted = tuple(map(int, text.split(".")))
    current = pad(version)
    if operator in ("==", "!=") and (is_prefix or len(wanted) < 3):
        return (current[: len(wanted)] == wanted) == (operator == "==")
    if operator == "~=":
        return current >= pad(wanted) and current[: len(wanted) - 1] == wanted[:-1]
    compared = (current > pad(wanted)) - (current < pad(wanted))
    return {">=": compared >= 0, "<=": compared <= 0, ">": compared > 0, "<": compared < 0}.get(
        operator, (compared == 0) == (operator == "==")
    )


def pad(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, *(0,) * (3 - len(version)))
