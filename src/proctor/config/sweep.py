"""A sweep: fields with lists of values, expanded into every combination, and the label of each.

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
    HOSTED_FIELDS,
    LINE_FIELDS,
    MISPLACED_FIELDS,
    PRESENTATION_FIELDS,
    RESUME,
    SETTING_FIELDS,
    SYNONYMS,
    TABLE_FIELDS,
    read_value,
    to_json_value,
    unknown_field_message,
)
from proctor.config.toml_file import FileProblems, KeyPath, describe_value

MOST_COMBINATIONS = 10_000
LONGEST_VALUE = 40
LONGEST_LABEL = 120
TABLE_ORDER = {"env_args": 0, "args": 1}
"""Tables come after all other fields, these two first."""
UNLABELLED_FIELDS = ("env_id", "model")
"""A run is called by its environment and its model anyway."""


class Axis(msgspec.Struct, frozen=True):
    """A field, or one key of a table, and the values it takes in turn."""

    field: str
    key: str | None
    values: tuple[Any, ...]
    key_paths: tuple[KeyPath, ...]

    @property
    def name(self) -> str:
        return self.field if self.key is None else f"{self.field}.{self.key}"

    @property
    def key_path(self) -> KeyPath:
        return self.key_paths[0][:-1]


class AxisValue(msgspec.Struct, frozen=True):
    """One value of an axis."""

    axis: Axis
    value: Any
    key_path: KeyPath


def read_axes(sweep: Any, at: KeyPath, findings: FileProblems) -> list[Axis]:
    """The axes in the order of the file, those of env_args and then args last."""
    if not isinstance(sweep, dict) or not sweep:
        findings.add(at, "this [[ablation]] sweeps nothing; add [ablation.sweep] with lists of values.")
        return []
    swept: dict[str, Any] = {
        name: raw for name, raw in sweep.items() if check_sweepable(name, (*at, name), findings)
    }
    tables = [name for name, raw in swept.items() if is_table_field(name) and isinstance(raw, dict)]
    axes: list[Axis] = []
    for name, raw in swept.items():
        if name not in tables:
            axes += read_axis(SYNONYMS.get(name, name), None, raw, (*at, name), findings)
    for name in sorted(tables, key=lambda name: TABLE_ORDER.get(name, len(TABLE_ORDER))):
        axes += read_table(name, swept[name], (*at, name), findings)
    check_no_duplicate_axes(axes, findings)
    return axes


def read_table(name: str, table: Mapping[str, Any], at: KeyPath, findings: FileProblems) -> list[Axis]:
    """The keys of a table, each an axis of its own."""
    if not table:
        findings.add(at, f"the sweep of {name!r} is empty; give its keys lists of values.")
    field = SYNONYMS.get(name, name)
    return [axis for key, raw in table.items() for axis in read_axis(field, key, raw, (*at, key), findings)]


def is_table_field(name: str) -> bool:
    return SYNONYMS.get(name, name) in TABLE_FIELDS


def check_sweepable(name: str, key_path: KeyPath, findings: FileProblems) -> bool:
    """Whether a field may be swept at all."""
    field = LINE_FIELDS.get(name) or SYNONYMS.get(name, name)
    if name in ("name", "label"):
        findings.add(key_path, f"{name!r} cannot be swept; every combination is labelled by its values.")
    elif name in LINE_FIELDS:
        findings.add(key_path, f"{name!r} cannot be swept; sweep the table {field!r} instead.")
    elif field in PRESENTATION_FIELDS or field in HOSTED_FIELDS or field == RESUME:
        findings.add(key_path, f"{name!r} cannot be swept, because it is not part of what is evaluated.")
    elif name in MISPLACED_FIELDS:
        findings.add(key_path, MISPLACED_FIELDS[name])
    elif field not in SETTING_FIELDS:
        findings.add(key_path, unknown_field_message(name))
    else:
        return True
    return False


def read_axis(field: str, key: str | None, raw: Any, key_path: KeyPath, findings: FileProblems) -> list[Axis]:
    name = key_path[-1]
    if not isinstance(raw, list):
        findings.add(key_path, f"the sweep of {name!r} must be a list of values, not {describe_value(raw)}.")
        return []
    if not raw:
        findings.add(key_path, f"the sweep of {name!r} is an empty list; give it values.")
        return []
    key_paths = tuple((*key_path, number) for number in range(len(raw)))
    read = read_value if key is None else read_key
    values = [read(field, each, where, findings) for each, where in zip(raw, key_paths, strict=True)]
    return [Axis(field, key, tuple(values), key_paths)]


def read_key(field: str, raw: Any, key_path: KeyPath, findings: FileProblems) -> Any:
    """A value of one key in a table: anything, except in headers."""
    if field in LINE_FIELDS.values() and not isinstance(raw, str):
        findings.add(key_path, f"{key_path[-2]!r} must be a text, not {describe_value(raw)}.")
    return to_json_value(raw, key_path, findings)


def check_no_duplicate_axes(axes: Sequence[Axis], findings: FileProblems) -> None:
    """Nothing may be swept twice: by two names, or as a table and as one of its keys."""
    seen: dict[str, Axis] = {}
    for axis in axes:
        twice = seen.get(axis.name) or (seen.get(axis.field) if axis.key is not None else None)
        if twice is not None:
            line = findings.file.line_of(twice.key_path)
            findings.add(axis.key_path, f"{axis.name!r} is swept already, in line {line}.")
        seen.setdefault(axis.name, axis)


def count_combinations(axes: Iterable[Axis]) -> int:
    return math.prod(len(axis.values) for axis in axes)


def iterate_combinations(axes: Sequence[Axis]) -> Iterator[tuple[AxisValue, ...]]:
    """Every choice of one value per axis; the last axis turns fastest."""
    choices = [
        [
            AxisValue(axis, value, key_path)
            for value, key_path in zip(axis.values, axis.key_paths, strict=True)
        ]
        for axis in axes
    ]
    return itertools.product(*choices)


def build_label(combination: Sequence[AxisValue], name: str | None = None) -> str:
    """What tells a combination from the others, short enough for the name of a folder."""
    skipped = UNLABELLED_FIELDS[1:] if name else UNLABELLED_FIELDS
    named = [choice for choice in combination if choice.axis.name not in skipped]
    keys = [choice.axis.key or choice.axis.field for choice in named]
    words = [
        f"{key if keys.count(key) == 1 else choice.axis.name}="
        f"{truncate_with_digest(format_choice(choice), LONGEST_VALUE)}"
        for key, choice in zip(keys, named, strict=True)
    ]
    return truncate_with_digest(" ".join(words), LONGEST_LABEL)


def format_choice(choice: AxisValue) -> str:
    """The value, or if it is a key that is sent, something that tells it from others and is none."""
    axis, value = choice.axis, choice.value
    if axis.field != "headers":
        return format_compact(value)
    if axis.key is None:
        return format_compact({name: redact_value(name, each) for name, each in value.items()})
    return redact_value(axis.key, value)


def redact_value(name: str, value: str) -> str:
    digest = hashlib.sha256(value.encode()).hexdigest()[:6]
    return f"~{digest}" if headers.is_secret_header(name, value) else format_compact(value)


def format_compact(value: Any) -> str:
    """A value on one line, without what needs quoting."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}={format_compact(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(format_compact(each) for each in value) + "]"
    return "".join(letter if letter.isprintable() else "_" for letter in str(value).strip())


def truncate_with_digest(text: str, longest: int) -> str:
    """Shorten a text to a number of bytes while keeping it unique."""
    if len(text.encode()) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return text.encode()[: longest - 7].decode(errors="ignore") + "~" + digest
