"""The settings page as a table for the documentation."""

from __future__ import annotations

from typing import get_type_hints

import msgspec

from proctor.config.experiment import Evaluation, Experiment
from proctor.config.fields import FIELD_TYPES, LINE_FIELDS, RESUME, SYNONYMS
from proctor.config.schema import EvalConfig, HostedOptions, Presentation, RecipeOptions, meta_of


def settings_table() -> str:
    rows = ["| flag | in TOML | default | meaning |", "|---|---|---|---|"]
    for schema in (EvalConfig, Presentation, HostedOptions, RecipeOptions):
        hints = get_type_hints(schema, include_extras=True)
        for field in msgspec.structs.fields(schema):
            meta = meta_of(hints[field.name])
            flags, keys = flags_text(field.name, meta), toml_text(field.name)
            if flags or keys:
                rows.append(f"| {flags} | {keys} | {default_text(field)} | {meta.description} |")
    return "\n".join(rows) + "\n"


def recipe_table() -> str:
    """The fields of a recipe's first two sections."""
    rows = ["| section | field | default | meaning |", "|---|---|---|---|"]
    for section, schema in (("experiment", Experiment), ("evaluation", Evaluation)):
        hints = get_type_hints(schema, include_extras=True)
        for field in msgspec.structs.fields(schema):
            meaning = meta_of(hints[field.name]).description
            rows.append(f"| `[{section}]` | `{field.name}` | {default_text(field)} | {meaning} |")
    return "\n".join(rows) + "\n"


def flags_text(name: str, meta: msgspec.Meta) -> str:
    if name in ("env_id", "agent"):
        return "ENVIRONMENT" if name == "env_id" else "AGENT"
    words = [word for flag in (meta.extra or {})["flags"] for word in flag.split("/")]
    return ", ".join(f"`{word}`" for word in words)


def toml_text(name: str) -> str:
    """How a setting is called in a suite, all of its names; nothing for one that has no place there."""
    if name not in FIELD_TYPES and name != RESUME:
        return ""
    others = [other for other, field in (SYNONYMS | LINE_FIELDS).items() if field == name]
    return ", ".join(f"`{each}`" for each in [name, *others])


def default_text(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{field.default_factory()}`".replace("`{}`", "").replace("`()`", "")
    if field.default is msgspec.NODEFAULT:
        return "required"
    if field.default is None or field.default is False or field.default == ():
        return ""
    return f"`{field.default}`"
