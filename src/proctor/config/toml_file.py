"""A TOML file, and the line number of each of its keys, tables and elements.

The standard reader decides what the file says; it forgets where. So the text, once known to be valid, is
walked a second time for the lines alone. Knows nothing of what the keys mean.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import FileError

KeyPath = tuple[str | int, ...]
"""The way to a value: keys, and numbers of elements."""

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
SCALAR = re.compile(r"[^,\]}#\n]*")
STRINGS = {
    '"""': re.compile(r'"""(?:[^\\]|\\[\s\S])*?"""(?:"{0,2})'),
    "'''": re.compile(r"'''[\s\S]*?'''(?:'{0,2})"),
    '"': re.compile(r'"(?:[^"\\]|\\.)*"'),
    "'": re.compile(r"'[^']*'"),
}
SYNTAX_ERROR = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)", re.DOTALL
)


class TomlFile(msgspec.Struct, frozen=True):
    """A file's content, and the line of each value."""

    path: Path
    data: dict[str, Any]
    lines: dict[KeyPath, int]

    def line_of(self, where: KeyPath) -> int:
        """The line of a value, or of the nearest one around it."""
        while where:
            if where in self.lines:
                return self.lines[where]
            where = where[:-1]
        return 1

    def locate(self, where: KeyPath) -> str:
        return f"{self.path}:{self.line_of(where)}"


class FileProblems:
    """Collects the problems of a file, so that all of them are reported at once."""

    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self._found: list[tuple[int, str]] = []

    @property
    def count(self) -> int:
        return len(self._found)

    def add(self, where: KeyPath, text: str) -> None:
        self._found.append((self.file.line_of(where), text))

    def raise_any(self) -> None:
        if self._found:
            raise FileError(str(self.file.path), self._found)


def read_toml(path: Path) -> TomlFile:
    """Read a file; report every syntax error with its line."""
    return parse_toml(read_text(path), path)


def parse_toml(text: str, path: Path) -> TomlFile:
    """The same of a text that came another way; the path is what its problems are reported under."""
    try:
        data = tomllib.loads(text)
        return TomlFile(path, data, Locator(text).locate_keys())
    except RecursionError:
        raise FileError(str(path), [(1, "is nested too deeply to be read.")]) from None
    except ValueError as error:
        parsed = SYNTAX_ERROR.fullmatch(str(error))
        what = parsed["what"] if parsed else str(error)
        line = int(parsed["line"] or text.rstrip().count("\n") + 1) if parsed else 1
        raise FileError(str(path), [(line, f"this is not valid TOML: {what}.")]) from error


def read_text(path: Path) -> str:
    return decode_text(path, read_content(path))


def read_content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileError(str(path), [(1, f"the file cannot be read: {reason}.")]) from error


def decode_text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError(str(path), [(line, "the file is not text in UTF-8; save it as such.")]) from error


def describe_value(value: Any) -> str:
    """A value of a file, for a sentence about it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else repr(value)


class Locator:
    """Walks a valid document and notes on which line everything begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.lines: dict[KeyPath, int] = {}
        self._line = 1
        self._counted_to = 0
        self._last: dict[KeyPath, int] = {}
        """The number of the newest table in each array of tables."""

    def locate_keys(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._skip(BLANK)
        while self.position < len(self.text):
            if self.text.startswith("[", self.position):
                table = self._header()
            else:
                self._pair(table)
            self._skip(BLANK)
        return self.lines

    def _header(self) -> KeyPath:
        is_array = self.text.startswith("[[", self.position)
        line = self._now()
        self.position += 2 if is_array else 1
        *outer, name = self._keys()
        self.position += 2 if is_array else 1
        where: KeyPath = ()
        for key in outer:
            where = self._inside((*where, key), line)
        where = (*where, name)
        if not is_array:
            self.lines[where] = line
            return where
        self.lines.setdefault(where, line)
        number = self._last[where] = self._last.get(where, -1) + 1
        where = (*where, number)
        self.lines[where] = line
        return where

    def _inside(self, where: KeyPath, line: int) -> KeyPath:
        self.lines.setdefault(where, line)
        return (*where, self._last[where]) if where in self._last else where

    def _pair(self, table: KeyPath) -> None:
        line = self._now()
        where = table
        for key in self._keys():
            where = (*where, key)
            self.lines.setdefault(where, line)
        self.position += 1  # the equals sign
        self._skip(SPACE)
        self._value(where)

    def _keys(self) -> list[str]:
        keys = [self._key()]
        while self.text.startswith(".", self.position):
            self.position += 1
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        self._skip(SPACE)
        start = self.position
        quote = self.text[start]
        self._skip(STRINGS.get(quote, BARE_KEY))
        token = self.text[start : self.position]
        self._skip(SPACE)
        if quote in STRINGS:
            token = tomllib.loads(f"key = {token}")["key"]
        return token

    def _value(self, where: KeyPath) -> None:
        opening = self.text[self.position]
        if opening == "[":
            self._array(where)
        elif opening == "{":
            self._inline_table(where)
        else:
            triple = self.text[self.position : self.position + 3]
            self._skip(STRINGS.get(triple) or STRINGS.get(opening) or SCALAR)

    def _array(self, where: KeyPath) -> None:
        number = 0
        self._open()
        while not self.text.startswith("]", self.position):
            element = (*where, number)
            self.lines[element] = self._now()
            self._value(element)
            self._next()
            number += 1
        self.position += 1

    def _inline_table(self, where: KeyPath) -> None:
        self._open()
        while not self.text.startswith("}", self.position):
            self._pair(where)
            self._next()
        self.position += 1

    def _open(self) -> None:
        self.position += 1
        self._skip(BLANK)

    def _next(self) -> None:
        self._skip(BLANK)
        if self.text.startswith(",", self.position):
            self._open()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.position)
        assert found is not None, f"unexpected text at {self.text[self.position : self.position + 20]!r}"
        self.position = found.end()

    def _now(self) -> int:
        """The line of the position; counted on from where it was last asked for."""
        self._line += self.text.count("\n", self._counted_to, self.position)
        self._counted_to = self.position
        return self._line
