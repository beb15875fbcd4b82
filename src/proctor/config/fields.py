"""The fields of one table of a suite: each under its own name, of the right kind and in range.

Every setting may be written by its name, and some by a second one that people know. Knows nothing of which
table wins over which.
"""

from __future__ import annotations

import datetime
import math
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

import msgspec

from proctor.config import headers
from proctor.config.schema import LATEST, EvalConfig, HostedOptions, Presentation
from proctor.config.sources import describe_value_problem
from proctor.config.toml_file import FileProblems, KeyPath, describe_value
from proctor.errors import did_you_mean

SETTING_FIELDS: dict[str, Any] = {
    field.name: field.type
    for field in msgspec.structs.fields(EvalConfig)
    if field.name not in ("label", "config_hash")
}
PRESENTATION_FIELDS: dict[str, Any] = {
    field.name: field.type
    for field in msgspec.structs.fields(Presentation)
    if field.name not in ("resume", "accept_changed", "json", "dry_run")
}
"""How the suite is shown and watched; said anywhere, it holds for all of it."""
HOSTED_FIELDS: dict[str, Any] = {
    field.name: field.type
    for field in msgspec.structs.fields(HostedOptions)
    if field.name not in ("follow", "poll_interval", "custom_secrets")
}
"""What is asked of a server that plays the suite."""
FIELD_TYPES = SETTING_FIELDS | PRESENTATION_FIELDS | HOSTED_FIELDS
RESUME = "resume"

SYNONYMS = {
    "id": "env_id",
    "args": "env_args",
    "sampling": "sampling_args",
    "shuffle_seed": "seed",
    "group": "rollouts_per_example",
    "group_size": "rollouts_per_example",
    "resume_path": RESUME,
}
"""Another name for a field → the field."""
LINE_FIELDS = {"header": "headers", "header_from_state": "headers_from_state"}
"""Fields that hold 'Name: Value' lines → the table they add to."""
HEADERS = tuple(LINE_FIELDS.values())
TABLE_FIELDS = ("env_args", "agent_args", "extra_env_kwargs", "sampling_args", *HEADERS)

MISPLACED_FIELDS = {
    "label": "sweeps set a run's label; name the run with 'name'.",
    "json": "'json' belongs on the command line: --json.",
    "dry_run": "'dry_run' belongs on the command line: --dry-run.",
    "follow": "'follow' belongs on the command line: --follow.",
    "poll_interval": "'poll_interval' belongs on the command line: --poll-interval.",
    "custom_secrets": "secrets do not belong in a file that others read; give --custom-secrets.",
    "all": "write 'num_examples = -1' for every task.",
    "taskset": "Proctor has no separate tasksets; name the environment with 'env_id', and what it should "
    "load with 'env_args'.",
    "harness": "Proctor calls it an agent; choose it with 'agent' and 'agent_args', where the environment "
    "leaves its turns to one.",
    "disable_env_server": "Proctor has no environment server to turn off; 'num_workers = 1' plays everything "
    "in this process.",
    "sweep": "a sweep belongs in an [[ablation]] block, as [ablation.sweep].",
    "endpoint": "[[endpoint]] belongs in a registry file, which 'endpoints_path' names.",
}
"""Keys that other tools have, and what to write instead."""

MAY_BE_EMPTY = ("api_key_var",)
"""An endpoint without a key has an empty variable."""
INTEGER_RANGE = range(-(2**63), 2**64)
"""Whole numbers that can be written down as JSON."""


class FieldValues(msgspec.Struct, frozen=True):
    """What one table says, by the names of the settings, and where it says it."""

    values: dict[str, Any] = {}
    key_paths: dict[str, KeyPath] = {}


def read_fields(table: Mapping[str, Any], at: KeyPath, findings: FileProblems) -> FieldValues:
    values: dict[str, Any] = {}
    key_paths: dict[str, KeyPath] = {}
    lines: dict[str, dict[str, str]] = {}
    for name, raw in table.items():
        key_path = (*at, name)
        field = LINE_FIELDS.get(name) or SYNONYMS.get(name, name)
        if name in MISPLACED_FIELDS:
            findings.add(key_path, MISPLACED_FIELDS[name])
        elif field not in FIELD_TYPES and field != RESUME:
            findings.add(key_path, unknown_field_message(name))
        elif name in LINE_FIELDS:
            lines[field] = read_header_lines(name, raw, key_path, findings)
            key_paths.setdefault(field, key_path)
        elif field in values:
            findings.add(key_path, f"{key_paths[field][-1]!r} and {name!r} mean the same; keep one of them.")
        else:
            values[field] = read_value(field, raw, key_path, findings)
            key_paths[field] = key_path
    for field, more in lines.items():
        values[field] = headers.merge_headers(values.get(field) or {}, more)
    return FieldValues(values, key_paths)


def read_value(field: str, raw: Any, key_path: KeyPath, findings: FileProblems) -> Any:
    """A field's value; None where it has none that can be used, which is then reported."""
    before = findings.count
    value = to_json_value(raw, key_path, findings)
    if findings.count > before:
        return None
    if field == RESUME:
        return read_resume(value, key_path, findings)
    annotation = FIELD_TYPES[field]
    name = name_at(key_path)
    try:
        value = msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        if field in HEADERS:
            report_bad_headers(value, key_path, findings)
        else:
            findings.add(
                key_path, f"{name!r} must be {describe_type(annotation)}, not {describe_value(raw)}."
            )
        return None
    if isinstance(value, str) and not value.strip() and field not in MAY_BE_EMPTY:
        findings.add(key_path, f"{name!r} is empty.")
        return None
    problem = describe_value_problem(field, value)
    if problem is not None:
        findings.add(key_path, f"{name!r} {problem}")
        return None
    return value


def report_bad_headers(value: Any, key_path: KeyPath, findings: FileProblems) -> None:
    """What is wrong with a table of headers; a text that was put there may be a key, and is not repeated."""
    name = name_at(key_path)
    if not isinstance(value, dict):
        findings.add(key_path, f"{name!r} must be a table of texts, such as {{ X-Team = 'evals' }}.")
        return
    for key, each in value.items():
        if not isinstance(each, str):
            findings.add((*key_path, key), f"{key!r} in {name!r} must be a text, not {describe_value(each)}.")


def read_resume(value: Any, key_path: KeyPath, findings: FileProblems) -> str | None:
    if isinstance(value, bool):
        return LATEST if value else None
    if isinstance(value, str) and value.strip():
        return value
    findings.add(
        key_path, f"{name_at(key_path)!r} must be true or the folder of a run, not {describe_value(value)}."
    )
    return None


def read_header_lines(name: str, raw: Any, key_path: KeyPath, findings: FileProblems) -> dict[str, str]:
    """A list of 'Name: Value' lines, as --header takes them."""
    found: dict[str, str] = {}
    if not isinstance(raw, list):
        findings.add(key_path, f"{name!r} must be a list of 'Name: Value' lines, not {describe_value(raw)}.")
        return found
    for number, line in enumerate(raw):
        header = headers.parse_header(line) if isinstance(line, str) else None
        if header is None:
            findings.add((*key_path, number), f"{name!r} must hold 'Name: Value' lines, and this is none.")
            continue
        for problem in headers.find_problems(dict([header])):
            findings.add((*key_path, number), f"{name!r} cannot be sent: {problem}")
        found = headers.merge_headers(found, dict([header]))
    return found


def to_json_value(value: Any, key_path: KeyPath, findings: FileProblems) -> Any:
    """A value as JSON can hold it, because that is how it is kept: dates become texts."""
    if isinstance(value, dict):
        return {key: to_json_value(each, (*key_path, key), findings) for key, each in value.items()}
    if isinstance(value, list):
        return [to_json_value(each, (*key_path, number), findings) for number, each in enumerate(value)]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        findings.add(key_path, f"{name_at(key_path)!r} is {value}, and must be a finite number.")
    elif isinstance(value, int) and value not in INTEGER_RANGE:
        findings.add(key_path, f"{name_at(key_path)!r} is {value}, which is too large a number.")
    return value


def name_at(key_path: KeyPath) -> str:
    """The name a value goes by: that of its key, also for an element of a list."""
    return next((part for part in reversed(key_path) if isinstance(part, str)), "")


def unknown_field_message(name: str) -> str:
    known = [*FIELD_TYPES, RESUME, *SYNONYMS, *LINE_FIELDS]
    nearest = did_you_mean(name, known)
    if nearest.startswith("; known"):
        return f"unknown field {name!r}; `proctor eval run --help` lists the settings."
    return f"unknown field {name!r}{nearest}"


def describe_type(annotation: Any) -> str:
    """What a value of a type is called in a sentence."""
    kind = get_args(annotation)[0]
    if get_origin(kind) in (Union, types.UnionType):
        parts = [part for part in get_args(kind) if part is not types.NoneType]
        return 'a whole number or "auto"' if len(parts) > 1 else TYPE_DESCRIPTIONS[parts[0]]
    if get_origin(kind) is tuple:
        return "a list of texts"
    if get_origin(kind) is Mapping:
        return "a table of texts" if get_args(kind)[1] is str else "a table"
    return TYPE_DESCRIPTIONS[kind]


TYPE_DESCRIPTIONS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
