"""What the columns of a dataset mean, and the task that a row becomes.

A file is in one of two modes. In *prompt* mode each row has a `user_prompt`, a `ground_truth` (or `label`)
and perhaps a `system_prompt`. A `metadata` column puts the whole file into *metadata* mode: each row has an
object there, and prompts and labels are optional. Knows nothing of file formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from proctor.datasets.files import DataRow
from proctor.errors import ConfigError, did_you_mean
from proctor.task import Task
from proctor.trace import Message

Mode = Literal["prompt", "metadata"]

USER_PROMPT = "user_prompt"
SYSTEM_PROMPT = "system_prompt"
METADATA = "metadata"
LABELS = ("ground_truth", "label")
COLUMNS = (USER_PROMPT, *LABELS, SYSTEM_PROMPT, METADATA)


def find_mode(columns: Iterable[str]) -> Mode:
    return "metadata" if METADATA in columns else "prompt"


def find_row_problems(values: Mapping[str, Any], mode: Mode) -> list[str]:
    """Why a row cannot become a task; empty if it can."""
    problems = [*find_prompt_problems(values, mode), *find_label_problems(values, mode)]
    if mode == "metadata":
        problem = read_metadata(values)[1]
        problems += [problem] if problem else []
    elif METADATA in values:
        problems.append("this row has 'metadata' and the first row has not; give it to every row or to none.")
    return problems


def find_prompt_problems(values: Mapping[str, Any], mode: Mode) -> Iterable[str]:
    for name in (USER_PROMPT, SYSTEM_PROMPT):
        value = values.get(name)
        if value is not None and not isinstance(value, str):
            yield f"{name!r} must be a text, not {type(value).__name__}."
    if mode == "prompt" and USER_PROMPT not in values:
        yield f"this row has no {USER_PROMPT!r}{suggest_column(USER_PROMPT, values)}"
    elif mode == "prompt" and (values[USER_PROMPT] is None or values[USER_PROMPT] == ""):
        yield f"{USER_PROMPT!r} is empty."


def find_label_problems(values: Mapping[str, Any], mode: Mode) -> Iterable[str]:
    given = [name for name in LABELS if values.get(name) is not None]
    if len(given) == 2 and values[LABELS[0]] != values[LABELS[1]]:
        yield "'ground_truth' and 'label' mean the same, but have different values; keep one of them."
    elif not given and mode == "prompt":
        yield f"this row has no {LABELS[0]!r} (or {LABELS[1]!r}){suggest_column(LABELS[0], values)}"


def suggest_column(name: str, values: Mapping[str, Any]) -> str:
    """The rest of a message about a missing column: the nearest name, or all of them."""
    return did_you_mean(name, [each for each in values if each not in COLUMNS])


def read_metadata(values: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The metadata of a row, an object or its JSON text, and what is wrong with it."""
    value = values.get(METADATA)
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            return {}, f"'metadata' is not valid JSON: {error}."
    if not isinstance(value, dict) or not value:
        given = "is missing" if value is None else "is empty" if value == {} else "is not an object"
        return {}, f"'metadata' {given}; every row needs an object with at least one key."
    return value, ""


def build_task(row: DataRow, mode: Mode, where: str) -> Task:
    """The task of a row; its id is the row's index. `where` names the file."""
    values = row.values
    problems = find_row_problems(values, mode)
    if problems:
        raise ConfigError(f"{where}:{row.line}: {' '.join(problems)}")
    label = next((values[name] for name in LABELS if values.get(name) is not None), None)
    return Task(
        id=row.index,
        prompt=build_prompt(values),
        answer=label,
        info=read_metadata(values)[0] if mode == "metadata" else {},
    )


def build_prompt(values: Mapping[str, Any]) -> tuple[Message, ...]:
    given = (("system", values.get(SYSTEM_PROMPT)), ("user", values.get(USER_PROMPT)))
    return tuple({"role": role, "content": text} for role, text in given if text)


def list_ignored_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """Columns that have no meaning; the file may hold them."""
    return tuple(name for name in columns if name not in COLUMNS)
