"""A rollout as a package that a hosted run installs and plays: its files, and a module that loads them.

The same files give the same bytes. Nothing of the rollout is executed or built: a rollout is a folder of
files, and its pyproject.toml only names what it requires. Knows nothing of git.
"""

from __future__ import annotations

import base64
import hashlib
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from proctor.errors import ConfigError
from proctor.packages.archive import pack
from proctor.packages.loading import module_name
from proctor.projects.requirements import OWN_NAME, PYPROJECT

LAYOUT = "1"
"""Part of the version, so that a package made differently is another version."""
TREE_DIGITS = 13
ROLLOUT_FOLDER = "rollout"
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
MODULE = '''\
"""A rollout, packed from a repository; a recipe decides how it is played."""

from pathlib import Path

from proctor.workflow import load


def load_environment(**arguments):
    return load.load_environment(folder=str(Path(__file__).parent / "rollout"), **arguments)
'''
PROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "{description}"
{python}dependencies = {dependencies}

[tool.hatch.build.targets.wheel]
only-include = ["{module}"]
"""


class RolloutPackage(msgspec.Struct, frozen=True, kw_only=True):
    """What a package is called and requires."""

    name: str
    version: str
    description: str
    requires_python: str = ""
    dependencies: list[str] = []

    @property
    def module(self) -> str:
        return module_name(self.name)

    @property
    def wheel_name(self) -> str:
        return f"{self.module}-{self.version}-py3-none-any.whl"


File = tuple[str, bytes, bool]
"""Path, content, and whether it is executable."""


def version_of_tree(tree: str) -> str:
    """The tree's hash as a number: pip does not take wheels with a local version from a file."""
    return f"{LAYOUT}.{int(tree[:TREE_DIGITS], 16)}"


def describe_package(name: str, rollout: str, tree: str, files: Mapping[str, bytes]) -> RolloutPackage:
    """Read what the rollout's pyproject.toml requires."""
    project = read_project(files[PYPROJECT]) if PYPROJECT in files else {}
    dependencies = project.get("dependencies", [])
    python = project.get("requires-python", "")
    try:
        if not isinstance(dependencies, list):
            raise InvalidRequirement("'dependencies' is not a list")
        kept = [str(Requirement(each)) for each in dependencies if not OWN_NAME.match(each.strip())]
        python = str(SpecifierSet(python))
    except (InvalidRequirement, InvalidSpecifier, AttributeError, TypeError) as error:
        raise ConfigError(f"{PYPROJECT} names a requirement that cannot be read: {error}.") from error
    return RolloutPackage(
        name=name,
        version=version_of_tree(tree),
        description=f"The rollout {rollout} of a repository.",
        requires_python=python,
        dependencies=kept,
    )


def read_project(text: bytes) -> dict[str, Any]:
    try:
        data = tomllib.loads(text.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ConfigError(f"{PYPROJECT} cannot be read: {error}.") from error
    project = data.get("project", {})
    return project if isinstance(project, dict) else {}


def write_package(package: RolloutPackage, files: Iterable[File], wheel: Path, source: Path) -> None:
    """Write the wheel and its source archive."""
    module = package.module
    inside = [(f"{module}/{ROLLOUT_FOLDER}/{path}", data, mode) for path, data, mode in files]
    inside = [(f"{module}/__init__.py", MODULE.encode(), False), *inside]
    write_wheel(package, inside, wheel)
    pack([(PYPROJECT, project_text(package).encode(), False), *inside], source)


def project_text(package: RolloutPackage) -> str:
    quoted = msgspec.json.encode(package.dependencies).decode()
    python = f'requires-python = "{package.requires_python}"\n' if package.requires_python else ""
    return PROJECT.format(
        name=package.name,
        version=package.version,
        description=package.description,
        python=python,
        dependencies=quoted,
        module=package.module,
    )


def write_wheel(package: RolloutPackage, inside: Iterable[File], target: Path) -> None:
    info = f"{package.module}-{package.version}.dist-info"
    described = [
        (f"{info}/METADATA", metadata_text(package).encode(), False),
        (
            f"{info}/WHEEL",
            b"Wheel-Version: 1.0\nGenerator: proctor\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            False,
        ),
    ]
    record: list[str] = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, data, is_executable in [*sorted(inside), *described]:
            record.append(record_line(path, data))
            add_member(packed, path, data, is_executable)
        add_member(packed, f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]).encode(), False)


def add_member(packed: zipfile.ZipFile, path: str, data: bytes, is_executable: bool) -> None:
    member = zipfile.ZipInfo(path, ZIP_TIME)
    member.external_attr = (0o100755 if is_executable else 0o100644) << 16
    member.compress_type = zipfile.ZIP_DEFLATED
    packed.writestr(member, data)


def record_line(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    quoted = f'"{path.replace(chr(34), chr(34) * 2)}"'
    return f"{quoted},sha256={digest},{len(data)}\n"


def metadata_text(package: RolloutPackage) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {package.name}", f"Version: {package.version}"]
    lines += [f"Summary: {package.description}"]
    lines += [f"Requires-Python: {package.requires_python}"] if package.requires_python else []
    lines += [f"Requires-Dist: {each}" for each in package.dependencies]
    return "\n".join(lines) + "\n"
