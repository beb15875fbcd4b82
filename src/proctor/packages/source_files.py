"""Which files of a folder are its source: nothing hidden, generated, or ignored by git, and no server's data.

`.gitignore` is read here rather than by git, so that the answer is the same where git is not installed; those
of the folders above, up to the repository's own, count too. Knows nothing of archives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from proctor.errors import ConfigError

IGNORE_FILE = ".gitignore"
MADE = re.compile(r"__pycache__|node_modules|.*\.egg-info|.*\.py[co]")
"""Names of generated files and folders, at any depth."""
MADE_AT_THE_TOP = frozenset({"dist", "build", "outputs", "venv"})
SERVER_FILE = "server-id"
"""What the data folder of every Proctor server has, wherever its key and its database are."""


class IgnoreRule(msgspec.Struct, frozen=True):
    """One line of a .gitignore."""

    base: Path
    """The folder of its .gitignore."""
    pattern: re.Pattern[str]
    keeps: bool
    """It starts with `!`."""
    only_folders: bool

    def fits(self, path: Path, is_folder: bool) -> bool:
        if self.only_folders and not is_folder:
            return False
        return self.pattern.fullmatch(path.relative_to(self.base).as_posix()) is not None


def source_files(folder: Path) -> list[str]:
    """Paths within the folder, sorted; without links, which may lead anywhere."""
    folder = folder.resolve()
    if is_server_data(folder):
        raise ConfigError(f"{folder} is the data folder of a Proctor server, and may hold its key.")
    found = walk(folder, folder, read_parent_rules(folder))
    return sorted((path.relative_to(folder).as_posix() for path in found), key=str.encode)


def walk(top: Path, folder: Path, rules: Sequence[IgnoreRule]) -> Iterator[Path]:
    rules = [*rules, *read_rules(folder)]
    for path in sorted(folder.iterdir()):
        is_folder = path.is_dir()
        if path.is_symlink() or is_never_source(path, at_the_top=folder == top):
            continue
        if is_ignored(path, is_folder, rules) or is_server_data(path):
            continue
        if is_folder:
            yield from walk(top, path, rules)
        elif path.is_file():
            yield path


def is_never_source(path: Path, *, at_the_top: bool) -> bool:
    name = path.name
    if name == IGNORE_FILE:
        return False
    return (
        name.startswith(".")  # .git, .venv, .env: none of these should be published
        or MADE.fullmatch(name) is not None
        or (at_the_top and name in MADE_AT_THE_TOP)
    )


def is_server_data(folder: Path) -> bool:
    return (folder / SERVER_FILE).is_file()


def is_ignored(path: Path, is_folder: bool, rules: Sequence[IgnoreRule]) -> bool:
    """The last matching rule decides."""
    fitting = [rule for rule in rules if rule.fits(path, is_folder)]
    return bool(fitting) and not fitting[-1].keeps


def read_parent_rules(folder: Path) -> list[IgnoreRule]:
    """Rules of the folders above, if the folder is part of a repository."""
    above = [folder, *folder.parents]
    top = next((parent for parent in above if (parent / ".git").exists()), folder)
    between = above[1 : above.index(top) + 1]
    return [rule for parent in reversed(between) for rule in read_rules(parent)]


def read_rules(folder: Path) -> list[IgnoreRule]:
    try:
        text = (folder / IGNORE_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [rule for line in text.splitlines() if (rule := parse_rule(line, folder)) is not None]


def parse_rule(line: str, folder: Path) -> IgnoreRule | None:
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    keeps = line.startswith("!")
    body = line.removeprefix("!")
    only_folders = body.endswith("/")
    body = body.rstrip("/")
    if not body:
        return None
    anchored = "/" in body
    pattern = ("" if anchored else "(?:.*/)?") + glob_to_regex(body.removeprefix("/"))
    return IgnoreRule(folder, re.compile(pattern), keeps, only_folders)


def glob_to_regex(glob: str) -> str:
    """A git pattern as a regular expression: only ** matches a slash."""
    pieces = re.findall(r"^\*\*/|/\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|\\.|.", glob)
    meanings = {"?": "[^/]", "/**/": "/(?:.*/)?", "/**": "/.*", "**/": "(?:.*/)?"}
    return "".join(meanings.get(piece) or piece_to_regex(piece) for piece in pieces)


def piece_to_regex(piece: str) -> str:
    if piece.startswith("*"):
        return "[^/]*"
    if piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
        inside = piece[1:-1].replace("\\", "\\\\")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(piece[1:] if piece.startswith("\\") and len(piece) == 2 else piece)
