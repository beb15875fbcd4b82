"""The report of a finished run, as text. Knows how things look, and nothing of how they were computed."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.text import Text

from proctor.cli.views.bars import draw_levels
from proctor.cli.views.dry_run import count_tasks, settings_rows
from proctor.cli.views.escape import strip_escapes
from proctor.cli.views.examples import show_examples
from proctor.cli.views.formatting import (
    describe_phase,
    format_counts,
    format_dollars,
    format_duration,
    format_number,
    format_quantity,
)
from proctor.cli.views.printing import open_console, prices_text, print_section
from proctor.evaluation.evaluate import Prepared, Result
from proctor.report.summary import Summary
from proctor.stats.mean import MeanEstimate
from proctor.trace import Usage

SHOWN_ERRORS = 8
SHOWN_METRICS = 30


def show_report(result: Result, prepared: Prepared, *, examples: bool) -> None:
    with open_console() as console:
        write_report(console, result, prepared, examples=examples)


def write_report(console: Console, result: Result, prepared: Prepared, *, examples: bool) -> None:
    summary = result.summary
    console.print(report_title(result))
    console.print()
    print_section(console, "Settings", settings_rows(prepared, count_tasks(prepared, summary.planned)))
    print_section(
        console, "Result", [*result_rows(summary, prepared.config.min_coverage), *stop_rows(result)]
    )
    if prepared.config.config_hash:
        print_section(console, "Scores", score_rows(summary))
    print_section(console, "Metrics", metric_rows(summary))
    print_members(console, summary, prepared.config.min_coverage)
    print_section(console, "Rollouts", rollout_rows(result, own_price=prepared.endpoint.price is not None))
    if summary.errors or summary.cleanup_errors:
        print_section(console, "Errors", error_rows(summary))
    if examples and summary.finished:
        show_examples(console, result)
    console.print(Text("Kept in", style="bold"))
    console.print(
        Text(f"  {strip_escapes(str(result.folder))}\n"), soft_wrap=True
    )  # a broken path cannot be copied
    if result.run.status == "stopped":
        console.print(Text(stopped_text(result, prepared), style="yellow"), soft_wrap=True)
    if result.run.status == "failed":
        console.print(Text(f"Failed: {result.run.note}", style="red"))


def stopped_text(result: Result, prepared: Prepared) -> str:
    """Why a run stopped, if that is known, and how to continue it."""
    why = f"Stopped early: {result.run.note}." if result.run.note else "Stopped early."
    limit = " --max-cost MORE" if prepared.config.max_cost is not None and result.run.note else ""
    return f"{why} Continue with: --resume {quote(strip_escapes(str(result.folder)))}{limit}"


def report_title(result: Result) -> Text:
    run = result.run
    seconds = (run.ended_at or run.started_at) - run.started_at
    named = " · ".join(part for part in (run.env_id, run.model, run.label) if part)
    line = Text(named, style="bold")
    line.append(f"   run {run.id}, {run.status} after {format_duration(seconds)}", style="dim")
    return line


def print_members(console: Console, summary: Summary, min_coverage: float) -> None:
    """A block for each of several environments that ran as one."""
    for name, member in summary.members.items():
        metrics = [(f"  {label}", text) for label, text in metric_rows(member)]
        print_section(console, f"Member {name}", [*result_rows(member, min_coverage), *metrics])


def result_rows(summary: Summary, min_coverage: float) -> list[tuple[str, str | Text]]:
    rows: list[tuple[str, str | Text]] = [("reward", headline_text(summary, min_coverage))]
    if summary.bounds is not None:
        rows.append(
            (
                "bounds",
                (
                    f"{format_number(summary.bounds.low)} if all that was not scored had failed, "
                    f"{format_number(summary.bounds.high)} if it had passed"
                ),
            )
        )
    rows.append(("coverage", coverage_text(summary, min_coverage)))
    if (spread := summary.rewards) is not None:
        picture = f"{spread.low:g} {draw_levels(spread.counts)} {spread.high:g}"
        rows.append(("spread", f"{picture}   rewards of {format_quantity(summary.scored, 'rollout')}"))
    for label, values in (("pass@k", summary.pass_at_k), ("pass^k", summary.pass_hat_k)):
        if values:
            shown = "   ".join(f"{label[:-1]}{k} {format_number(value)}" for k, value in values.items())
            curve = draw_levels(list(values.values()), top=1.0)
            rows.append((label, f"{shown}   {curve} (reward ≥ {summary.pass_threshold:g})"))
    return rows


def stop_rows(result: Result) -> list[tuple[str, str]]:
    """What the stopping rule saw, if there was one."""
    if result.early_stop is None:
        return []
    return [
        ("early stop", result.early_stop.text),
        ("", "which allows for looking after every task; the interval of the reward is for a single look"),
    ]


def score_rows(summary: Summary) -> list[tuple[str, str]]:
    """The numbers of a recipe, each with what it is a share of."""
    scores = summary.scores
    if scores.pass_rate is None:
        return [("pass rate", "nothing was played")]
    rate = f"{format_number(scores.pass_rate)}   {scores.passed:,} of {scores.attempts:,} attempts"
    graded = "-" if scores.reward_over_graded is None else format_number(scores.reward_over_graded)
    every = format_number(scores.reward_over_all or 0.0)
    rows = [
        ("pass rate", f"{rate} (reward ≥ {summary.pass_threshold:g})"),
        ("reward", f"{graded} over the {scores.graded:,} graded attempts"),
        ("", f"{every} over all {scores.attempts:,}, failed ones as 0"),
    ]
    if scores.failed or scores.skipped:
        counts = f"{scores.graded:,} graded, {scores.failed:,} failed, {scores.skipped:,} skipped"
        rows.append(("attempts", counts))
    return rows


def headline_text(summary: Summary, min_coverage: float) -> Text:
    if summary.reward.mean is None:
        return Text("nothing was scored", style="red")
    text = Text(format_number(summary.reward.mean), style="bold")
    text.append(f"   {interval_text(summary.reward)}", style="not bold")
    if summary.coverage is not None and summary.coverage < min_coverage:
        text.append("   no verdict: coverage is below the minimum", style="not bold red")
    return text


def coverage_text(summary: Summary, min_coverage: float) -> Text:
    excluded = summary.outcomes.get("excluded", 0)
    planned = "?" if summary.planned is None else f"{summary.planned - excluded:,}"
    text = Text(f"{summary.scored:,} of {planned} rollouts scored")
    if summary.coverage is not None:
        style = "green" if summary.coverage >= min_coverage else "red"
        text.append(f" ({summary.coverage:.1%})", style=style)
    if summary.timed_out:
        text.append(f", {summary.timed_out:,} of them cut short by --timeout", style="yellow")
    if excluded:
        text.append(f", {excluded:,} left out by the environment")
    text.append(f", over {summary.tasks:,} {'task' if summary.tasks == 1 else 'tasks'}")
    return text


def interval_text(estimate: MeanEstimate) -> str:
    interval = estimate.interval
    if interval is None:
        why = "one task" if estimate.n == 1 else f"{estimate.n} tasks that all agree"
        return f"no interval ({why})"
    se = "" if estimate.se is None else f", SE {format_number(estimate.se)}"
    return (
        f"{interval.level:.0%} interval {format_number(interval.low)} – {format_number(interval.high)} "
        f"({interval.kind} over {estimate.n:,} {'task' if estimate.n == 1 else 'tasks'}{se})"
    )


def spread_text(estimate: MeanEstimate) -> str:
    """A metric may be a count or a rate; without any spread its interval would be a guess at which."""
    return interval_text(estimate) if estimate.se is not None else "the same on every task"


def metric_rows(summary: Summary) -> list[tuple[str, str]]:
    shown = list(summary.metrics.items())[:SHOWN_METRICS]
    rows = [
        (name, f"{format_number(estimate.mean)}   {spread_text(estimate)}")
        for name, estimate in shown
        if estimate.mean is not None
    ]
    if len(summary.metrics) > SHOWN_METRICS:
        rows.append(("", f"and {len(summary.metrics) - SHOWN_METRICS} more in metadata.json"))
    return rows


def rollout_rows(result: Result, *, own_price: bool) -> list[tuple[str, str]]:
    summary, run = result.summary, result.run
    rows = [("outcomes", format_counts(summary.outcomes))]
    if result.taken_over is not None:
        rows.append(("resumed", result.taken_over.describe()))
        rows += [
            ("changed", f"{change['setting']} was {change['before']} until {change['at']}")
            for change in result.taken_over.accepted_changes
        ]
    stops = {name: count for name, count in summary.stop_conditions.items() if name != "none"}
    if stops:
        rows.append(("stopped by", format_counts(stops)))
    if summary.retried:
        rows.append(("retried", f"{summary.retried:,} rollouts needed more than one try"))
    if summary.seconds is not None:
        seconds = summary.seconds
        wall = (run.ended_at or run.started_at) - run.started_at
        rows.append(
            (
                "time",
                (
                    f"median {format_duration(seconds.median)}, 90% within {format_duration(seconds.p90)}, "
                    f"longest {format_duration(seconds.longest)}; {format_duration(wall)} in all"
                ),
            )
        )
    usage = summary.usage
    tokens = f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"
    if usage.cached_tokens:
        tokens += f", {usage.cached_tokens:,} of the input cached"
    if usage.reasoning_tokens:
        tokens += f", {usage.reasoning_tokens:,} of the output reasoning"
    rows.append(("tokens", tokens))
    rows += [
        (f"  {strip_escapes(model)}", f"{usage.input_tokens:,} in, {usage.output_tokens:,} out")
        for model, usage in summary.other_usage.items()
    ]
    if summary.cost_usd is not None:
        without = f", without {', '.join(summary.unpriced_models)}" if summary.unpriced_models else ""
        prices = prices_text(own=own_price, listed=not own_price or bool(summary.other_usage))
        rows.append(("cost", f"{format_dollars(summary.cost_usd)} {prices}{without}"))
    if summary.reused_replies:
        rows.append(("reused", describe_reused(summary)))
    return rows


def describe_reused(summary: Summary) -> str:
    """How many replies were not asked for, and what that saved."""
    calls = sum(reused.calls for reused in summary.reused_replies.values())
    total = sum((reused.usage for reused in summary.reused_replies.values()), Usage())
    text = f"{calls:,} {'reply' if calls == 1 else 'replies'} not asked for again"
    text += f" ({total.input_tokens:,} tokens in, {total.output_tokens:,} out)"
    return text if summary.saved_usd is None else f"{text}, which saved {format_dollars(summary.saved_usd)}"


def shorten_location(location: str) -> str:
    """A line of code relative to where you are, if it is below."""
    return location.removeprefix(f"{Path.cwd()}/")


def error_rows(summary: Summary) -> list[tuple[str, str]]:
    rows = []
    for group in summary.errors[:SHOWN_ERRORS]:
        when = f"{describe_phase(group.phase)}, " if group.phase else ""
        at = f"{strip_escapes(shorten_location(group.location))}; " if group.location else ""
        where = f"{at}{when}task {group.task}, rollout {group.rollout}"
        rows.append(
            (f"{group.count:,} × {group.outcome}", f"{group.kind}: {strip_escapes(group.sample)} ({where})")
        )
    hidden = len(summary.errors) - SHOWN_ERRORS
    if hidden > 0:
        rows.append(("", f"and {hidden} more kinds in metadata.json"))
    rows += [
        (f"{group.count:,} × cleanup", f"{group.kind}: {strip_escapes(group.sample)}; the scores stand")
        for group in summary.cleanup_errors[:SHOWN_ERRORS]
    ]
    return rows
