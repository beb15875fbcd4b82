"""The panel of one run: how far it is, what it scores, what failed, what was logged.

Where height is scarce the less important rows go first. Everything from outside is shown as plain text.
"""

from __future__ import annotations

import textwrap
import time

from proctor.cli.live.logs import LogBuffer
from proctor.cli.live.progress import TIMED_OUT, RunProgress
from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import (
    format_clock,
    format_interval,
    format_quantity,
    format_rate,
    format_short_count,
    format_short_number,
    percent_done,
)
from proctor.cli.views.lines import (
    BAD,
    DIM,
    LABEL,
    STRONG,
    WARN,
    LineBlock,
    StyledLine,
    choose_fitting_blocks,
    flow_lines,
    layout_row,
    progress_bar,
    styled_line,
)

WIDEST_BAR_LINE = 120
MOST_METRICS = 6
LOG_LINES = 5
NOTE_LINES = 3
OUTCOME_STYLES = {"scored": "", "excluded": "", "truncated": WARN, TIMED_OUT: WARN}
LEVEL_STYLES = {"WARNING": WARN, "ERROR": BAD, "CRITICAL": BAD}


def detail_lines(
    run: RunProgress, log: LogBuffer, width: int, height: int, *, alone: bool, fills: bool
) -> list[StyledLine]:
    """A run that is shown `alone` also reports a stop; one that `fills` the height uses it for its log."""
    blank, last_log = LineBlock(11, [StyledLine()]), LineBlock(9, log_lines(log, 1))
    blocks = [
        LineBlock(6, [title_line(run)]),
        LineBlock(10, settings_lines(run, width)),
        blank,
        LineBlock(0, [bar_line(run, min(width, WIDEST_BAR_LINE), alone)]),
        LineBlock(1, stop_line(run) if alone else []),
        LineBlock(1, wait_lines(run, width)),
        LineBlock(1, note_lines(run, width)),
        blank,
        LineBlock(2, score_row(run, width)),
        LineBlock(8, metrics_row(run, width)),
        LineBlock(5, rollouts_row(run, width)),
        LineBlock(7, tokens_row(run, width)),
        LineBlock(4, outcomes_row(run, width)),
        LineBlock(3, error_row(run)),
        last_log,
    ]
    chosen = choose_fitting_blocks(blocks, height)
    lines = [drawn for block in chosen for drawn in block.lines]
    room = height - len(lines)
    if room > 0 and last_log.lines and last_log in chosen:
        shown = log_lines(log, room if fills else min(room, LOG_LINES))
        lines[-1:] = [log_position_line(log), *shown]
    return lines


def title_line(run: RunProgress) -> StyledLine:
    known = run.run
    env = run.env or (one_line(known.env_id) if known else "")
    model = run.model or (one_line(known.model) if known else "")
    label = styled_line("  ", run.label) if run.label else StyledLine()
    return styled_line((env, STRONG), ("  with  ", DIM), (model, STRONG)) + label


def settings_lines(run: RunProgress, width: int) -> list[StyledLine]:
    pairs = [styled_line((f"{label} ", DIM), value) for label, value in run.settings]
    return flow_lines(pairs, width, most_lines=2)


def bar_line(run: RunProgress, width: int, alone: bool) -> StyledLine:
    parts = count_parts(run, "starting" if alone else "waiting")
    while len(parts) > 1 and len("  ".join(parts)) > width - 10:
        parts.pop()
    words = "  ".join(parts)
    # Room for the time left is kept from the start: a bar that changes its length is restless.
    cells = width - max(len(words), 34 if width >= 70 else 0) - 2
    if cells < 4:
        return styled_line(words)
    return progress_bar(cells, run.finished, run.failed, run.planned) + styled_line("  ", words)


def count_parts(run: RunProgress, before: str) -> list[str]:
    finished, planned = run.finished, run.planned
    if run.run is None:
        return [before, format_clock(run.seconds)] if before == "starting" else [before]
    if planned is None:
        counts = [f"{finished:,} finished", format_clock(run.seconds), "total not known yet"]
        return [run.state] if run.ended else counts
    parts = [f"{finished:>{len(f'{planned:,}')},}/{planned:,}", f"{percent_done(finished, planned):>3}%"]
    parts.append(format_clock(run.seconds))
    left = run.seconds_left
    if run.ended:
        parts.append(run.state)
    elif left is not None and finished < planned and not run.control.stopping:
        parts.append(f"{format_clock(left)} left")
    return parts


def stop_line(run: RunProgress) -> list[StyledLine]:
    note = run.stopping()
    return [] if note is None else [styled_line((note, WARN))]


def wait_lines(run: RunProgress, width: int) -> list[StyledLine]:
    note = run.waiting() or ""
    return [styled_line((text, WARN)) for text in textwrap.wrap(note, width)[:NOTE_LINES]]


def note_lines(run: RunProgress, width: int) -> list[StyledLine]:
    style = BAD if run.state == "failed" else WARN
    return [styled_line((text, style)) for text in textwrap.wrap(run.note, width)[:NOTE_LINES]]


def score_row(run: RunProgress, width: int) -> list[StyledLine]:
    score = run.score
    if score.mean is None:
        return layout_row("score", [styled_line("–")], width)
    cells = [styled_line((format_short_number(score.mean), STRONG))]
    if score.interval is not None:
        cells.append(styled_line(format_interval(score)))
    cells.append(styled_line(format_quantity(score.n, "task")))
    if score.se is not None:
        cells.append(styled_line(f"se {format_short_number(score.se)}"))
    return layout_row("score", cells, width)


def metrics_row(run: RunProgress, width: int) -> list[StyledLine]:
    shown = list(run.metrics.items())[:MOST_METRICS]
    cells = [styled_line((f"{one_line(name)} ", DIM), format_short_number(mean)) for name, mean in shown]
    return layout_row("metrics", cells, width, most_lines=2)


def rollouts_row(run: RunProgress, width: int) -> list[StyledLine]:
    cells = [styled_line(f"{run.in_flight:,} in flight")] if run.hears_starts else []
    cells.append(styled_line(format_rate(run.per_second)))
    if run.retries:
        cells.append(styled_line((format_quantity(run.retries, "retry", "retries"), WARN)))
    if run.finished_before:
        cells.append(styled_line(f"{run.finished_before:,} from before"))
    if run.rate_limited:
        cells.append(styled_line((f"{run.rate_limited:,} rate-limited", WARN)))
    if run.requests_at_once is not None:
        cells.append(styled_line((f"cut to {run.requests_at_once:,} at once", WARN)))
    return layout_row("rollouts", cells, width, most_lines=2)


def tokens_row(run: RunProgress, width: int) -> list[StyledLine]:
    cells = [
        styled_line(f"{format_short_count(run.input_tokens)} in"),
        styled_line(f"{format_short_count(run.output_tokens)} out"),
    ]
    cells.append(styled_line(format_rate(run.tokens_per_second, " out")))
    return layout_row("tokens", cells, width)


def outcomes_row(run: RunProgress, width: int) -> list[StyledLine]:
    cells = [
        styled_line((f"{count:,} {name.replace('_', ' ')}", OUTCOME_STYLES.get(name, BAD)))
        for name, count in run.outcomes()
    ]
    return layout_row("outcomes", cells, width, most_lines=2)


def error_row(run: RunProgress) -> list[StyledLine]:
    if run.last_error is None:
        return []
    kind, message = map(one_line, run.last_error)
    return [styled_line((f"{'last error':<{LABEL}}", DIM), (kind, BAD), f" {message}")]


def log_position_line(log: LogBuffer) -> StyledLine:
    """Stands over the log, and says when it is not the end of it."""
    return (
        styled_line((f"{format_quantity(log.behind, 'later line')} ↓", DIM)) if log.behind else StyledLine()
    )


def log_lines(log: LogBuffer, most: int) -> list[StyledLine]:
    return [
        styled_line(
            (time.strftime("%H:%M:%S ", time.localtime(note.at)), DIM),
            (f"{note.level} " if note.level else "", LEVEL_STYLES.get(note.level, DIM)),
            note.text,
        )
        for note in log.visible_lines(most)
    ]
