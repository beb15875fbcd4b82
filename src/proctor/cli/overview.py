"""The panel over several runs: a headline for all of them, a line for each, the selected one in sight.

It never takes more than the lines it is given. Its columns are as wide as their widest cell; where the screen
is narrow, the least telling go first: names that all runs share, then the bars, then what the rest can spare.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len

from proctor.cli.lines import BAD, DONE, GAP, LABELS, QUIET, STRONG, WARN, Line, bar, line, padded
from proctor.cli.progress import Progress
from proctor.cli.totals import Totals
from proctor.cli.wording import clock_text, share, short_number

WIDEST_NAME = 40
NARROWEST_NAME = 10
WIDEST_BAR, NARROWEST_BAR = 20, 6
HINT = "←/→ switch   ? keys"
STATE_STYLES = {
    "waiting": LABELS,
    "running": "",
    "stopping": WARN,
    "finished": DONE,
    "failed": BAD,
    "stopped": WARN,
}

NAMES = ("env", "model", "label")
BAR, COUNTS, SCORES, FAILURES, STATES = "bar", "done", "score", "errors", "state"
NARROWEST = {COUNTS: 7, SCORES: 6, FAILURES: 6, STATES: 8}


class Column(msgspec.Struct, frozen=True):
    """A column of the overview: what it is called, and how wide it is."""

    name: str
    width: int


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
    planned, left = totals.planned, totals.seconds_left
    done = "" if planned is None else f"{share(totals.finished, planned):>3} %  "
    drawn = line((f"{runs} runs", STRONG), f"  {totals.count()}  {done}{clock_text(totals.seconds)}")
    going_on = left is not None and not totals.stopping()
    # The place of the time left is kept free, so that what stands behind it does not jump.
    words = f"  {clock_text(left)} left" if going_on and left is not None else ""
    drawn = drawn + line(f"{words:<12}")
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
            parts.append((placed(text_of(column.name, run), column), style))
        parts.append((" " * GAP, ""))
    return Line(tuple(parts[:-1]))


def placed(text: str, column: Column) -> str:
    """Numbers to the right, so that their digits stand under each other."""
    if column.name in (COUNTS, SCORES, FAILURES):
        return f"{text:>{column.width}}"
    return padded(text, column.width)


def text_of(name: str, run: Progress) -> str:
    match name:
        case "env" | "model" | "label":
            return str(getattr(run, name))
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
    columns = [Column(name, width_of(name, runs)) for name in (*NAMES, BAR, *NARROWEST)]
    columns = [column for column in columns if column.width]
    for name in shared_names(runs):
        if is_too_wide(columns, width):
            columns = without(columns, name)
    if is_too_wide(columns, width):
        columns = without(columns, BAR)
    columns = with_short_names(columns, width)
    for name in (STATES, FAILURES, SCORES):
        if is_too_wide(columns, width):
            columns = without(columns, name)
    spare = width - taken(columns)
    return [
        Column(BAR, min(WIDEST_BAR, NARROWEST_BAR + spare)) if column.name == BAR else column
        for column in columns
    ]


def width_of(name: str, runs: Sequence[Progress]) -> int:
    if name == BAR:
        return NARROWEST_BAR
    widest = max(cell_len(text_of(name, run)) for run in runs)
    return min(WIDEST_NAME, widest) if name in NAMES else max(NARROWEST[name], widest)


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


def with_short_names(columns: Sequence[Column], width: int) -> list[Column]:
    """What is too much is cut off the widest names, as far as they can be read."""
    columns = list(columns)
    for _ in range(max(0, taken(columns) - width)):
        widest = max(columns, key=lambda column: column.width if column.name in NAMES else 0)
        if widest.name not in NAMES or widest.width <= NARROWEST_NAME:
            break
        columns[columns.index(widest)] = Column(widest.name, widest.width - 1)
    return columns
