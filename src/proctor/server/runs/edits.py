"""What people write about a run: its name, note and tags, and the number of that revision.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, update

from proctor.api.runs import MOST_TAGS, RunEdit, RunTexts
from proctor.server.db.tables import runs
from proctor.server.names import LINES, check_name, check_text
from proctor.server.problems import ConflictError, InvalidError
from proctor.server.runs import queue


def check_edit(edit: RunEdit) -> None:
    """What can be rejected without any lookup."""
    if edit.name is not None:
        check_name(edit.name, "name")
    if edit.note is not None:
        check_text(edit.note, "note", longest=len(edit.note), allowed=LINES)
    for field, tags in (("add_tags", edit.add_tags), ("remove_tags", edit.remove_tags)):
        for tag in tags:
            check_tag(tag, field)


def check_tag(tag: str, field: str) -> None:
    check_name(tag, field)
    if tag != tag.strip() or not tag:
        raise InvalidError(f"The tag {tag!r} begins or ends with a space; remove it.", field=field)


def edit_run(connection: Connection, run_id: str, edit: RunEdit, editor: str, now: float) -> None:
    """Store an edit; one that changes nothing makes no revision."""
    row = queue.lock_run(connection, run_id)
    asked = {"name": edit.name, "note": edit.note}
    values: dict[str, Any] = {
        name: text for name, text in asked.items() if text is not None and text != getattr(row, name)
    }
    refuse_stale(row, list(values), edit.before)
    tags = merge_tags(row.tags or [], edit.add_tags, edit.remove_tags)
    if tags != (row.tags or []):
        values["tags"] = tags
    if values:
        values["editors"] = {**(row.editors or {}), **dict.fromkeys(values, editor)}
        connection.execute(update(runs).where(runs.c.id == run_id).values(values))
        add_revision(connection, run_id, now)


def refuse_stale(row: Row[Any], fields: Sequence[str], seen: RunTexts | None) -> None:
    """Refuse to replace a text that is not the one that was seen."""
    for field in fields:
        text = None if seen is None else getattr(seen, field)
        current = getattr(row, field)
        if text is not None and text != current:
            by = (row.editors or {}).get(field, row.owner)
            now_it_is = f" to {current!r}" if field == "name" else ""
            raise ConflictError(
                f"{by} changed the {field}{now_it_is} meanwhile; look at it, and save again.",
                code="changed_meanwhile",
                field=field,
                current=current,
                by=by,
            )


def merge_tags(current: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> list[str]:
    left = [tag for tag in current if tag not in removed]
    merged = list(dict.fromkeys([*left, *(tag for tag in added if tag not in removed)]))
    if len(merged) > MOST_TAGS:
        raise InvalidError(f"A run may have at most {MOST_TAGS} tags; remove some first.", field="add_tags")
    return merged


def add_revision(connection: Connection, run_id: str, now: float) -> None:
    """Count a change, so that followers see it."""
    change = {"revision": runs.c.revision + 1, "edited_at": now}
    connection.execute(update(runs).where(runs.c.id == run_id).values(change))
