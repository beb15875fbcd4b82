"""The design of an evaluation as text: a table of ways, and what buys more."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import format_dollars, format_quantity, format_short_number
from proctor.cli.views.lines import DIM, DONE, STRONG, WARN, Part, StyledLine, styled_line
from proctor.cli.views.page import TableColumn, layout_paragraph, layout_table
from proctor.comparison.design import DesignGoal, DesignRow, EvaluationDesign, Pilot

INDENT = "  "


def design_lines(design: EvaluationDesign, width: int | None) -> Iterator[StyledLine]:
    yield styled_line((describe_goal(design.goal), STRONG))
    yield from layout_paragraph(describe_pilot(design.pilot), width, style=DIM)
    yield styled_line()
    yield from table_lines(design, width)
    yield styled_line()
    for sentence in advise(design):
        yield from layout_paragraph(sentence, width)


def describe_goal(goal: DesignGoal) -> str:
    level = f"{goal.level:.4g}"
    match goal.kind:
        case "halfwidth":
            return f"To know the mean reward to within ±{goal.amount:g} (interval at level {level})"
        case "difference":
            return (
                f"To find a true difference of {goal.amount:g} in {goal.power:.0%} of cases "
                f"(test at {1 - goal.level:.2g})"
            )
        case "budget":
            return f"What {format_dollars(goal.amount)} can show"
        case _:
            return f"What {format_quantity(int(goal.amount), 'rollout')} can show"


def describe_pilot(pilot: Pilot) -> str:
    text = (
        f"From {one_line(', '.join(pilot.runs))}: {format_quantity(pilot.tasks, 'task')}, "
        f"{format_quantity(pilot.rollouts, 'rollout')}, reward {format_short_number(pilot.mean)}; variance "
    )
    if pilot.between is None or pilot.within is None:
        text += f"{format_short_number(pilot.task_variance)}"
    else:
        text += (
            f"{format_short_number(pilot.between)} between tasks and {format_short_number(pilot.within)} "
            f"between rollouts of a task"
        )
    if pilot.against:
        text += f"; differences measured against {one_line(', '.join(pilot.against))}"
    if pilot.cost.usd is not None:
        text += f"; {format_dollars(pilot.cost.usd)} a rollout"
    return f"{text}."


def table_lines(design: EvaluationDesign, width: int | None) -> Iterator[StyledLine]:
    if not design.rows:
        yield styled_line(INDENT, ("Not even two tasks fit.", WARN))
        return
    columns = [
        TableColumn("rollouts each", right=True),
        TableColumn("tasks", right=True),
        TableColumn("rollouts", right=True),
        TableColumn("cost", right=True),
        TableColumn("interval", right=True),
        TableColumn("finds", right=True),
        TableColumn(""),
    ]
    rows = [row_cells(row, index == design.cheapest, design.goal) for index, row in enumerate(design.rows)]
    room = None if width is None else width - len(INDENT)
    yield from (styled_line(INDENT) + line for line in layout_table(columns, rows, room))


def row_cells(row: DesignRow, is_best: bool, goal: DesignGoal) -> list[Part]:
    tasks = f"{row.tasks:,}"
    if row.fewest_tasks is not None and row.most_tasks is not None:
        tasks += f" ({row.fewest_tasks:,}–{row.most_tasks:,})"
    note: Part = ("", "")
    if not row.enough_tasks:
        note = (f"there are {goal.most_tasks:,} tasks", WARN)
    elif is_best:
        is_need = goal.kind in ("halfwidth", "difference")
        note = ("fewest rollouts" if is_need else "most precise", DONE)
    return [
        (f"{row.rollouts_per_task:,}", STRONG if is_best else ""),
        (tasks, STRONG if is_best else ""),
        (f"{row.rollouts:,}", ""),
        ("?" if row.cost_usd is None else format_dollars(row.cost_usd), ""),
        (f"±{format_short_number(row.halfwidth)}", ""),
        (f"±{format_short_number(row.smallest_difference)}", ""),
        note,
    ]


def advise(design: EvaluationDesign) -> Iterator[str]:
    """What buys more, and how far to believe the table."""
    pilot = design.pilot
    gain = design.twice_the_rollouts
    if gain is None:
        yield (
            "The pilot has one rollout per task, so nothing tells whether more rollouts would help; run one "
            "with -r 2 or more."
        )
    else:
        yield (
            f"For the same money, twice the tasks narrow the interval by {design.twice_the_tasks:.0%}, and "
            f"twice the rollouts per task by {gain:.0%}."
        )
    if not pilot.against:
        how = "taken as independent" if gain is None else f"correlation {design.goal.correlation:g}"
        yield (
            f"'finds' is the difference that a comparison of two such runs finds in {design.goal.power:.0%} "
            f"of cases. How the scores of the two models correlate is assumed ({how}); --against RUN "
            f"measures it."
        )
    if any(row.fewest_tasks is not None for row in design.rows):
        yield (
            f"In brackets: what the pilot's {pilot.tasks:,} tasks leave open about the variance (80% range)."
        )
