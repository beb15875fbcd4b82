"""Redact secrets, and paths of its host, from a run's output: logs, errors, rows.

A value is found as it is, as escaped in JSON or in a URL, and within base64. This guards against accidents;
anyone who wants to leak a secret that they have can always encode it in another way. Knows nothing of where
values come from.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from proctor.runner.host_paths import VENV, VENV_PART, hide_venvs

SHORTEST = 6
"""Characters; shorter values are not redacted, because they occur everywhere."""
SHORTEST_LINE = 16
"""For values of several lines, since logs come line by line."""
HEX = re.compile(r"%[0-9A-F]{2}")
TOKEN_START = "proctor_"
TOKEN = re.compile(r"proctor_[0-9a-f]{10}_[A-Za-z0-9_-]{43}")
"""A token of any server, such as the one in a run's own variables, which environments tend to print."""


class Redactor:
    """Replaces secrets with `[secret NAME]`."""

    def __init__(self, values: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        """Values by name, or pairs of both if one name has had several values."""
        marks: dict[str, str] = {}
        for name, value in values.items() if isinstance(values, Mapping) else values:
            for shape in secret_spellings(value):
                marks.setdefault(shape, f"[secret {name}]")
        self._marks = marks
        # Searching for each is several times faster than an alternation, which runs only after a match.
        self._shapes = tuple(marks)
        self._bytes = tuple(
            {spelling for shape in marks for spelling in json_spellings(shape)} if marks else ()
        )
        longest_first = sorted(marks, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if marks else None

    def text(self, text: str) -> str:
        if TOKEN_START in text:
            text = TOKEN.sub("[token]", text)
        text = hide_venvs(text)
        if self._pattern is None or not any(shape in text for shape in self._shapes):
            return text
        return self._pattern.sub(self._mark, text)

    def json(self, document: bytes) -> bytes:
        """The same JSON with secrets removed from its strings and numbers; anything else is treated as
        text."""
        plain = decode_if_needed(document)
        has_mark = TOKEN.search(plain) or VENV.search(plain)
        if not has_mark and not any(spelling in document for spelling in self._bytes):
            return document
        try:
            value = json.loads(document)
        except (ValueError, RecursionError):
            return self.text(document.decode(errors="replace")).encode()
        return json.dumps(self.value(value), separators=(",", ":")).encode()

    def value(self, value: Any) -> Any:
        """Any JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            written = json.dumps(value)
            redacted = self.text(written)
            return value if redacted == written else redacted
        return value

    def _mark(self, found: re.Match[str]) -> str:
        return self._marks[found[0]]


def decode_if_needed(document: bytes) -> str:
    """Where to look for tokens and paths of hosts; empty if there certainly are none."""
    has_any = TOKEN_START.encode() in document or VENV_PART.encode() in document
    return document.decode(errors="replace") if has_any else ""


def secret_spellings(value: str) -> Iterator[str]:
    """The forms in which a value may appear in a text."""
    whole = value.strip()
    if len(whole) < SHORTEST:
        return
    for plain in dict.fromkeys((value, whole)):
        yield plain
        yield from json_escapes(plain)
        yield from url_spellings(plain)
    for each in dict.fromkeys((value, whole)):
        for core in base64_spellings(each.encode()):
            yield core
            yield core.replace("+", "-").replace("/", "_")
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= SHORTEST_LINE)


def json_escapes(text: str) -> Iterator[str]:
    """Inside a JSON string, and inside one nested in another, as in the arguments of a tool."""
    for is_ascii in (True, False):
        once = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        yield once
        yield once.replace("/", "\\/")
        yield json.dumps(once, ensure_ascii=is_ascii)[1:-1]


def json_spellings(text: str) -> Iterator[bytes]:
    """How a document may escape a text: minimally, as Python does, or not at all."""
    for spelling in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], text):
        yield spelling.encode()


def url_spellings(text: str) -> Iterator[str]:
    for spelling in (quote(text, safe=""), quote(text), quote_plus(text)):
        yield spelling
        yield HEX.sub(lambda found: found[0].lower(), spelling)


def base64_spellings(content: bytes) -> Iterator[str]:
    """The base64 characters that encode nothing but the content, for each offset it may start at."""
    for before in range(3):
        first, end = -(-8 * before // 6), 8 * (before + len(content)) // 6
        yield base64.b64encode(bytes(before) + content).decode()[first:end]
