"""Several finished evaluations side by side, as a table that fits the screen.

A line for each in the order they were asked for; where the screen is narrow, columns go by what they tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import (
    format_counts,
    format_dollars,
    format_duration,
    format_number,
    format_short_count,
)
from proctor.cli.views.lines import text_width
from proctor.cli.views.printing import open_console, prices_text
from proctor.cli.views.suite_rows import (
    SuiteRow,
    find_best_rows,
    find_swept_keys,
    parse_label,
    sum_totals,
)
from proctor.evaluation.evaluate import Result

GAP = 2
WHOLE_NAME = 20
"""Names up to this long are not broken while there is another column to leave out."""
SHORTEST_NAME = 8
BEST = "* best on its environment: its interval lies above those of all the others."
TOO_LITTLE = "! no verdict: fewer rollouts were scored than the minimum coverage requires."
SHOWN_ERRORS = 8
GO_ON = "Continue with the same command and --resume: finished rollouts are not played again."

NEVER_DROPPED = 0
"""The rank of what is never left out; the highest rank goes first."""


class SuiteColumn(msgspec.Struct, frozen=True):
    """One column: its heading, its cells, and how soon it is left out."""

    heading: str
    cells: list[str]
    rank: int = NEVER_DROPPED
    is_name: bool = False

    @property
    def width(self) -> int:
        return max(map(text_width, (self.heading, *self.cells)))

    @property
    def least_width(self) -> int:
        return min(self.width, WHOLE_NAME) if self.is_name else self.width


def show_suite(rows: Sequence[SuiteRow]) -> None:
    with open_console() as console:
        write_suite(console, rows)


def write_suite(console: Console, rows: Sequence[SuiteRow]) -> None:
    columns = [column for column in build_columns(rows) if any(column.cells)]
    fitting = drop_columns_to_fit(columns, console.width)
    for column in columns:
        if column.is_name and column not in fitting:
            console.print(Text.assemble((f"{column.heading} ", "dim"), column.cells[0]))
    console.print(build_table(fitting, rows, console.width))
    console.print()
    if find_best_rows(rows):
        console.print(Text(BEST, style="dim"))
    if any(lacks_coverage(row) for row in rows):
        console.print(Text(TOO_LITTLE, style="dim"))
    console.print(Text(total_text(rows)))
    for row in rows:
        if row.status == "failed":
            console.print(failure_text(row))
    for line in error_lines(rows):
        console.print(line)
    if any(row.status in ("failed", "stopped") for row in rows):
        console.print(Text(GO_ON, style="yellow"))
    for base in list_base_folders(rows):
        console.print(Text(f"Kept in {base}", style="dim"), soft_wrap=True)


# The columns


def build_columns(rows: Sequence[SuiteRow]) -> list[SuiteColumn]:
    best = find_best_rows(rows)
    rewards = [reward_text(row, index in best) for index, row in enumerate(rows)]
    return [
        *name_columns(rows),
        SuiteColumn("reward", rewards),
        result_column(rows, "interval", 1, interval_text),
        SuiteColumn("coverage", [coverage_text(row) for row in rows]),
        *pass_columns(rows),
        result_column(rows, "errors", 2, errors_text),
        result_column(rows, "tokens", 7, tokens_text),
        result_column(rows, "cost", 3, cost_text),
        result_column(rows, "time", 8, time_text),
    ]


def name_columns(rows: Sequence[SuiteRow]) -> list[SuiteColumn]:
    keys = find_swept_keys(rows)
    named = {"environment": [row.name for row in rows], "model": [row.model for row in rows]}
    if keys:
        named |= {key: [parse_label(row.label)[key] for row in rows] for key in keys}
    else:
        named["label"] = [row.label for row in rows]
    shared = [len(set(cells)) == 1 for cells in named.values()]
    return [
        SuiteColumn(one_line(heading), [one_line(cell) for cell in cells], shared_rank(same, shared), True)
        for (heading, cells), same in zip(named.items(), shared, strict=True)
    ]


def shared_rank(same: bool, shared: Sequence[bool]) -> int:
    """A name that all rows share may as well stand above the table, unless they share them all."""
    return 9 if same and not all(shared) else NEVER_DROPPED


def result_column(
    rows: Sequence[SuiteRow], heading: str, rank: int, text: Callable[[Result], str]
) -> SuiteColumn:
    return SuiteColumn(heading, ["" if row.result is None else text(row.result) for row in rows], rank)


def pass_columns(rows: Sequence[SuiteRow]) -> list[SuiteColumn]:
    """pass@1 and pass^k for the most rollouts that a task had."""
    most = {k for row in rows if row.result is not None and (k := largest_pass_k(row.result))}
    heading = f"pass^{most.pop()}" if len(most) == 1 else "pass^k"

    def every_one(result: Result) -> str:
        k = largest_pass_k(result)
        value = "" if k is None else format_number(result.summary.pass_hat_k[k])
        return f"{value} k={k}" if k is not None and heading == "pass^k" else value

    return [
        result_column(rows, "pass@1", 5, lambda result: format_optional(result.summary.pass_at_k.get("1"))),
        result_column(rows, heading, 6, every_one),
    ]


def largest_pass_k(result: Result) -> str | None:
    return max(result.summary.pass_hat_k, key=int, default=None)


def format_optional(value: float | None) -> str:
    return "" if value is None else format_number(value)


def reward_text(row: SuiteRow, is_best: bool) -> str:
    """With room for the mark, so that the digits align."""
    if row.result is None:
        return "failed "
    mean = row.result.summary.reward.mean
    return ("none" if mean is None else format_number(mean)) + ("*" if is_best else " ")


def interval_text(result: Result) -> str:
    interval = result.summary.reward.interval
    return "" if interval is None else f"{format_number(interval.low)} – {format_number(interval.high)}"


def coverage_text(row: SuiteRow) -> str:
    if row.result is None:
        return ""
    coverage = row.result.summary.coverage
    share = "?" if coverage is None else f"{math.floor(coverage * 1000) / 10:g}%"
    return share + ("!" if lacks_coverage(row) else " ")


def lacks_coverage(row: SuiteRow) -> bool:
    if row.result is None:
        return False
    coverage = row.result.summary.coverage
    return coverage is None or coverage < row.min_coverage


def errors_text(result: Result) -> str:
    summary = result.summary
    failed = summary.finished - summary.scored - summary.outcomes.get("excluded", 0)
    return f"{failed:,}" if failed else ""


def tokens_text(result: Result) -> str:
    return format_short_count(result.summary.usage.input_tokens + result.summary.usage.output_tokens)


def cost_text(result: Result) -> str:
    cost = result.summary.cost_usd
    return "" if cost is None else format_dollars(cost)


def time_text(result: Result) -> str:
    run = result.run
    return format_duration((run.ended_at or run.started_at) - run.started_at)


# Making it fit


def drop_columns_to_fit(columns: Sequence[SuiteColumn], width: int) -> list[SuiteColumn]:
    """The columns that there is room for; which names may then be broken into lines, the table decides."""
    columns = list(columns)
    for spare in sorted((each for each in columns if each.rank), key=lambda each: -each.rank):
        if sum(each.least_width for each in columns) + GAP * (len(columns) - 1) > width:
            columns.remove(spare)
    return columns


def compute_widths(columns: Sequence[SuiteColumn], width: int) -> list[int]:
    """As wide as their cells; what is too much is taken from the widest names."""
    widths = [column.width for column in columns]
    for _ in range(max(0, sum(widths) + GAP * (len(widths) - 1) - width)):
        names = [index for index, column in enumerate(columns) if column.is_name]
        widest = max(names, key=widths.__getitem__)
        if widths[widest] <= SHORTEST_NAME:
            break
        widths[widest] -= 1
    return widths


def build_table(columns: Sequence[SuiteColumn], rows: Sequence[SuiteRow], width: int) -> Table:
    table = Table.grid(padding=(0, GAP, 0, 0))
    for column, columns_wide in zip(columns, compute_widths(columns, width), strict=True):
        justify = "left" if column.is_name else "right"
        table.add_column(width=columns_wide, justify=justify, overflow="fold")  # type: ignore[arg-type]
    table.add_row(*(Text(column.heading, style="dim") for column in columns))
    for index, row in enumerate(rows):
        table.add_row(*(Text(column.cells[index], style=cell_style(column, row)) for column in columns))
    return table


def cell_style(column: SuiteColumn, row: SuiteRow) -> str:
    if column.is_name:
        return ""
    match column.heading:
        case "reward":
            return "red" if row.status == "failed" else "bold"
        case "coverage":
            return "red" if lacks_coverage(row) else ""
        case "errors":
            return "red"
        case _:
            return ""


# Beneath it


def total_text(rows: Sequence[SuiteRow]) -> str:
    total = sum_totals(rows)
    ended = format_counts(total.runs)
    usage = total.usage
    text = f"{len(rows)} runs ({ended}): {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    if total.cost_usd is None:
        return text
    without = f", without {total.unpriced_runs} of unknown price" if total.unpriced_runs else ""
    priced = [row for row in rows if row.result is not None and row.result.summary.cost_usd is not None]
    prices = prices_text(
        own=any(row.own_price for row in priced), listed=not all(row.own_price for row in priced)
    )
    return f"{text}, {format_dollars(total.cost_usd)} {prices}{without}"


def row_title(row: SuiteRow) -> str:
    return one_line(" ".join(part for part in (f"{row.name} · {row.model}", row.label) if part))


def failure_text(row: SuiteRow) -> Text:
    text = Text(f"Failed: {row_title(row)}", style="red")
    if row.reason:
        text.append(f": {one_line(row.reason)}")
    return text


def error_lines(rows: Sequence[SuiteRow]) -> list[Text]:
    """The most frequent error of each run that has any, so that you need not open a file to see it."""
    failing = [row for row in rows if row.result is not None and row.result.summary.errors]
    lines = [
        Text.assemble(
            (f"{row_title(row)}: {group.count:,} × {group.outcome}", "red"), f": {one_line(group.sample)}"
        )
        for row in failing[:SHOWN_ERRORS]
        if row.result is not None
        for group in row.result.summary.errors[:1]
    ]
    more = len(failing) - SHOWN_ERRORS
    return [*lines, Text(f"and errors in {more} more runs")] if more > 0 else lines


def list_base_folders(rows: Sequence[SuiteRow]) -> list[str]:
    """The folders under which the runs lie, each once: a run's own is two levels further down."""
    folders = [row.result.folder for row in rows if row.result is not None]
    return list(dict.fromkeys(str(folder.parent.parent) for folder in folders))
