"""Lockfiles: the wheels in a virtual environment, one per line.

    helper==2.0 --hash=sha256:…  # helper-2.0-py3-none-any.whl

A lock travels from one host through the server to another, so it is parsed as untrusted input: a line is a
name, a version, and optionally a hash and a file, or the lock is rejected. Locks of earlier versions have
names and versions only. Knows nothing of pip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from proctor.errors import InstallError

LONGEST_LOCK = 1_000_000
LONGEST_SHOWN = 100
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
VERSION = (
    r"v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*"
    r"(?:[._-]?(?:alpha|a|beta|b|preview|pre|c|rc)[._-]?[0-9]*)?"
    r"(?:-[0-9]+|[._-]?(?:post|rev|r)[._-]?[0-9]*)?"
    r"(?:[._-]?dev[._-]?[0-9]*)?"
    r"(?:\+[a-z0-9]+(?:[._-][a-z0-9]+)*)?"
)
"""As PEP 440 spells it, in lower case."""
WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+)(?:-[A-Za-z0-9_.]+){3,4}\.whl")
LINE = re.compile(
    rf"(?P<name>{NAME})==(?P<version>{VERSION})"
    rf"(?: --hash=sha256:(?P<sha256>[0-9a-f]{{64}})  # (?P<file>[A-Za-z0-9_.!+-]+\.whl))?",
    re.ASCII,
)


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One package of a virtual environment."""

    name: str
    version: str
    sha256: str = ""
    file: str = ""
    """The wheel with this hash; another kind of machine may use another one."""

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"

    @property
    def line(self) -> str:
        return f"{self.requirement} --hash=sha256:{self.sha256}  # {self.file}"


def pin_of(file: str, sha256: str) -> Pin:
    """The pin of a wheel, from its file's name."""
    named = WHEEL.fullmatch(file)
    if named is None:
        raise InstallError(f"The index offers {file[:LONGEST_SHOWN]!a}, which is not the name of a wheel.")
    name = re.sub(r"[-_.]+", "-", named["name"]).lower()
    pin = Pin(name=name, version=named["version"].replace("_", "-").lower(), sha256=sha256, file=file)
    return read_line(pin.line)


def write_lock(pins: Iterable[Pin]) -> str:
    return "".join(f"{pin.line}\n" for pin in sorted(pins, key=lambda pin: pin.name))


def read_lock(text: str) -> list[Pin]:
    if len(text) > LONGEST_LOCK:
        raise InstallError("This version's lock is too large; push a new version.")
    return [read_line(line) for line in text.split("\n") if line]


def read_line(line: str) -> Pin:
    found = LINE.fullmatch(line)
    if found is None:
        raise InstallError(
            f"This version's lock has the line {line[:LONGEST_SHOWN]!a} instead of name==version; "
            f"push a new version."
        )
    return Pin(
        name=found["name"], version=found["version"], sha256=found["sha256"] or "", file=found["file"] or ""
    )
