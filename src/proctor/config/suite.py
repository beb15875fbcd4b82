"""A suite: one TOML file that names many evaluations, one by one or as sweeps.

    model = "openai/gpt-4.1-mini"       # for all that do not say otherwise

    [[eval]]
    env_id = "gsm8k"

    [[ablation]]
    env_id = "my-env"
    [ablation.sweep]
    temperature = [0.0, 0.5, 1.0]

A block wins over the top of the file. All problems are reported at once, with their lines. Knows
nothing of environments, endpoints or runs: it turns words into the words of single evaluations.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.config import headers
from proctor.config.fields import (
    HEADERS,
    HOSTED_FIELDS,
    PRESENTATION_FIELDS,
    RESUME,
    SETTING_FIELDS,
    FieldValues,
    read_fields,
)
from proctor.config.schema import LATEST
from proctor.config.sources import long_flag
from proctor.config.sweep import (
    MOST_COMBINATIONS,
    Axis,
    AxisValue,
    build_label,
    count_combinations,
    iterate_combinations,
    read_axes,
)
from proctor.config.toml_file import FileProblems, KeyPath, TomlFile, describe_value, read_toml
from proctor.errors import ConfigError

BLOCKS = ("eval", "ablation")
ADDRESS_FIELDS = ("provider", "api_base_url", "api_key_var", "api_client_type")
HOSTED_FIELD = "hosted"
SUITE_DEFAULTS = {"save_results": True}


class SuiteEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One requested evaluation."""

    given: dict[str, Any]
    """Settings of EvalConfig; those left out come from the environment's package, or are built in."""
    origins: dict[str, str] = {}
    """Where each setting stands, where that is a file."""
    resume: str | None = None
    """The folder of a run, or 'latest'."""
    hosted: dict[str, Any] = {}
    """Options for running it on a server."""
    line: int = 0


class Suite(msgspec.Struct, frozen=True):
    """All evaluations of a file, in order, and how to show them."""

    path: Path
    entries: tuple[SuiteEntry, ...]
    presentation: dict[str, Any] = {}
    hosted: bool = False
    """The file itself asks for a hosted run."""


class SuiteBlock(msgspec.Struct, frozen=True):
    """One [[eval]] or [[ablation]]."""

    at: KeyPath
    fields: FieldValues
    axes: tuple[Axis, ...] = ()


def read_suite(path: Path) -> Suite:
    """Read every evaluation in a file; any mistake rejects the whole file."""
    file = read_toml(path)
    findings = FileProblems(file)
    top = read_top_level(file, findings)
    blocks = list(read_blocks(file, top, findings))
    presentation = read_presentation([top, *(block.fields for block in blocks)], findings)
    check_resume_folders(blocks, top, findings)
    findings.raise_any()
    entries = [entry for block in blocks for entry in expand_block(block, top, file)]
    return Suite(path, number_duplicates(entries), presentation, presentation.pop(HOSTED_FIELD, False))


def parse_environments(given: Mapping[str, Any]) -> tuple[SuiteEntry, ...]:
    """What the command line asks for: one evaluation for each environment in a list with commas."""
    words: str = given["env_id"]
    ids = [words] if is_path(words) else [each.strip() for each in words.split(",") if each.strip()]
    if not ids:
        raise ConfigError(f"{words!r} names no environment.")
    return number_duplicates([SuiteEntry(given={**given, "env_id": env_id}) for env_id in ids])


def ignored_flags(given: Mapping[str, Any], suite: Suite) -> list[str]:
    """The settings flags that have no effect with a suite, unless the suite has the same value."""
    return [
        long_flag(name)
        for name, value in given.items()
        if name != "env_id" and not all(entry.given.get(name) == value for entry in suite.entries)
    ]


# Reading


def read_top_level(file: TomlFile, findings: FileProblems) -> FieldValues:
    top = {name: value for name, value in file.data.items() if name not in BLOCKS}
    for name in [name for name, value in top.items() if is_misspelt_block(name, value)]:
        findings.add(
            (name,), f"[[{name}]] is not a block of a suite; did you mean [[{nearest_block(name)}]]?"
        )
        del top[name]
    if "name" in top:
        findings.add(("name",), "'name' is one evaluation's; write it into its block.")
    return read_fields(top, (), findings)


def is_misspelt_block(name: str, value: Any) -> bool:
    is_block = isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
    return is_block and nearest_block(name) is not None


def nearest_block(name: str) -> str | None:
    near = difflib.get_close_matches(name.lower(), (*BLOCKS, "evaluation"), n=1, cutoff=0.6)
    return None if not near else "eval" if near[0] == "evaluation" else near[0]


def read_blocks(file: TomlFile, top: FieldValues, findings: FileProblems) -> Iterator[SuiteBlock]:
    """The blocks in the order of the file."""
    misspelt = any(is_misspelt_block(name, value) for name, value in file.data.items())
    if not misspelt and not any(name in file.data for name in BLOCKS):
        findings.add((), "this suite has no evaluation; add an [[eval]] or [[ablation]] block.")
    found = [
        (kind, (kind, number), table)
        for kind in BLOCKS
        for number, table in enumerate(read_block_tables(kind, file, findings))
    ]
    for kind, at, table in sorted(found, key=lambda each: file.line_of(each[1])):
        block = read_block(kind, at, table, findings)
        check_block(block, kind, top, findings)
        yield block


def read_block_tables(kind: str, file: TomlFile, findings: FileProblems) -> list[dict[str, Any]]:
    blocks = file.data.get(kind, [])
    if isinstance(blocks, dict):
        findings.add((kind,), f"[{kind}] is one table; write [[{kind}]], with two brackets.")
        return []
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        findings.add(
            (kind,), f"{kind!r} must be blocks of the form [[{kind}]], not {describe_value(blocks)}."
        )
        return []
    if not blocks and kind in file.data:
        findings.add((kind,), f"{kind!r} is an empty list; write [[{kind}]] blocks.")
    return blocks


def read_block(kind: str, at: KeyPath, table: dict[str, Any], findings: FileProblems) -> SuiteBlock:
    if kind == "eval":
        return SuiteBlock(at, read_fields(table, at, findings))
    fixed = {name: value for name, value in table.items() if name != "sweep"}
    axes = read_axes(table.get("sweep"), (*at, "sweep"), findings)
    return SuiteBlock(at, read_fields(fixed, at, findings), tuple(axes))


def check_block(block: SuiteBlock, kind: str, top: FieldValues, findings: FileProblems) -> None:
    fixed, swept = block.fields.values, {axis.name: axis for axis in block.axes}
    if not any("env_id" in names for names in (fixed, swept, top.values)):
        findings.add(block.at, f"this [[{kind}]] names no environment; add env_id.")
    if len({"model", "endpoint_id"} & (fixed.keys() | swept.keys())) == 2:
        findings.add(block.at, "'endpoint_id' and 'model' exclude each other; an endpoint has its model.")
    for axis in block.axes:
        check_axis_not_fixed(axis, block.fields, findings)
        check_axis_has_effect(axis, fixed.get("sampling_args", top.values.get("sampling_args")), findings)
    if count_combinations(block.axes) > MOST_COMBINATIONS:
        findings.add(
            (*block.at, "sweep"),
            f"this sweep has {count_combinations(block.axes):,} combinations, "
            f"more than {MOST_COMBINATIONS:,}.",
        )


def check_axis_not_fixed(axis: Axis, fixed: FieldValues, findings: FileProblems) -> None:
    """A block cannot sweep a field that it also fixes."""
    value = fixed.values.get(axis.field)
    is_fixed = axis.field in fixed.values if axis.key is None else axis.key in (value or {})
    if is_fixed:
        line = findings.file.line_of(fixed.key_paths[axis.field])
        findings.add(
            axis.key_path, f"{axis.name!r} is swept here and fixed in line {line}; keep one of them."
        )


def check_axis_has_effect(axis: Axis, sampling: Mapping[str, Any] | None, findings: FileProblems) -> None:
    """sampling_args wins over the fields of the same name, so a sweep of those would change nothing."""
    if axis.name in ("temperature", "max_tokens") and axis.name in (sampling or {}):
        findings.add(
            axis.key_path,
            f"{axis.name!r} is swept here, but sampling_args fixes it, and wins; take it out there.",
        )


def read_presentation(tables: Sequence[FieldValues], findings: FileProblems) -> dict[str, Any]:
    """How the suite is shown; it is shown in one way."""
    values: dict[str, Any] = {}
    key_paths: dict[str, KeyPath] = {}
    for fields in tables:
        for name in (PRESENTATION_FIELDS.keys() | {HOSTED_FIELD}) & fields.values.keys():
            value, key_path = fields.values[name], fields.key_paths[name]
            if values.setdefault(name, value) != value:
                line = findings.file.line_of(key_paths[name])
                findings.add(
                    key_path, f"{name!r} applies to the whole suite, but line {line} says otherwise."
                )
            key_paths.setdefault(name, key_path)
    return values


def check_resume_folders(blocks: Sequence[SuiteBlock], top: FieldValues, findings: FileProblems) -> None:
    """A folder holds one run, so only one evaluation can continue it."""
    taken: set[str] = set()
    for block in blocks:
        folder = block.fields.values.get(RESUME, top.values.get(RESUME))
        if folder is None or folder == LATEST:
            continue
        if folder in taken or count_combinations(block.axes) > 1:
            findings.add(block.at, f"several evaluations would resume {folder}, which holds one run.")
        taken.add(folder)


# Expanding


def expand_block(block: SuiteBlock, top: FieldValues, file: TomlFile) -> Iterator[SuiteEntry]:
    """A block as single evaluations: one, or one for each combination of a sweep."""
    for combination in iterate_combinations(block.axes):
        fields = merge_fields(top, apply_choices(block.fields, combination, top))
        settings = {
            **SUITE_DEFAULTS,
            **{name: fields.values[name] for name in fields.values if name in SETTING_FIELDS},
        }
        origins = dict.fromkeys(SUITE_DEFAULTS, f"default of the suite {file.path}")
        origins |= {
            name: file.locate(fields.key_paths[name]) for name in settings if name in fields.key_paths
        }
        if "endpoints_path" in settings:
            settings["endpoints_path"] = resolve_beside(file.path, settings["endpoints_path"])
        label = build_label(combination, settings.get("name"))
        if label:
            settings["label"] = label
            origins["label"] = file.locate((*block.at, "sweep"))
        yield SuiteEntry(
            given=settings,
            origins=origins,
            resume=fields.values.get(RESUME),
            hosted={
                name: value
                for name, value in fields.values.items()
                if name in HOSTED_FIELDS and name != HOSTED_FIELD
            },
            line=file.line_of(block.at),
        )


def apply_choices(fixed: FieldValues, combination: Sequence[AxisValue], top: FieldValues) -> FieldValues:
    """A block's settings once every swept field has its value."""
    values, key_paths = dict(fixed.values), dict(fixed.key_paths)
    for choice in combination:
        axis = choice.axis
        if axis.key is None:
            values[axis.field] = choice.value
        else:
            around = values.get(axis.field, top.values.get(axis.field, {}))
            values[axis.field] = {**around, axis.key: choice.value}
        key_paths[axis.field] = choice.key_path
    return FieldValues(values, key_paths)


def merge_fields(outer: FieldValues, inner: FieldValues) -> FieldValues:
    """The inner table's fields, and the outer one's where it has none. Headers are joined."""
    dropped = {"endpoint_id"} if "model" in inner.values else set()
    if "endpoint_id" in inner.values:
        dropped = {"model", *ADDRESS_FIELDS}
    values = {name: value for name, value in outer.values.items() if name not in dropped} | inner.values
    for name in HEADERS:
        if name in values:
            values[name] = headers.merge_headers(outer.values.get(name, {}), inner.values.get(name, {}))
    return FieldValues(values, outer.key_paths | inner.key_paths)


def number_duplicates(entries: Sequence[SuiteEntry]) -> tuple[SuiteEntry, ...]:
    """No two evaluations are called the same: the second one gets a number."""
    seen: Counter[tuple[Any, ...]] = Counter()
    distinct: list[SuiteEntry] = []
    for entry in entries:
        given = entry.given
        label = given.get("label", "")
        name = (given.get("name") or given["env_id"], given.get("model"), given.get("endpoint_id"), label)
        seen[name] += 1
        if seen[name] > 1:
            entry = replace(
                entry,
                given={**given, "label": f"{label} #{seen[name]}".strip()},
                origins={**entry.origins, "label": "made, because another is called the same"},
            )
        distinct.append(entry)
    return tuple(distinct)


def resolve_beside(file: Path, path: str) -> str:
    """A path that a file names, seen from where we are."""
    return str(file.parent / Path(path).expanduser())


def is_path(words: str) -> bool:
    try:
        return Path(words).expanduser().exists()
    except (OSError, RuntimeError):  # too long for a path, or no such user's home
        return False
