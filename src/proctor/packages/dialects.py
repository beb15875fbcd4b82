"""Find out which framework an environment was written for, by what it imports.

A dialect is an entry point in the group `proctor.dialects`, under the name of the package that its
environments import, or of the file that marks their folders (such as `task.toml`). An environment that
imports Proctor is ours, whatever else it imports. Knows nothing of what a dialect does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from proctor import plugins
from proctor.contracts import EnvironmentProtocol
from proctor.errors import ConfigError

OWN_PACKAGE = "proctor"
MOST_FILES = 200
"""Files searched for imports; an environment shows what it is made with in its first ones."""
IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE)


class DialectFeature(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a foreign environment uses, and whether it works here."""

    name: str
    supported: bool = True
    note: str = ""
    """What to know about it; if it is not supported, why, and the way out."""


class Dialect(Protocol):
    """Plays the environments of one other framework."""

    @property
    def title(self) -> str:
        """The framework's name, for people."""

    def claims(self, found: Any, files: Sequence[Path]) -> bool:
        """Whether an environment that imports the framework is one of its environments. Runs nothing."""

    def load(self, found: Any, arguments: Mapping[str, Any]) -> EnvironmentProtocol:
        """Make the environment, in a process of its own; `found` is an EnvironmentLocation."""

    def describe(self, found: Any, files: Sequence[Path]) -> Sequence[DialectFeature]:
        """What an environment uses of the framework, read from its source. Runs nothing."""


def find_dialect(found: Any, files: Iterable[Path]) -> Dialect | None:
    """The dialect of the environment with these source files; None if it is ours."""
    names = set(plugins.list_names(plugins.DIALECTS))
    sources = [file for file in files if file.suffix == ".py"][:MOST_FILES]
    imported = read_imports(sources) if names else set()
    if OWN_PACKAGE in imported:
        return None
    marks = {name for name in names if "." in name and is_marked(found.path, name)}
    for name in sorted((names & imported) | marks):
        dialect: Dialect = plugins.load(plugins.DIALECTS, name)
        if dialect.claims(found, sources):
            return dialect
    return None


class DialectLoader:
    """Creates a foreign environment, in place of a load_environment()."""

    def __init__(self, dialect: Dialect, found: Any) -> None:
        self.dialect = dialect
        self.found = found

    def __call__(self, **arguments: Any) -> EnvironmentProtocol:
        return self.dialect.load(self.found, arguments)


def refuse_isolation(found: Any) -> None:
    if found.isolated:
        raise ConfigError(
            f"--isolated is for environments of other frameworks, and {found.env_id} imports none of them; "
            f"leave it out."
        )


def is_marked(path: Path | None, name: str) -> bool:
    """Whether a folder holds the file that marks it, or is a folder of such folders."""
    if path is None or not path.is_dir():
        return False
    return (path / name).is_file() or any(path.glob(f"*/{name}"))


def read_imports(files: Iterable[Path]) -> set[str]:
    """The names of the packages that the files import, anywhere in them."""
    found: set[str] = set()
    for file in files:
        try:
            text = file.read_bytes()
        except OSError:
            continue
        for match in IMPORT.finditer(text):
            words = match[1] or match[2]
            parts = words.split(b",") if match[2] else [words]
            names = (part.strip().split(b".")[0].split(b" ")[0] for part in parts)
            found.update(name.decode() for name in names if name)  # a relative one begins with its dot
    return found
