"""A rollout as its human grader sees it: what was asked and answered, and nothing that could bias them."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.cli.views.lines import DIM, StyledLine, styled_line
from proctor.cli.views.page import layout_paragraph
from proctor.store.export import format_message, to_text
from proctor.store.replay import StoredRow


def rollout_lines(row: StoredRow, width: int | None, *, with_answer: bool) -> Iterator[StyledLine]:
    """The conversation and the dataset's answer: no model, no score, no id."""
    yield styled_line(("─" * min(width or 80, 80), DIM))
    for message in (*row.prompt, *row.completion):
        if isinstance(message, dict):
            yield styled_line((f"{message.get('role', '?')}", "strong"))
            yield from layout_paragraph(format_message(message), width, indent="  ", full=True)
    if with_answer and row.answer not in (None, ""):
        yield styled_line(("answer in the dataset", DIM))
        yield from layout_paragraph(to_text(row.answer) or "", width, indent="  ", full=True)
    yield styled_line("")
