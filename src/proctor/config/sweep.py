"""A sweep: fields with lists of values, crossed with each other, and what each combination is called.

Knows nothing of suites beyond the one table, nor of what the fields do.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.config import headers
from proctor.config.fields import (
    AS_LINES,
    HOSTED,
    INSTEAD,
    RESUME,
    SETTINGS,
    SHOWN,
    SYNONYMS,
    TABLES,
    plain,
    read_value,
    unknown,
)
from proctor.config.toml_file import Findings, Where, shown

MOST_COMBINATIONS = 10_000
LONGEST_VALUE = 40
LONGEST_LABEL = 120
TURN = {"env_args": 0, "args": 1}
"""Tables come after all other fields, these two first."""
UNLABELLED = ("env_id", "model")
"""A run is called by its environment and its model anyway."""


class Axis(msgspec.Struct, frozen=True):
    """A field, or one key of a table, and the values it takes in turn."""

    field: str
    key: str | None
    values: tuple[Any, ...]
    places: tuple[Where, ...]

    @property
    def name(self) -> str:
        return self.field if self.key is None else f"{self.field}.{self.key}"

    @property
    def place(self) -> Where:
        return self.places[0][:-1]


class Choice(msgspec.Struct, frozen=True):
    """One value of an axis."""

    axis: Axis
    value: Any
    place: Where


def read_axes(sweep: Any, at: Where, findings: Findings) -> list[Axis]:
    """The axes in the order of the file, those of env_args and then args last."""
    if not isinstance(sweep, dict) or not sweep:
        findings.add(at, "this [[ablation]] sweeps nothing; add [ablation.sweep] with lists of values.")
        return []
    swept: dict[str, Any] = {
        name: raw for name, raw in sweep.items() if is_swept(name, (*at, name), findings)
    }
    tables = [name for name, raw in swept.items() if is_table(name) and isinstance(raw, dict)]
    axes: list[Axis] = []
    for name, raw in swept.items():
        if name not in tables:
            axes += read_axis(SYNONYMS.get(name, name), None, raw, (*at, name), findings)
    for name in sorted(tables, key=lambda name: TURN.get(name, len(TURN))):
        axes += read_table(name, swept[name], (*at, name), findings)
    check_once(axes, findings)
    return axes


def read_table(name: str, table: Mapping[str, Any], at: Where, findings: Findings) -> list[Axis]:
    """The keys of a table, each an axis of its own."""
    if not table:
        findings.add(at, f"the sweep of {name!r} is empty; give its keys lists of values.")
    field = SYNONYMS.get(name, name)
    return [axis for key, raw in table.items() for axis in read_axis(field, key, raw, (*at, key), findings)]


def is_table(name: str) -> bool:
    return SYNONYMS.get(name, name) in TABLES


def is_swept(name: str, place: Where, findings: Findings) -> bool:
    """Whether a field may be swept at all."""
    field = AS_LINES.get(name) or SYNONYMS.get(name, name)
    if name in ("name", "label"):
        findings.add(place, f"{name!r} cannot be swept; every combination is labelled by its values.")
    elif name in AS_LINES:
        findings.add(place, f"{name!r} cannot be swept; sweep the table {field!r} instead.")
    elif field in SHOWN or field in HOSTED or field == RESUME:
        findings.add(place, f"{name!r} cannot be swept, because it is no part of what is evaluated.")
    elif name in INSTEAD:
        findings.add(place, INSTEAD[name])
    elif field not in SETTINGS:
        findings.add(place, unknown(name))
    else:
        return True
    return False


def read_axis(field: str, key: str | None, raw: Any, place: Where, findings: Findings) -> list[Axis]:
    name = place[-1]
    if not isinstance(raw, list):
        findings.add(place, f"the sweep of {name!r} must be a list of values, not {shown(raw)}.")
        return []
    if not raw:
        findings.add(place, f"the sweep of {name!r} is an empty list; give it values.")
        return []
    places = tuple((*place, number) for number in range(len(raw)))
    read = read_value if key is None else read_key
    values = [read(field, each, where, findings) for each, where in zip(raw, places, strict=True)]
    return [Axis(field, key, tuple(values), places)]


def read_key(field: str, raw: Any, place: Where, findings: Findings) -> Any:
    """A value of one key in a table: anything, except in headers."""
    if field in AS_LINES.values() and not isinstance(raw, str):
        findings.add(place, f"{place[-2]!r} must be a text, not {shown(raw)}.")
    return plain(raw, place, findings)


def check_once(axes: Sequence[Axis], findings: Findings) -> None:
    """Nothing may be swept twice: by two names, or as a table and as one of its keys."""
    seen: dict[str, Axis] = {}
    for axis in axes:
        twice = seen.get(axis.name) or (seen.get(axis.field) if axis.key is not None else None)
        if twice is not None:
            line = findings.file.line_of(twice.place)
            findings.add(axis.place, f"{axis.name!r} is swept already, in line {line}.")
        seen.setdefault(axis.name, axis)


def size(axes: Iterable[Axis]) -> int:
    return math.prod(len(axis.values) for axis in axes)


def combinations(axes: Sequence[Axis]) -> Iterator[tuple[Choice, ...]]:
    """Every choice of one value per axis; the last axis turns fastest."""
    choices = [
        [Choice(axis, value, place) for value, place in zip(axis.values, axis.places, strict=True)]
        for axis in axes
    ]
    return itertools.product(*choices)


def label_of(combination: Sequence[Choice], name: str | None = None) -> str:
    """What tells a combination from the others, short enough for the name of a folder."""
    skipped = UNLABELLED[1:] if name else UNLABELLED
    named = [choice for choice in combination if choice.axis.name not in skipped]
    keys = [choice.axis.key or choice.axis.field for choice in named]
    words = [
        f"{key if keys.count(key) == 1 else choice.axis.name}={cut(shown_value(choice), LONGEST_VALUE)}"
        for key, choice in zip(keys, named, strict=True)
    ]
    return cut(" ".join(words), LONGEST_LABEL)


def shown_value(choice: Choice) -> str:
    """The value, or if it is a key that is sent, something that tells it from others and is none."""
    axis, value = choice.axis, choice.value
    if axis.field != "headers":
        return compact(value)
    if axis.key is None:
        return compact({name: hidden(name, each) for name, each in value.items()})
    return hidden(axis.key, value)


def hidden(name: str, value: str) -> str:
    digest = hashlib.sha256(value.encode()).hexdigest()[:6]
    return f"~{digest}" if headers.is_secret(name, value) else compact(value)


def compact(value: Any) -> str:
    """A value on one line, without what needs quoting."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}={compact(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(compact(each) for each in value) + "]"
    return "".join(letter if letter.isprintable() else "_" for letter in str(value).strip())


def cut(text: str, longest: int) -> str:
    """At most so many bytes, and still different from any other text."""
    if len(text.encode()) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return text.encode()[: longest - 7].decode(errors="ignore") + "~" + digest
