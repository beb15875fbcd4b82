"""The panel over several runs: a headline for all of them, a line for each, the selected one in sight.

It never takes more than the lines it is given. Its columns are as wide as their widest cell; where the screen
is narrow, the least telling go first: names that all runs share, then the bars, then what the rest can spare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from proctor.cli.live.progress import RunProgress
from proctor.cli.live.totals import Totals
from proctor.cli.views.formatting import format_clock, format_short_number, percent_done
from proctor.cli.views.lines import (
    BAD,
    DIM,
    DONE,
    GAP,
    QUIET,
    STRONG,
    WARN,
    StyledLine,
    pad_text,
    progress_bar,
    styled_line,
    text_width,
)

WIDEST_NAME = 40
SHORT_NAME, SHORTEST_NAME = 10, 4
"""Short enough to read, long enough to tell names apart."""
WHOLE = 1000
KEY_LENGTHS = (8, 5, 3)
WIDEST_BAR, NARROWEST_BAR = 20, 6
HINT = "←/→ switch   ? keys"
STATE_STYLES = {
    "waiting": DIM,
    "running": "",
    "stopping": WARN,
    "finished": DONE,
    "failed": BAD,
    "stopped": WARN,
    "timed out": WARN,
}

NAMES = ("env", "model", "label")
BAR, COUNTS, SCORES, FAILURES, STATES = "bar", "done", "score", "errors", "state"
KEY = re.compile(r"([^\s=]+)=")
NARROWEST = {COUNTS: 7, SCORES: 6, FAILURES: 6, STATES: 8}


class OverviewColumn(msgspec.Struct, frozen=True):
    """A column of the overview: what it is called, and how wide it is."""

    name: str
    width: int
    key_length: int = WHOLE
    """How much is left of the keys in what a sweep chose: its values tell the runs apart."""


def overview_lines(
    runs: Sequence[RunProgress], totals: Totals, selected: int, first: int, width: int, height: int
) -> list[StyledLine]:
    """At most `height` lines, with the rows from `first` on, which `scroll_to_selected` chooses."""
    if height < 1:
        return []
    lines = [headline_line(totals, len(runs), width)]
    rows = count_visible_rows(height, len(runs))
    if rows:
        columns = choose_columns(runs, width)
        if has_header(height):
            lines.append(header_line(columns))
        shown = range(first, min(first + rows, len(runs)))
        lines += [run_line(runs[index], columns, index == selected) for index in shown]
    if has_rule(height):
        lines.append(divider_line(totals, first, rows, len(runs), width))
    return lines


def has_rule(height: int) -> bool:
    return height >= 4


def has_header(height: int) -> bool:
    return height >= 6


def count_visible_rows(height: int, runs: int) -> int:
    """How many runs have a line of their own."""
    return max(0, min(runs, height - 1 - has_rule(height) - has_header(height)))


def scroll_to_selected(first: int, selected: int, rows: int, runs: int) -> int:
    """The first row to show so that the selected one is in sight, moving no more than needed."""
    first = min(first, selected)
    first = max(first, selected - rows + 1)
    return max(0, min(first, runs - rows))


def headline_line(totals: Totals, runs: int, width: int) -> StyledLine:
    """What does not fit is left out from the end; the place of the time left is kept, so nothing jumps."""
    planned, left = totals.planned, totals.seconds_left
    parts = [f"  {totals.count()}"]
    if planned is not None:
        parts.append(f"  {percent_done(totals.finished, planned):>3}%")
    parts.append(f"  {format_clock(totals.seconds)}")
    parts.append(f"  {'' if left is None or totals.stopping() else f'{format_clock(left)} left':<10}")
    drawn = styled_line((f"{runs} runs", STRONG))
    for part in parts:
        if drawn.width + len(part.rstrip()) > width:
            return drawn
        drawn = drawn + styled_line(part)
    states = styled_line((f"  {totals.states()}", DIM))
    return drawn + states if drawn.width + states.width <= width else drawn


def divider_line(totals: Totals, first: int, rows: int, runs: int, width: int) -> StyledLine:
    """Divides the panels, and counts what has no line."""
    stopping = totals.stopping()
    if stopping is not None:
        return styled_line((stopping, WARN))
    position = f" {first + 1}–{first + rows} of {runs} " if rows < runs else ""
    used = text_width(position) + text_width(HINT) + 6
    if used > width:
        return styled_line(
            ("─" * 2, QUIET), (position, DIM), ("─" * max(0, width - 2 - len(position)), QUIET)
        )
    return styled_line(
        ("─" * 2, QUIET),
        (position, DIM),
        ("─" * (width - used), QUIET),
        (f" {HINT} ", DIM),
        ("─" * 2, QUIET),
    )


def header_line(columns: Sequence[OverviewColumn]) -> StyledLine:
    """Numbers say what they are; names speak for themselves."""
    words = [column.name if column.name in NARROWEST else "" for column in columns]
    cells = [align_cell(word, column) for word, column in zip(words, columns, strict=True)]
    return styled_line(("  " + (" " * GAP).join(cells), DIM))


def run_line(run: RunProgress, columns: Sequence[OverviewColumn], selected: bool) -> StyledLine:
    parts = [("▸ ", DONE) if selected else ("  ", "")]
    quiet = DIM if run.state == "waiting" else ""
    for column in columns:
        if column.name == BAR:
            parts += progress_bar(column.width, run.finished, run.failed, run.planned).parts
        else:
            style = cell_style(column.name, run, selected) or quiet
            parts.append((align_cell(cell_text(column, run), column), style))
        parts.append((" " * GAP, ""))
    return StyledLine(tuple(parts[:-1]))


def align_cell(text: str, column: OverviewColumn) -> str:
    """Numbers to the right, so that their digits align."""
    if column.name in (COUNTS, SCORES, FAILURES):
        return f"{text:>{column.width}}"
    return pad_text(text, column.width)


def cell_text(column: OverviewColumn, run: RunProgress) -> str:
    match column.name:
        case "env":
            return run.env
        case "model":
            return run.model
        case "label":
            return KEY.sub(lambda key: f"{key[1][: column.key_length]}=", run.label)
        case "done":
            return count_text(run)
        case "score":
            return "–" if run.score.mean is None else format_short_number(run.score.mean)
        case "errors":
            return f"{run.failed:,}" if run.failed else ""
        case _:
            return run.state


def count_text(run: RunProgress) -> str:
    if run.planned is None:
        return f"{run.finished:,}" if run.run is not None and not run.ended else "–"
    return f"{run.finished:,}/{run.planned:,}"


def cell_style(name: str, run: RunProgress, selected: bool) -> str:
    if name == FAILURES:
        return BAD
    if name == STATES:
        return STATE_STYLES[run.state]
    return STRONG if selected and name in NAMES else ""


def choose_columns(runs: Sequence[RunProgress], width: int) -> list[OverviewColumn]:
    """The columns that fit, by what they tell."""
    columns = [fit_to_content(OverviewColumn(name, 0), runs) for name in (*NAMES, BAR, *NARROWEST)]
    columns = [column for column in columns if column.width]
    for name in find_shared_names(runs):
        if is_too_wide(columns, width):
            columns = remove_column(columns, name)
    if is_too_wide(columns, width):
        columns = remove_column(columns, BAR)
    for key_length in KEY_LENGTHS:
        if is_too_wide(columns, width):
            short = fit_to_content(OverviewColumn("label", 0, key_length), runs)
            columns = [short if column.name == "label" else column for column in columns]
    columns = shorten_names(columns, width, SHORT_NAME)
    for name in (STATES, FAILURES):
        if is_too_wide(columns, width):
            columns = remove_column(columns, name)
    columns = shorten_names(columns, width, SHORTEST_NAME)
    if is_too_wide(columns, width):
        columns = remove_column(columns, SCORES)
    spare = width - total_width(columns)
    return [
        OverviewColumn(BAR, min(WIDEST_BAR, NARROWEST_BAR + spare)) if column.name == BAR else column
        for column in columns
    ]


def fit_to_content(column: OverviewColumn, runs: Sequence[RunProgress]) -> OverviewColumn:
    """The column, as wide as its content."""
    name = column.name
    if name == BAR:
        return OverviewColumn(BAR, NARROWEST_BAR)
    widest = max(text_width(cell_text(column, run)) for run in runs)
    width = min(WIDEST_NAME, widest) if name in NAMES else max(NARROWEST[name], widest)
    return OverviewColumn(name, width, column.key_length)


def find_shared_names(runs: Sequence[RunProgress]) -> list[str]:
    """Names that do not tell the runs apart; one stays in any case."""
    shared = [name for name in reversed(NAMES) if len({getattr(run, name) for run in runs}) == 1]
    return shared if len(shared) < len(NAMES) else shared[:-1]


def remove_column(columns: Sequence[OverviewColumn], name: str) -> list[OverviewColumn]:
    return [column for column in columns if column.name != name]


def total_width(columns: Sequence[OverviewColumn]) -> int:
    return 2 + sum(column.width for column in columns) + GAP * (len(columns) - 1)


def is_too_wide(columns: Sequence[OverviewColumn], width: int) -> bool:
    return total_width(columns) > width


def shorten_names(columns: Sequence[OverviewColumn], width: int, shortest: int) -> list[OverviewColumn]:
    """What is too much is cut off the widest names, as far as that may go."""
    columns = list(columns)
    for _ in range(max(0, total_width(columns) - width)):
        widest = max(columns, key=lambda column: column.width if column.name in NAMES else 0)
        if widest.name not in NAMES or widest.width <= shortest:
            break
        columns[columns.index(widest)] = OverviewColumn(widest.name, widest.width - 1, widest.key_length)
    return columns
