"""HTTP headers as people write them: names that differ only in case are one name, the later value holds.

Knows nothing of requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
SECRET = re.compile(r"auth|cookie|credential|key|password|secret|token", re.IGNORECASE)
"""In the name of a header whose value is confidential."""
KEY = re.compile(r"(basic|bearer|token) |sk-|hf_|AIza", re.IGNORECASE)
"""How the values of such headers begin, whatever their name."""
HIDDEN = "(hidden)"
CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """One set of headers out of several, later ones first in rank."""
    found: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            found[name.lower()] = (name, value)
    return dict(found.values())


def parse_header(line: str) -> tuple[str, str] | None:
    """The name and the value of 'Name: Value', if the line is that."""
    name, colon, value = line.partition(":")
    return (name.strip(), value.strip()) if colon and name.strip() and value.strip() else None


def find_problems(headers: Mapping[str, str]) -> Iterator[str]:
    """Headers that no server would accept, one sentence each."""
    for name, value in headers.items():
        if not NAME.fullmatch(name):
            yield f"{name!r} is not a valid HTTP header name."
        elif CONTROL_CHARACTERS.search(value):
            yield f"the value of header {name} holds a line break or another control character."


def is_secret_header(name: str, value: str) -> bool:
    return bool(SECRET.search(name) or KEY.match(value))


def drop_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not is_secret_header(name, value)}


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers for display and storage: secret values are masked."""
    return {name: HIDDEN if is_secret_header(name, value) else value for name, value in headers.items()}
