"""Runs against runs as Markdown: for a pull request, an issue or a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.cli.views.comparison import (
    ComparedPair,
    RunComparisons,
    format_interval,
    format_optional,
    format_p,
    format_signed,
    name_side,
    notes_of,
)
from proctor.cli.views.escape import one_line
from proctor.comparison.measure import MeasureComparison
from proctor.comparison.wording import VERDICTS

LISTED_TASKS = 10
HEADS = ("", "baseline", "candidate", "difference", "interval", "p", "won/tied/lost", "could see", "verdict")


def comparison_markdown(compared: RunComparisons) -> str:
    parts = ["\n".join(pair_markdown(pair)) for pair in compared.pairs]
    for side, names in (("baseline", compared.only_baseline), ("candidate", compared.only_candidate)):
        if names:
            parts.append(f"Only the {side} has {', '.join(map(escape_markdown, names))}.")
    return "\n\n".join(parts) + "\n"


def pair_markdown(pair: ComparedPair) -> Iterator[str]:
    each = pair.comparison
    environment = each.candidate.runs[0].environment if each.candidate.runs else ""
    yield f"### {escape_markdown(environment)}: {escape_markdown(name_side(each.candidate))}"
    yield ""
    yield f"Against {escape_markdown(name_side(each.baseline))}: **{escape_markdown(each.text)}**"
    if each.equivalence is not None:
        yield ""
        yield f"Margin {each.equivalence.margin:g}: **{escape_markdown(each.equivalence.text)}**"
    yield ""
    yield from markdown_table(HEADS, [measure_row(m) for m in (each.reward, *each.members, *each.metrics)])
    notes = list(notes_of(each))
    if notes:
        yield ""
        yield from (f"- {escape_markdown(note)}" for note in notes)
    yield from task_markdown(pair)


def measure_row(measure: MeasureComparison) -> Sequence[str]:
    least = measure.smallest_detectable
    return (
        measure.member or measure.name,
        format_optional(measure.baseline),
        format_optional(measure.candidate),
        format_signed(measure.difference),
        format_interval(measure.interval),
        format_p(measure.p_adjusted),
        f"{measure.wins:,}/{measure.ties:,}/{measure.losses:,}",
        "–" if least is None else f"±{least:.3f}",
        VERDICTS[measure.verdict],
    )


def task_markdown(pair: ComparedPair) -> Iterator[str]:
    each = pair.comparison
    flipped = [task for task in each.tasks if task.flip != "none"][:LISTED_TASKS]
    if not flipped:
        return
    counts = each.differing_tasks
    yield ""
    yield f"<details><summary>{counts.lost:,} tasks lost, {counts.won:,} won</summary>"
    yield ""
    rows = [
        (
            task.flip,
            str(task.task),
            f"{task.baseline:.3f} → {task.candidate:.3f}",
            f"`{pair.trace_diff(task)}`",
        )
        for task in flipped
    ]
    yield from markdown_table(("", "task", "reward", "look at it"), rows)
    yield ""
    yield "</details>"


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(map(escape_markdown, row))} |"


def escape_markdown(text: str) -> str:
    """One line in which nothing from outside breaks a table or becomes a tag."""
    return one_line(text).replace("|", "\\|").replace("<", "&lt;")
