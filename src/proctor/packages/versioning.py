"""Read and bump the version in a pyproject.toml without touching anything else in the file.

Knows nothing of hubs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from proctor.config.toml_file import read_toml
from proctor.errors import ConfigError

RELEASE = re.compile(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", re.IGNORECASE)
PARTS = 3


def read_version(file: Path) -> str:
    """The value of `[project] version`."""
    project = read_toml(file).data.get("project", {})
    version = project.get("version")
    if isinstance(version, str) and RELEASE.match(version):
        return version
    if "version" in project.get("dynamic", ()):
        raise ConfigError(f"{file} declares a dynamic version, so only its build tool can bump it.")
    raise ConfigError(f'{file} has no version under [project]; write one, such as version = "0.1.0".')


def bump_version(version: str, taken: Iterable[str]) -> str:
    """The next version after this one and all that are taken."""
    number = max(parse_release(each) for each in (version, *taken))
    padded = [*number, *[0] * (PARTS - len(number))]
    return ".".join(map(str, [*padded[:-1], padded[-1] + 1]))


def parse_release(version: str) -> tuple[int, ...]:
    found = RELEASE.match(version)
    return tuple(map(int, found[1].split("."))) if found else (0,)


def with_version(file: Path, version: str) -> bytes:
    """The file's content with another version and nothing else changed."""
    old, line = read_version(file), read_toml(file).lines["project", "version"]
    lines = file.read_bytes().decode().splitlines(keepends=True)
    value = re.compile(rf"(?<![\w-])(version[\"']?\s*=\s*)([\"']){re.escape(old)}\2")
    lines[line - 1] = value.sub(rf"\g<1>\g<2>{version}\g<2>", lines[line - 1], count=1)
    text = "".join(lines)
    data = read_toml(file).data
    if tomllib.loads(text) != {**data, "project": {**data["project"], "version": version}}:
        raise ConfigError(f"{file}:{line}: the version cannot be bumped here; write {version!r} yourself.")
    return text.encode()
