"""Show a finished run, or the plan of one that was not started, as text.

Everything that came from a model or an environment is shown as it is: never as markup, never as
terminal codes. Knows how things look, and nothing of how they were computed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proctor.cli.text import clean
from proctor.config.prices import AS_OF
from proctor.evaluation import Prepared, Result
from proctor.report import Summary
from proctor.rollout import RolloutKey
from proctor.stats import Estimate
from proctor.store.folder import read_rows
from proctor.trace import text_of

WIDTH_WITHOUT_TERMINAL = 100
SHOWN_LINES = 6
SHOWN_ERRORS = 8
SHOWN_METRICS = 30


def show_report(result: Result, prepared: Prepared, *, examples: bool) -> None:
    with printed() as console:
        write_report(console, result, prepared, examples=examples)


def write_report(console: Console, result: Result, prepared: Prepared, *, examples: bool) -> None:
    summary = result.summary
    console.print(title(result))
    console.print()
    section(console, "Settings", settings_rows(prepared))
    section(console, "Result", result_rows(result, prepared.config.min_coverage))
    section(console, "Metrics", metric_rows(summary))
    section(console, "Rollouts", rollout_rows(result))
    if summary.errors or summary.cleanup_errors:
        section(console, "Errors", error_rows(summary))
    if examples and summary.finished:
        show_examples(console, result)
    section(console, "Kept in", [("", str(result.folder))])
    if result.run.status == "stopped":
        console.print(Text(f"Stopped early. Go on with: --resume {result.folder}", style="yellow"))
    if result.run.status == "failed":
        console.print(Text(f"Failed: {result.run.note}", style="red"))


@contextmanager
def printed() -> Iterator[Console]:
    """A console whose text goes to stdout without the blanks that tables end their lines with."""
    console = Console(width=None if sys.stdout.isatty() else width_asked_for(), highlight=False)
    with console.capture() as text:
        yield console
    encoding = sys.stdout.encoding or "utf-8"
    for line in text.get().splitlines():
        sys.stdout.write(f"{line.rstrip()}\n".encode(encoding, "replace").decode(encoding))


def width_asked_for() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else WIDTH_WITHOUT_TERMINAL


def section(console: Console, name: str, rows: Iterable[tuple[str, str | Text]]) -> None:
    rows = list(rows)
    if not rows:
        return
    console.print(Text(name, style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(Text(clean(label)), value if isinstance(value, Text) else Text(clean(value)))
    console.print(Padding(grid, (0, 0, 1, 2)))


def title(result: Result) -> Text:
    run = result.run
    seconds = (run.ended_at or run.started_at) - run.started_at
    line = Text(f"{run.env_id} · {run.model}", style="bold")
    line.append(f"   run {run.id}, {run.status} after {duration(seconds)}", style="dim")
    return line


def settings_rows(prepared: Prepared) -> list[tuple[str, str]]:
    config, endpoint = prepared.config, prepared.endpoint
    rows = [
        ("endpoint", f"{endpoint.url or 'in this process'} ({endpoint.client_type})"),
        ("tasks", f"{prepared.selection()}, {config.rollouts_per_example} rollouts each"),
        ("sampling", pairs(config.sampling()) or "model defaults"),
    ]
    if config.env_args:
        rows.append(("arguments", pairs(config.env_args)))
    if config.extra_env_kwargs:
        rows.append(("set on it", pairs(config.extra_env_kwargs)))
    rows.append(
        (
            "at once",
            (
                f"{config.max_concurrent} rollouts; {config.max_retries} retries; "
                f"{config.timeout:g} s a rollout, {config.scoring_timeout:g} s to score"
            ),
        )
    )
    origin = sorted(f"{name} from {source}" for name, source in prepared.origins.items() if source != "flag")
    if origin:
        rows.append(("defaults", "; ".join(origin)))
    return rows


def result_rows(result: Result, min_coverage: float) -> list[tuple[str, str | Text]]:
    summary = result.summary
    rows: list[tuple[str, str | Text]] = [("reward", headline_text(summary, min_coverage))]
    if summary.bounds is not None:
        rows.append(
            (
                "bounds",
                (
                    f"{number(summary.bounds.low)} if all that was not scored had failed, "
                    f"{number(summary.bounds.high)} if it had passed"
                ),
            )
        )
    rows.append(("coverage", coverage_text(summary, min_coverage)))
    for label, values in (("pass@k", summary.pass_at_k), ("pass^k", summary.pass_hat_k)):
        if values:
            shown = "   ".join(f"{label[:-1]}{k} {number(value)}" for k, value in values.items())
            rows.append((label, f"{shown}   (reward ≥ {summary.pass_threshold:g})"))
    return rows


def headline_text(summary: Summary, min_coverage: float) -> Text:
    if summary.reward.mean is None:
        return Text("nothing was scored", style="red")
    text = Text(number(summary.reward.mean), style="bold")
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
    if excluded:
        text.append(f", {excluded:,} left out by the environment")
    text.append(f", over {summary.tasks:,} tasks")
    return text


def interval_text(estimate: Estimate) -> str:
    interval = estimate.interval
    if interval is None:
        why = "one task" if estimate.n == 1 else f"{estimate.n} tasks that all agree"
        return f"no interval ({why})"
    se = "" if estimate.se is None else f", SE {number(estimate.se)}"
    return (
        f"{interval.level:.0%} interval {number(interval.low)} – {number(interval.high)} "
        f"({interval.kind} over {estimate.n:,} tasks{se})"
    )


def spread_text(estimate: Estimate) -> str:
    """A metric may be a count or a rate; without any spread its interval would be a guess at which."""
    return interval_text(estimate) if estimate.se is not None else "the same on every task"


def metric_rows(summary: Summary) -> list[tuple[str, str]]:
    shown = list(summary.metrics.items())[:SHOWN_METRICS]
    rows = [
        (name, f"{number(estimate.mean)}   {spread_text(estimate)}")
        for name, estimate in shown
        if estimate.mean is not None
    ]
    if len(summary.metrics) > SHOWN_METRICS:
        rows.append(("", f"and {len(summary.metrics) - SHOWN_METRICS} more in metadata.json"))
    return rows


def rollout_rows(result: Result) -> list[tuple[str, str]]:
    summary, run = result.summary, result.run
    rows = [("outcomes", counts(summary.outcomes))]
    stops = {name: count for name, count in summary.stop_conditions.items() if name != "none"}
    if stops:
        rows.append(("stopped by", counts(stops)))
    if summary.retried:
        rows.append(("retried", f"{summary.retried:,} rollouts needed more than one try"))
    if summary.seconds is not None:
        seconds = summary.seconds
        wall = (run.ended_at or run.started_at) - run.started_at
        rows.append(
            (
                "time",
                (
                    f"median {duration(seconds.median)}, 90 % within {duration(seconds.p90)}, "
                    f"longest {duration(seconds.longest)}; {duration(wall)} in all"
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
        (f"  {clean(model)}", f"{usage.input_tokens:,} in, {usage.output_tokens:,} out")
        for model, usage in summary.other_usage.items()
    ]
    if summary.cost_usd is not None:
        without = f", without {', '.join(summary.unpriced_models)}" if summary.unpriced_models else ""
        rows.append(("cost", f"${summary.cost_usd:,.4f} at list prices of {AS_OF}{without}"))
    return rows


def error_rows(summary: Summary) -> list[tuple[str, str]]:
    rows = []
    for group in summary.errors[:SHOWN_ERRORS]:
        where = f"task {group.task}, rollout {group.rollout}"
        rows.append((f"{group.count:,} × {group.outcome}", f"{group.kind}: {clean(group.sample)} ({where})"))
    hidden = len(summary.errors) - SHOWN_ERRORS
    if hidden > 0:
        rows.append(("", f"and {hidden} more kinds in metadata.json"))
    rows += [
        (f"{group.count:,} × cleanup", f"{group.kind}: {clean(group.sample)}; the scores stand")
        for group in summary.cleanup_errors[:SHOWN_ERRORS]
    ]
    return rows


def show_examples(console: Console, result: Result) -> None:
    rows = read_rows(result.folder, result.notable)
    console.print(Text("Examples", style="bold"))
    for key, reason in result.notable.items():
        if key in rows:
            console.print(Padding(example(key, reason, rows[key], console.width), (0, 0, 1, 2)))


def example(key: RolloutKey, reason: str, row: Mapping[str, Any], width: int) -> Table:
    reward = row.get("reward")
    verdict = row["outcome"].replace("_", " ") if reward is None else f"reward {number(reward)}"
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    why = "" if reason == verdict else f"{reason}: "
    heading = clean(f"{why}task {key[0]}, rollout {key[1]}, {verdict}")
    grid.add_row(Text(""), Text(heading, style="underline"))
    for message in [*excerpt(row["prompt"]), *excerpt(row["completion"])]:
        grid.add_row(Text(clean(role_of(message))), shortened(message_text(message), width))
    if row.get("answer") not in ("", None):
        grid.add_row(Text("answer"), shortened(str(row["answer"]), width))
    error = row.get("error")
    if error:
        grid.add_row(Text("error", style="red"), shortened(f"{error['error']}: {error['message']}", width))
    return grid


def excerpt(messages: Sequence[Any]) -> Sequence[Any]:
    """The ends of a conversation."""
    return messages if len(messages) <= 4 else [*messages[:2], *messages[-2:]]


def role_of(message: Any) -> str:
    return str(message.get("role", "?")) if isinstance(message, dict) else "?"


def message_text(message: Any) -> str:
    """What a message says; an environment may have put anything there."""
    if not isinstance(message, dict):
        return str(message)
    calls = message.get("tool_calls") or []
    parts = [text_of(message), *(call_text(call) for call in calls)]
    return "\n".join(part for part in parts if part) or "(nothing)"


def call_text(call: Any) -> str:
    """A tool call, in our shape or in that of OpenAI."""
    made = call.get("function", call) if isinstance(call, dict) else None
    return f"→ {made.get('name')}({made.get('arguments')})" if isinstance(made, dict) else f"→ {call}"


def shortened(text: str, width: int) -> Text:
    lines = clean(text).splitlines() or [""]
    most = max(20, width - 16) * 2
    shown = [line if len(line) <= most else line[:most] + " …" for line in lines[:SHOWN_LINES]]
    if len(lines) > SHOWN_LINES:
        shown.append(f"… {len(lines) - SHOWN_LINES} more lines")
    return Text("\n".join(shown))


def counts(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in values.items())


def pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"


def duration(seconds: float) -> str:
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
