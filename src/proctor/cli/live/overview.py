"""The panel over several runs: a headline for all of them, a line for each, the selected one in sight.

It never takes more than the lines it is given. Its columns are as wide as their widest cell; where the screen
is narrow, the least telling go first: names that all runs share, then the bars, then what the rest can spare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from rich.cells import cell_len

from proctor.cli.live.progress import Progress
from proctor.cli.live.totals import Totals
from proctor.cli.live.wording import clock_text, share, short_number
from proctor.cli.views.lines import BAD, DONE, GAP, LABELS, QUIET, STRONG, WARN, Line, bar, line, padded

WIDEST_NAME = 40
SHORT_NAME, SHORTEST_NAME = 10, 4
"""As far as a name can be read, and as far as it can be told from others."""
WHOLE = 1000
KEY_LENGTHS = (8, 5, 3)
WIDEST_BAR, NARROWEST_BAR = 20, 6
HINT = "←/→ switch   ? keys"
STATE_STYLES = {
    "waiting": LABELS,
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


class Column(msgspec.Struct, frozen=True):
    """A column of the overview: what it is called, and how wide it is."""

    name: str
    width: int
    key_length: int = WHOLE
    """How much is left of the keys in what a sweep chose: its values tell the runs apart."""


def overview_lines(
    runs: Sequence[Progress], totals: Totals, selected: int, first: int, width: int, height: int
) -> list[Line]:
    """In at most `height` lines, with the rows from `first` on: see `rows_in` and `scrolled`."""
    if height < 1:
        return []
    lines = [headline(totals, len(runs), width)]
    rows = rows_in(height, len(runs))
    if rows:
        columns = columns_for(runs, width)
        if has_header(height):
            lines.append(header(columns))
        shown = range(first, min(first + rows, len(runs)))
        lines += [run_line(runs[place], columns, place == selected) for place in shown]
    if has_rule(height):
        lines.append(rule(totals, first, rows, len(runs), width))
    return lines


def has_rule(height: int) -> bool:
    return height >= 4


def has_header(height: int) -> bool:
    return height >= 6


def rows_in(height: int, runs: int) -> int:
    """How many runs have a line of their own."""
    return max(0, min(runs, height - 1 - has_rule(height) - has_header(height)))


def scrolled(first: int, selected: int, rows: int, runs: int) -> int:
    """The first row to show so that the selected one is in sight, moving no more than needed."""
    first = min(first, selected)
    first = max(first, selected - rows + 1)
    return max(0, min(first, runs - rows))


def headline(totals: Totals, runs: int, width: int) -> Line:
    """What does not fit is left out from the end; the place of the time left is kept, so nothing jumps."""
    planned, left = totals.planned, totals.seconds_left
    parts = [f"  {totals.count()}"]
    if planned is not None:
        parts.append(f"  {share(totals.finished, planned):>3} %")
    parts.append(f"  {clock_text(totals.seconds)}")
    parts.append(f"  {'' if left is None or totals.stopping() else f'{clock_text(left)} left':<10}")
    drawn = line((f"{runs} runs", STRONG))
    for part in parts:
        if drawn.width + len(part.rstrip()) > width:
            return drawn
        drawn = drawn + line(part)
    states = line((f"  {totals.states()}", LABELS))
    return drawn + states if drawn.width + states.width <= width else drawn


def rule(totals: Totals, first: int, rows: int, runs: int, width: int) -> Line:
    """Divides the panels, and says what there is no line for."""
    stopping = totals.stopping()
    if stopping is not None:
        return line((stopping, WARN))
    place = f" {first + 1}–{first + rows} of {runs} " if rows < runs else ""
    used = cell_len(place) + cell_len(HINT) + 6
    if used > width:
        return line(("─" * 2, QUIET), (place, LABELS), ("─" * max(0, width - 2 - len(place)), QUIET))
    return line(
        ("─" * 2, QUIET),
        (place, LABELS),
        ("─" * (width - used), QUIET),
        (f" {HINT} ", LABELS),
        ("─" * 2, QUIET),
    )


def header(columns: Sequence[Column]) -> Line:
    """Numbers say what they are; names speak for themselves."""
    words = [column.name if column.name in NARROWEST else "" for column in columns]
    cells = [placed(word, column) for word, column in zip(words, columns, strict=True)]
    return line(("  " + (" " * GAP).join(cells), LABELS))


def run_line(run: Progress, columns: Sequence[Column], selected: bool) -> Line:
    parts = [("▸ ", DONE) if selected else ("  ", "")]
    quiet = LABELS if run.state == "waiting" else ""
    for column in columns:
        if column.name == BAR:
            parts += bar(column.width, run.finished, run.failed, run.planned).parts
        else:
            style = style_of(column.name, run, selected) or quiet
            parts.append((placed(text_of(column, run), column), style))
        parts.append((" " * GAP, ""))
    return Line(tuple(parts[:-1]))


def placed(text: str, column: Column) -> str:
    """Numbers to the right, so that their digits stand under each other."""
    if column.name in (COUNTS, SCORES, FAILURES):
        return f"{text:>{column.width}}"
    return padded(text, column.width)


def text_of(column: Column, run: Progress) -> str:
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
            return "–" if run.score.mean is None else short_number(run.score.mean)
        case "errors":
            return f"{run.failed:,}" if run.failed else ""
        case _:
            return run.state


def count_text(run: Progress) -> str:
    if run.planned is None:
        return f"{run.finished:,}" if run.run is not None and not run.ended else "–"
    return f"{run.finished:,}/{run.planned:,}"


def style_of(name: str, run: Progress, selected: bool) -> str:
    if name == FAILURES:
        return BAD
    if name == STATES:
        return STATE_STYLES[run.state]
    return STRONG if selected and name in NAMES else ""


def columns_for(runs: Sequence[Progress], width: int) -> list[Column]:
    """The columns that fit, by what they tell."""
    columns = [widened(Column(name, 0), runs) for name in (*NAMES, BAR, *NARROWEST)]
    columns = [column for column in columns if column.width]
    for name in shared_names(runs):
        if is_too_wide(columns, width):
            columns = without(columns, name)
    if is_too_wide(columns, width):
        columns = without(columns, BAR)
    for key_length in KEY_LENGTHS:
        if is_too_wide(columns, width):
            short = widened(Column("label", 0, key_length), runs)
            columns = [short if column.name == "label" else column for column in columns]
    columns = with_short_names(columns, width, SHORT_NAME)
    for name in (STATES, FAILURES):
        if is_too_wide(columns, width):
            columns = without(columns, name)
    columns = with_short_names(columns, width, SHORTEST_NAME)
    if is_too_wide(columns, width):
        columns = without(columns, SCORES)
    spare = width - taken(columns)
    return [
        Column(BAR, min(WIDEST_BAR, NARROWEST_BAR + spare)) if column.name == BAR else column
        for column in columns
    ]


def widened(column: Column, runs: Sequence[Progress]) -> Column:
    """The column, wide enough for what stands in it."""
    name = column.name
    if name == BAR:
        return Column(BAR, NARROWEST_BAR)
    widest = max(cell_len(text_of(column, run)) for run in runs)
    width = min(WIDEST_NAME, widest) if name in NAMES else max(NARROWEST[name], widest)
    return Column(name, width, column.key_length)


def shared_names(runs: Sequence[Progress]) -> list[str]:
    """Names that do not tell the runs apart; one stays in any case."""
    shared = [name for name in reversed(NAMES) if len({getattr(run, name) for run in runs}) == 1]
    return shared if len(shared) < len(NAMES) else shared[:-1]


def without(columns: Sequence[Column], name: str) -> list[Column]:
    return [column for column in columns if column.name != name]


def taken(columns: Sequence[Column]) -> int:
    return 2 + sum(column.width for column in columns) + GAP * (len(columns) - 1)


def is_too_wide(columns: Sequence[Column], width: int) -> bool:
    return taken(columns) > width


def with_short_names(columns: Sequence[Column], width: int, shortest: int) -> list[Column]:
    """What is too much is cut off the widest names, as far as that may go."""
    columns = list(columns)
    for _ in range(max(0, taken(columns) - width)):
        widest = max(columns, key=lambda column: column.width if column.name in NAMES else 0)
        if widest.name not in NAMES or widest.width <= shortest:
            break
        columns[columns.index(widest)] = Column(widest.name, widest.width - 1, widest.key_length)
    return columns
