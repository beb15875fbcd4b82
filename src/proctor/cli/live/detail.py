"""The panel of one run: how far it is, what it scores, what failed, what was logged.

Where height is scarce the less important rows go first. Everything from outside is shown as plain text.
"""

from __future__ import annotations

import textwrap
import time

from proctor.cli.live.logs import Log
from proctor.cli.live.progress import TIMED_OUT, Progress
from proctor.cli.live.wording import (
    clock_text,
    counted,
    interval_text,
    share,
    short_count,
    short_number,
    short_rate,
)
from proctor.cli.views.escape import one_line
from proctor.cli.views.lines import (
    BAD,
    LABEL,
    LABELS,
    STRONG,
    WARN,
    Block,
    Line,
    bar,
    fitting,
    flowed,
    line,
    row,
)

WIDEST_BAR_LINE = 120
MOST_METRICS = 6
LOG_LINES = 5
NOTE_LINES = 3
OUTCOME_STYLES = {"scored": "", "excluded": "", "truncated": WARN, TIMED_OUT: WARN}
LEVEL_STYLES = {"WARNING": WARN, "ERROR": BAD, "CRITICAL": BAD}


def detail_lines(run: Progress, log: Log, width: int, height: int, *, alone: bool, fills: bool) -> list[Line]:
    """A run that is shown `alone` also tells of a stop; one that `fills` the height uses it for its log."""
    blank, last_log = Block(11, [Line()]), Block(9, log_lines(log, 1))
    blocks = [
        Block(6, [title_line(run)]),
        Block(10, settings_lines(run, width)),
        blank,
        Block(0, [bar_line(run, min(width, WIDEST_BAR_LINE), alone)]),
        Block(1, stop_line(run) if alone else []),
        Block(1, note_lines(run, width)),
        blank,
        Block(2, score_row(run, width)),
        Block(8, metrics_row(run, width)),
        Block(5, rollouts_row(run, width)),
        Block(7, tokens_row(run, width)),
        Block(4, outcomes_row(run, width)),
        Block(3, error_row(run)),
        last_log,
    ]
    chosen = fitting(blocks, height)
    lines = [drawn for block in chosen for drawn in block.lines]
    room = height - len(lines)
    if room > 0 and last_log.lines and last_log in chosen:
        shown = log_lines(log, room if fills else min(room, LOG_LINES))
        lines[-1:] = [later_line(log), *shown]
    return lines


def title_line(run: Progress) -> Line:
    known = run.run
    env = run.env or (one_line(known.env_id) if known else "")
    model = run.model or (one_line(known.model) if known else "")
    label = line("  ", run.label) if run.label else Line()
    return line((env, STRONG), ("  with  ", LABELS), (model, STRONG)) + label


def settings_lines(run: Progress, width: int) -> list[Line]:
    pairs = [line((f"{label} ", LABELS), value) for label, value in run.settings]
    return flowed(pairs, width, most_lines=2)


def bar_line(run: Progress, width: int, alone: bool) -> Line:
    parts = count_parts(run, "starting" if alone else "waiting")
    while len(parts) > 1 and len("  ".join(parts)) > width - 10:
        parts.pop()
    words = "  ".join(parts)
    # Room for the time left is kept from the start: a bar that changes its length is restless.
    cells = width - max(len(words), 34 if width >= 70 else 0) - 2
    if cells < 4:
        return line(words)
    return bar(cells, run.finished, run.failed, run.planned) + line("  ", words)


def count_parts(run: Progress, before: str) -> list[str]:
    finished, planned = run.finished, run.planned
    if run.run is None:
        return [before, clock_text(run.seconds)] if before == "starting" else [before]
    if planned is None:
        counts = [f"{finished:,} finished", clock_text(run.seconds), "total not known yet"]
        return [run.state] if run.ended else counts
    parts = [f"{finished:>{len(f'{planned:,}')},}/{planned:,}", f"{share(finished, planned):>3} %"]
    parts.append(clock_text(run.seconds))
    left = run.seconds_left
    if run.ended:
        parts.append(run.state)
    elif left is not None and finished < planned and not run.control.stopping:
        parts.append(f"{clock_text(left)} left")
    return parts


def stop_line(run: Progress) -> list[Line]:
    said = run.stopping()
    return [] if said is None else [line((said, WARN))]


def note_lines(run: Progress, width: int) -> list[Line]:
    style = BAD if run.state == "failed" else WARN
    return [line((text, style)) for text in textwrap.wrap(run.note, width)[:NOTE_LINES]]


def score_row(run: Progress, width: int) -> list[Line]:
    score = run.score
    if score.mean is None:
        return row("score", [line("–")], width)
    cells = [line((short_number(score.mean), STRONG))]
    if score.interval is not None:
        cells.append(line(interval_text(score)))
    cells.append(line(counted(score.n, "task")))
    if score.se is not None:
        cells.append(line(f"se {short_number(score.se)}"))
    return row("score", cells, width)


def metrics_row(run: Progress, width: int) -> list[Line]:
    shown = list(run.metrics.items())[:MOST_METRICS]
    cells = [line((f"{one_line(name)} ", LABELS), short_number(mean)) for name, mean in shown]
    return row("metrics", cells, width, most_lines=2)


def rollouts_row(run: Progress, width: int) -> list[Line]:
    cells = [line(f"{run.in_flight:,} in flight")] if run.hears_starts else []
    cells.append(line(short_rate(run.per_second)))
    if run.retries:
        cells.append(line((counted(run.retries, "retry", "retries"), WARN)))
    if run.finished_before:
        cells.append(line(f"{run.finished_before:,} from before"))
    if run.rate_limited:
        cells.append(line((f"{run.rate_limited:,} rate-limited", WARN)))
    if run.requests_at_once is not None:
        cells.append(line((f"cut to {run.requests_at_once:,} at once", WARN)))
    return row("rollouts", cells, width, most_lines=2)


def tokens_row(run: Progress, width: int) -> list[Line]:
    cells = [line(f"{short_count(run.input_tokens)} in"), line(f"{short_count(run.output_tokens)} out")]
    cells.append(line(short_rate(run.tokens_per_second, " out")))
    return row("tokens", cells, width)


def outcomes_row(run: Progress, width: int) -> list[Line]:
    cells = [
        line((f"{count:,} {name.replace('_', ' ')}", OUTCOME_STYLES.get(name, BAD)))
        for name, count in run.outcomes()
    ]
    return row("outcomes", cells, width, most_lines=2)


def error_row(run: Progress) -> list[Line]:
    if run.last_error is None:
        return []
    kind, message = map(one_line, run.last_error)
    return [line((f"{'last error':<{LABEL}}", LABELS), (kind, BAD), f" {message}")]


def later_line(log: Log) -> Line:
    """Stands over the log, and says when it is not the end of it."""
    return line((f"{counted(log.behind, 'later line')} ↓", LABELS)) if log.behind else Line()


def log_lines(log: Log, most: int) -> list[Line]:
    return [
        line(
            (time.strftime("%H:%M:%S ", time.localtime(said.at)), LABELS),
            (f"{said.level} " if said.level else "", LEVEL_STYLES.get(said.level, LABELS)),
            said.text,
        )
        for said in log.shown(most)
    ]
