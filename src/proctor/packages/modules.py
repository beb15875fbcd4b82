"""Import an author's code from its location, and describe failures in one sentence.

Knows files and modules. Knows nothing of what is in them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from proctor.errors import ConfigError, ProctorError, find_author_line, format_last_frames

_folders: set[Path] = set()
"""Folders that files were imported from, whose neighbors they may have imported by bare name."""


def import_from(root: Path, module: str) -> ModuleType:
    """Import by name from a folder, so that the module can import its neighbors."""
    known = sys.modules.get(module)
    if known is not None and not str(getattr(known, "__file__", "") or "").startswith(str(root)):
        del sys.modules[module]
    sys.path.insert(0, str(root))
    return import_module(module)


class FreshLoader(SourceFileLoader):
    """Compiles the current source: cached bytecode is matched by whole seconds, and authors edit faster."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def import_file(path: Path, module: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(module, path, loader=FreshLoader(module, str(path)))
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file.")
    made = importlib.util.module_from_spec(spec)
    forget_strangers(path.parent)
    sys.modules[module] = made
    sys.path.insert(0, str(path.parent))
    with import_errors(str(path)):
        spec.loader.exec_module(made)
    return made


def forget_strangers(folder: Path) -> None:
    """Forget modules of other folders: two may each have an `env.py`, and must not get the other's."""
    for file in folder.glob("*.py"):
        known = getattr(sys.modules.get(file.stem), "__file__", None)
        if known is not None and Path(known).parent in _folders - {folder}:
            del sys.modules[file.stem]
    _folders.add(folder)


def import_module(module: str) -> ModuleType:
    with import_errors(module):
        return importlib.import_module(module)


class import_errors:  # noqa: N801 - reads as a statement
    """Turns whatever an import raises into a ConfigError of one sentence."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ProctorError):
            return
        if isinstance(error, SystemExit):
            raise ConfigError(
                f"Importing {self.what} failed: {describe_error(error)}; it called sys.exit({error.code!r}). "
                "Have it raise an error that says what is missing."
            ) from error
        if isinstance(error, Exception):
            hint = suggest_own_names(error)
            raise ConfigError(f"Importing {self.what} failed: {describe_error(error)}{hint}") from error


def suggest_own_names(error: Exception) -> str:
    """The next step for an environment that was written for verifiers."""
    if not isinstance(error, ModuleNotFoundError) or error.name != "verifiers":
        return ""
    return "; Proctor has most of its classes under the same names: try `import proctor as vf`"


def describe_error(error: BaseException) -> str:
    """The exception and the author's line that it came from, on one line."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    location = find_author_line(error) or next(iter(reversed(format_last_frames(error))), "")
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({location})"
