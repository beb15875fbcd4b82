"""How a run or a suite goes on, in one plain line each."""

from __future__ import annotations

from proctor.cli.live.progress import Progress
from proctor.cli.live.totals import Totals
from proctor.cli.live.wording import clock_text, counted, interval_text, short_count, short_number, short_rate


def opening(run: Progress) -> str:
    return f"Evaluating {run.env} with {run.model}{settings_of(run)}"


def start(run: Progress) -> str:
    return f"Started{settings_of(run)}"


def settings_of(run: Progress) -> str:
    settings = ", ".join(f"{label} {value}" for label, value in run.settings)
    return f": {settings}" if settings else ""


def so_far(run: Progress) -> str:
    left = None if run.control.stopping else run.seconds_left
    pace = paced(count_of(run.finished, run.planned), run.per_second, left)
    return "; ".join([pace, score_of(run), *results_of(run)])


def end(run: Progress) -> str:
    state = run.state if run.ended else "ended"
    after = f"{state.capitalize()} after {clock_text(run.seconds)}: {count_of(run.finished, run.planned)}"
    return "; ".join([after, score_at_end(run), *results_of(run)])


def end_with_reason(run: Progress) -> str:
    """For readers who see no report of it."""
    if run.ended and run.planned is None and not run.finished:
        return f"{run.state.capitalize()} before it began: {run.note}"
    return "; ".join([end(run), run.note] if run.note else [end(run)])


def suite_so_far(totals: Totals) -> str:
    left = None if totals.stopping() else totals.seconds_left
    pace = paced(suite_count(totals), totals.per_second, left)
    return "; ".join([f"All runs: {pace}", *suite_results(totals)])


def suite_end(totals: Totals) -> str:
    after = f"All runs ended after {clock_text(totals.seconds)}: {suite_count(totals)}"
    return "; ".join([after, *suite_results(totals)])


def paced(count: str, per_second: float | None, seconds_left: float | None) -> str:
    left = "" if seconds_left is None else f", {clock_text(seconds_left)} left"
    return f"{count}, {short_rate(per_second)}{left}"


def count_of(finished: int, planned: int | None, guessed: bool = False) -> str:
    if planned is None:
        return f"{finished:,} rollouts"
    share = finished / planned if planned else 0.0
    return f"{finished:,}/{'~' if guessed else ''}{planned:,} rollouts ({share:.0%})"


def results_of(run: Progress) -> list[str]:
    outcomes = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in run.outcomes())
    return [outcomes, tokens_of(run)]


def score_of(run: Progress) -> str:
    if run.score.mean is None:
        return "no score yet"
    interval = interval_text(run.score)
    return f"score {short_number(run.score.mean)}" + (f", {interval}" if interval else "")


def score_at_end(run: Progress) -> str:
    """Without the interval of the display, which is rough: the report that follows has the real one."""
    return "no score" if run.score.mean is None else f"score {short_number(run.score.mean)}"


def tokens_of(counted: Progress | Totals) -> str:
    return f"tokens {short_count(counted.input_tokens)} in, {short_count(counted.output_tokens)} out"


def suite_count(totals: Totals) -> str:
    return count_of(totals.finished, totals.planned, not totals.is_counted)


def suite_results(totals: Totals) -> list[str]:
    errors = [counted(totals.failed, "error")] if totals.failed else []
    return [totals.states(), *errors, tokens_of(totals)]
