"""What a run takes from an earlier one, and what moved when it was scored again, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from proctor.cli.views import page
from proctor.cli.views.formatting import format_number, format_quantity
from proctor.cli.views.lines import BAD, DIM, DONE, Part, StyledLine, styled_line
from proctor.cli.views.page import TableColumn, cell, layout_table
from proctor.evaluation.evaluate import Result
from proctor.evaluation.reuse import Decision, ReusePlan
from proctor.evaluation.score_moves import ScoreMoves, TaskMove
from proctor.task import TaskId

WORDS = {"reuse": "reuse", "rescore": "re-score", "rerun": "re-run"}


# What still holds


def count_text(plan: ReusePlan) -> str:
    counted = plan.count()
    return ", ".join(f"{WORDS[action]} {count:,}" for action, count in counted.items())


def decision_lines(plan: ReusePlan, most: int | None, width: int | None) -> Iterator[StyledLine]:
    """The sums, and a line for all rollouts of a task that share their fate."""
    yield styled_line(f"Run {plan.origin.run_id}: {count_text(plan)} of {len(plan.decisions):,} rollouts")
    if plan.left_out:
        left_out = format_quantity(len(plan.left_out), "task")
        yield styled_line((f"{left_out} of the run not in this evaluation", DIM))
    groups = list(group_decisions(plan.decisions))
    yield styled_line("")
    columns = [
        TableColumn("task"),
        TableColumn("rollouts"),
        TableColumn("do"),
        TableColumn("why", may_shrink=True),
    ]
    rows = [
        [cell(task), cell(numbers_text(numbers)), cell(WORDS[action]), cell(reason)]
        for (task, action, reason), numbers in groups[:most]
    ]
    yield from layout_table(columns, rows, width)
    if most is not None and len(groups) > most:
        yield styled_line(
            (f"… {format_quantity(len(groups) - most, 'more line')}; --show -1 shows all.", DIM)
        )


def group_decisions(
    decisions: Sequence[Decision],
) -> Iterator[tuple[tuple[TaskId, str, str], list[int]]]:
    """Decisions of a task that are alike; what has to be done comes before what can be reused."""
    groups: dict[tuple[TaskId, str, str], list[int]] = {}
    for each in decisions:
        groups.setdefault((each.task, each.action, each.reason), []).append(each.rollout)
    order = {"rerun": 0, "rescore": 1, "reuse": 2}
    yield from sorted(groups.items(), key=lambda group: order[group[0][1]])


def numbers_text(numbers: Sequence[int]) -> str:
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    return ", ".join(map(str, numbers))


def reuse_document(plan: ReusePlan) -> dict[str, Any]:
    return {
        "origin": plan.origin,
        "counts": plan.count(),
        "left_out": plan.left_out,
        "rollouts": plan.decisions,
    }


# What moved


def moves_document(result: Result, plan: ReusePlan, moves: ScoreMoves) -> dict[str, Any]:
    return {
        "run": result.run,
        "folder": str(result.folder),
        "origin": plan.origin,
        "summary": result.summary,
        "moved": msgspec.to_builtins(moves),
    }


def show_moves(plan: ReusePlan, moves: ScoreMoves, most: int | None) -> None:
    page.print_lines(move_lines(plan, moves, most, page.page_width()))


def move_lines(
    plan: ReusePlan, moves: ScoreMoves, most: int | None, width: int | None
) -> Iterator[StyledLine]:
    yield styled_line(("Moved since run " + plan.origin.run_id, "strong"))
    yield styled_line(f"  {describe_moves(moves)}")
    if moves.before is not None and moves.after is not None:
        yield styled_line(
            f"  reward {format_number(moves.before)} → {format_number(moves.after)}{interval_text(moves)}"
        )
    if not moves.tasks:
        return
    yield styled_line("")
    columns = [
        TableColumn("task", may_shrink=True),
        TableColumn("before", right=True),
        TableColumn("after", right=True),
        TableColumn("change", right=True),
        TableColumn("rollouts moved"),
    ]
    rows = [move_row(move) for move in moves.tasks[:most]]
    yield from layout_table(columns, rows, width)
    if most is not None and len(moves.tasks) > most:
        yield styled_line(
            (f"… {format_quantity(len(moves.tasks) - most, 'more task')}; -n -1 shows all.", DIM)
        )


def describe_moves(moves: ScoreMoves) -> str:
    if not moves.moved:
        return f"none of {format_quantity(moves.rollouts, 'rollout')}: every reward is as it was"
    parts = [
        (moves.up, "up"),
        (moves.down, "down"),
        (moves.newly_scored, "scored now and not before"),
        (moves.no_longer_scored, "no longer scored"),
    ]
    counts = ", ".join(f"{count:,} {words}" for count, words in parts if count)
    tasks = format_quantity(len(moves.tasks), "task")
    return f"{moves.moved:,} of {format_quantity(moves.rollouts, 'rollout')} in {tasks}: {counts}"


def interval_text(moves: ScoreMoves) -> str:
    interval = None if moves.comparison is None else moves.comparison.interval
    if interval is None or moves.comparison is None or moves.comparison.diff is None:
        return ""
    low, high = format_signed(interval.low), format_signed(interval.high)
    return (
        f" ({format_signed(moves.comparison.diff)}, {interval.level:.0%} interval {low} – {high} over tasks)"
    )


def move_row(move: TaskMove) -> list[Part]:
    style = DONE if move.change > 0 else BAD if move.change < 0 else ""
    return [
        cell(move.task),
        cell("–" if move.before is None else format_number(move.before)),
        cell("–" if move.after is None else format_number(move.after)),
        cell(format_signed(move.change) if None not in (move.before, move.after) else "–", style),
        cell(f"{move.moved} of {move.rollouts}"),
    ]


def format_signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{format_number(value)}"
