"""Find the paths that must appear empty in a sandbox: those that hold the environment's own code.

An agent that can read its grader can satisfy it without solving the task. Knows the file system and Python's
folders; nothing of sandboxes.
"""

from __future__ import annotations

import inspect
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from proctor.isolation.command_line import Cover

ESSENTIAL = (
    *(
        "/",
        "/usr",
        "/usr/bin",
        "/usr/sbin",
        "/usr/lib",
        "/usr/lib64",
        "/usr/libexec",
        "/usr/share",
        "/usr/include",
    ),
    *("/usr/local", "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/share", "/usr/src"),
)
"""Folders that cannot be covered as a whole, because then nothing would run."""


def find_sources(functions: Iterable[Callable[..., Any]]) -> list[Path]:
    """What graded agents must not read: the files of these functions, the folders around them, the folder the
    program was started in, and the packages of the running interpreter."""
    found: dict[Path, None] = {}
    for function in functions:
        code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
        if code is not None and Path(code.co_filename).is_file():
            found.update(dict.fromkeys(paths_around(Path(code.co_filename).resolve())))
    if sys.prefix != sys.base_prefix:
        found[Path(sys.prefix).resolve()] = None
    with suppress(FileNotFoundError):
        found[Path.cwd()] = None
    return list(found)


def paths_around(file: Path) -> Iterator[Path]:
    """A file, its compiled form, its folder, and all packages installed beside it."""
    yield from (file, file.parent / "__pycache__")
    folder = file.parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    yield folder
    yield from (folder for folder in package_folders() if file.is_relative_to(folder))


def package_folders() -> list[Path]:
    named = [*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return [Path(folder).resolve() for folder in dict.fromkeys(named)]


def find_covers(hidden: Sequence[Path], visible_roots: Sequence[str]) -> list[Cover]:
    """The hidden paths that would be visible below the visible roots; only the outermost of them."""
    folders = [Path(folder).resolve() for folder in visible_roots]
    visible = {path for path in hidden if any(path.is_relative_to(folder) for folder in folders)}
    coverable = {path for path in visible if not is_essential(path)}
    outermost = [path for path in coverable if not any(other in coverable for other in path.parents)]
    return [Cover(str(path), path.is_dir()) for path in sorted(outermost) if path.exists()]


def is_essential(path: Path) -> bool:
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()
    return str(path) in ESSENTIAL or (path.is_dir() and stdlib.is_relative_to(path))
