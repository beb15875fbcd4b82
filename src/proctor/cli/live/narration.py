"""The progress of a run or a suite, in one plain line each."""

from __future__ import annotations

from proctor.cli.live.progress import RunProgress
from proctor.cli.live.totals import Totals
from proctor.cli.views.formatting import (
    format_clock,
    format_interval,
    format_quantity,
    format_rate,
    format_short_count,
    format_short_number,
)


def describe_opening(run: RunProgress) -> str:
    return f"Evaluating {run.env} with {run.model}{describe_settings(run)}"


def describe_start(run: RunProgress) -> str:
    return f"Started{describe_settings(run)}"


def describe_settings(run: RunProgress) -> str:
    settings = ", ".join(f"{label} {value}" for label, value in run.settings)
    return f": {settings}" if settings else ""


def describe_progress(run: RunProgress) -> str:
    left = None if run.control.stopping else run.seconds_left
    pace = format_pace(format_rollout_count(run.finished, run.planned), run.per_second, left)
    return "; ".join([pace, describe_score(run), *describe_results(run)])


def describe_end(run: RunProgress) -> str:
    state = run.state if run.ended else "ended"
    count = format_rollout_count(run.finished, run.planned)
    after = f"{state.capitalize()} after {format_clock(run.seconds)}: {count}"
    return "; ".join([after, describe_final_score(run), *describe_results(run)])


def describe_end_with_reason(run: RunProgress) -> str:
    """For readers who see no report of it."""
    if run.ended and run.planned is None and not run.finished:
        return f"{run.state.capitalize()} before it began: {run.note}"
    return "; ".join([describe_end(run), run.note] if run.note else [describe_end(run)])


def describe_suite_progress(totals: Totals) -> str:
    left = None if totals.stopping() else totals.seconds_left
    pace = format_pace(format_suite_count(totals), totals.per_second, left)
    return "; ".join([f"All runs: {pace}", *describe_suite_results(totals)])


def describe_suite_end(totals: Totals) -> str:
    after = f"All runs ended after {format_clock(totals.seconds)}: {format_suite_count(totals)}"
    return "; ".join([after, *describe_suite_results(totals)])


def format_pace(count: str, per_second: float | None, seconds_left: float | None) -> str:
    left = "" if seconds_left is None else f", {format_clock(seconds_left)} left"
    return f"{count}, {format_rate(per_second)}{left}"


def format_rollout_count(finished: int, planned: int | None, guessed: bool = False) -> str:
    if planned is None:
        return f"{finished:,} rollouts"
    share = finished / planned if planned else 0.0
    return f"{finished:,}/{'~' if guessed else ''}{planned:,} rollouts ({share:.0%})"


def describe_results(run: RunProgress) -> list[str]:
    outcomes = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in run.outcomes())
    return [outcomes, describe_tokens(run)]


def describe_score(run: RunProgress) -> str:
    if run.score.mean is None:
        return "no score yet"
    interval = format_interval(run.score)
    return f"score {format_short_number(run.score.mean)}" + (f", {interval}" if interval else "")


def describe_final_score(run: RunProgress) -> str:
    """Without the interval of the display, which is rough: the report that follows has the real one."""
    return "no score" if run.score.mean is None else f"score {format_short_number(run.score.mean)}"


def describe_tokens(counted: RunProgress | Totals) -> str:
    read, written = map(format_short_count, (counted.input_tokens, counted.output_tokens))
    return f"tokens {read} in, {written} out"


def format_suite_count(totals: Totals) -> str:
    return format_rollout_count(totals.finished, totals.planned, not totals.is_counted)


def describe_suite_results(totals: Totals) -> list[str]:
    errors = [format_quantity(totals.failed, "error")] if totals.failed else []
    return [totals.states(), *errors, describe_tokens(totals)]
