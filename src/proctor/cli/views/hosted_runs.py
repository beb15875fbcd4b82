"""A run on a server, as text: one line, one page, or the report that local runs have.

Everything from outside is shown as plain text. Knows how things look, and nothing of where they come from.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from proctor.api.rollout_list import TaskGroup
from proctor.api.runs import Estimate, RunEvent, RunInfo, RunOrigin, RunSharing, run_page
from proctor.cli.views.escape import one_line, strip_escapes
from proctor.cli.views.formatting import (
    format_dollars,
    format_duration,
    format_moment,
    format_pairs,
    format_quantity,
    format_short_number,
)
from proctor.cli.views.jobs import EMPTY_CELL
from proctor.cli.views.lines import BAD, DIM, STRONG, Part, StyledLine, styled_line
from proctor.cli.views.page import TableColumn, cell, layout_paragraph, layout_table
from proctor.cli.views.printing import open_console, print_section
from proctor.cli.views.report import (
    error_rows,
    metric_rows,
    print_members,
    result_rows,
    rollout_rows,
    score_rows,
)
from proctor.cli.views.run_list import format_environment
from proctor.evaluation.execute import Result
from proctor.report.summary import Summary
from proctor.run import ENDED, Run
from proctor.store.export import ExportRow, format_conversation
from proctor.task import TaskId

# One run


def started_text(run: RunInfo, server_url: str) -> str:
    """What to print right after a run was started."""
    content = f" ({run.content_hash[:12]})" if run.content_hash else ""
    shown = run.name if run.origin is not None else run.id
    waiting = f", {format_quantity(run.queue_place, 'run')} before it" if run.queue_place else ""
    what = f"{one_line(format_environment(run))}{content} with {one_line(run.model)}"
    return (
        f"{shown}  {what}, {run.status}{waiting}\n"
        f"{f'  {one_line(run.waiting_because)}{chr(10)}' if run.waiting_because else ''}"
        f"  {run_page(server_url, run.id)}\n"
        f"  proctor eval logs {shown} -f\n"
        f"  proctor eval stop {shown}"
    )


def sharing_text(run_id: str, sharing: RunSharing) -> str:
    readers = {
        "private": "you",
        "team": "you and the run's team",
        "readers": "everyone who may read its environment",
        "link": "anyone with this link",
    }
    link = "" if sharing.link is None else f":\n{sharing.link}"
    return f"{run_id} can be read by {readers[sharing.visibility]}{link or '.'}"


def edited_text(run: RunInfo) -> str:
    tags = f" [{', '.join(map(one_line, run.tags))}]" if run.tags else ""
    return f"{run.id} {one_line(run.name)}{tags}{f': {one_line(run.note)}' if run.note else ''}"


def detached_text(runs: Sequence[RunInfo]) -> str:
    ids = " ".join(run.id for run in runs)
    goes = "The run continues" if len(runs) == 1 else "The runs continue"
    return f"{goes}. Wait again with: proctor eval wait {ids}; stop with: proctor eval stop {ids}"


def estimate_text(estimate: Estimate) -> str | None:
    """One line; None where there are no figures."""
    if estimate.likely_usd is None:
        return None
    if estimate.high_usd == 0.0:
        return "Costs nothing: the model is free."
    size = "" if estimate.rollouts is None else f" for {format_quantity(estimate.rollouts, 'rollout')}"
    spread = ""
    if estimate.low_usd is not None and estimate.high_usd is not None:
        spread = f" ({format_dollars(estimate.low_usd)} to {format_dollars(estimate.high_usd)})"
    left = "" if estimate.available_usd is None else f"; {format_dollars(estimate.available_usd)} available"
    likely = format_dollars(estimate.likely_usd)
    return f"May cost about {likely}{spread}{size}{left}. {one_line(estimate.basis)}"


def show_run(run: RunInfo, server_url: str, min_coverage: float) -> None:
    """Everything there is to say about a run; its report once it has one."""
    with open_console() as console:
        title = Text(strip_escapes(f"{format_environment(run)} · {run.model}"), style="bold")
        title.append(f"   {run.id}, {status_text(run)}", style="dim")
        console.print(title)
        console.print()
        print_section(console, "Run", run_rows(run, server_url))
        summary, progress = parse_summary(run), run.progress
        if summary is not None and (progress.planned or progress.settled):
            result = Result(run=to_local_run(run), summary=summary, folder=Path(), notable={})
            print_section(console, "Result", result_rows(summary, min_coverage))
            if run.settings.get("config_hash"):
                print_section(console, "Scores", score_rows(summary))
            print_section(console, "Metrics", metric_rows(summary))
            print_members(console, summary, min_coverage)
            print_section(console, "Rollouts", drop_cost_rows(rollout_rows(result, own_price=False)))
            if summary.errors or summary.cleanup_errors:
                print_section(console, "Errors", error_rows(summary))
        if run.cause is not None:
            style = "red" if run.status == "failed" else "yellow"
            console.print(
                Text(strip_escapes(f"{status_text(run).capitalize()}: {run.cause.message}"), style=style)
            )
            if run.cause.next_step:
                console.print(Text(strip_escapes(run.cause.next_step)))


def run_rows(run: RunInfo, server_url: str) -> list[tuple[str, str]]:
    progress = run.progress
    planned = "?" if progress.planned is None else f"{progress.planned:,}"
    granted = [name for name, value in msgspec.to_builtins(run.permissions).items() if value]
    rows = [
        ("name", run.name),
        ("tags", ", ".join(run.tags)),
        ("note", run.note),
        *origin_rows(run.origin),
        ("agent", run.agent or ""),
        ("runtime", run.runtime),
        ("started by", f"{run.owner} for {run.team}" if run.team else run.owner),
        ("content", run.content_hash or ""),
        ("settings", "" if run.origin is not None else format_pairs(run.settings)),
        ("used", format_pairs({name: value for name, value in run.resolved.items() if value})),
        ("may use", ", ".join(granted)),
        ("waiting", f"{format_quantity(run.queue_place, 'run')} before it" if run.queue_place else ""),
        ("no host", run.waiting_because),
        ("done", f"{progress.settled:,} of {planned} rollouts, {progress.failed:,} failed"),
        ("score", "" if progress.mean_reward is None else format_short_number(progress.mean_reward)),
        ("tokens", f"{run.input_tokens:,} in, {run.output_tokens:,} out"),
        ("cost", cost_text(run)),
        ("time limit", f"{run.timeout_minutes} minutes" if run.timeout_minutes else ""),
        ("attempts", f"{run.attempt}, because it was started again" if run.attempt > 1 else ""),
        ("created", format_moment(run.created_at)),
        ("started", "" if run.started_at is None else format_moment(run.started_at)),
        ("ended", "" if run.ended_at is None else format_moment(run.ended_at)),
        ("page", run_page(server_url, run.id)),
    ]
    return [(label, value) for label, value in rows if value]


def origin_rows(origin: RunOrigin | None) -> list[tuple[str, str]]:
    """Where the code and the data of a submitted run come from."""
    if origin is None:
        return []
    data = origin.dataset
    return [
        ("rollout", f"{origin.rollout}/{origin.entrypoint} of {origin.source}"),
        ("commit", f"{origin.commit_sha} on {origin.branch}" if origin.branch else origin.commit_sha),
        ("dataset", f"{data.name}.{data.format} ({data.sha256[:12]}), {data.selected_rows:,} rows selected"),
        ("recipe", origin.config_hash),
    ]


def status_text(run: RunInfo) -> str:
    status = run.status.replace("_", " ")
    if run.status in ENDED and run.ended_at is not None:
        return f"{status} after {format_duration(run.ended_at - (run.started_at or run.created_at))}"
    return status


def cost_text(run: RunInfo) -> str:
    cost = "" if run.cost_usd is None else format_dollars(run.cost_usd)
    if run.max_cost_usd is None:
        return cost
    return f"{cost or 'not known'}, at most {format_dollars(run.max_cost_usd)}"


def drop_cost_rows(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The server's own figure stands above; list prices would only contradict it."""
    return [row for row in rows if row[0] != "cost"]


def parse_summary(run: RunInfo) -> Summary | None:
    """The report, if there is one that this version can read."""
    try:
        return None if run.summary is None else msgspec.convert(run.summary, Summary)
    except msgspec.ValidationError:
        return None


def to_local_run(run: RunInfo) -> Run:
    return Run(
        id=run.id,
        env_id=run.environment,
        model=run.model,
        status=run.status,
        started_at=run.started_at or run.created_at,
        ended_at=run.ended_at,
        note=run.cause.message if run.cause is not None else "",
    )


# Logs and rows


def event_text(event: RunEvent) -> str:
    """A log line, or what else happened, as one line of a log."""
    stamp = time.strftime("%H:%M:%S", time.localtime(event.at))
    if event.kind == "log":
        return f"{stamp} {one_line(event.level or 'INFO')} {one_line(event.text)}"
    cause = f": {one_line(event.cause.message)}" if event.cause is not None else ""
    return f"{stamp} STATUS {event.status}{cause or (f': {one_line(event.text)}' if event.text else '')}"


def task_result_lines(found: Sequence[TaskGroup], width: int | None) -> Iterator[StyledLine]:
    columns = [
        TableColumn("task", may_shrink=True),
        TableColumn("rollouts", right=True),
        TableColumn("failed", right=True),
        TableColumn("mean", right=True),
        TableColumn("spread", right=True),
        TableColumn("lowest", right=True),
        TableColumn("highest", right=True),
    ]
    rows = (
        [
            cell(str(result.task), STRONG),
            cell(f"{result.rollouts:,}"),
            cell(f"{result.failed:,}", BAD if result.failed else ""),
            *map(reward_cell, (result.mean, result.spread, result.lowest, result.highest)),
        ]
        for result in found
    )
    yield from layout_table(columns, rows, width)


def reward_cell(value: float | None) -> Part:
    return EMPTY_CELL if value is None else cell(format_short_number(value))


def grouped_sample_lines(
    rows: Iterable[ExportRow], results: Mapping[TaskId, TaskGroup], *, full: bool, width: int | None
) -> Iterator[StyledLine]:
    """Rollouts in task order, those of a task that was played several times under its figures."""
    before: TaskId | None = None
    for row in rows:
        if row.example_id != before and row.example_id in results:
            yield styled_line((task_heading(results[row.example_id]), STRONG))
            yield styled_line()
        before = row.example_id
        yield from sample_lines(row, full=full, width=width)


def task_heading(result: TaskGroup) -> str:
    figures = [format_quantity(result.rollouts, "rollout")]
    if result.mean is not None:
        spread = "" if result.spread is None else f" ± {format_short_number(result.spread)}"
        figures.append(f"mean {format_short_number(result.mean)}{spread}")
    if result.failed:
        figures.append(f"{result.failed:,} failed")
    return f"Task {one_line(str(result.task))}: {', '.join(figures)}"


def sample_lines(row: ExportRow, *, full: bool, width: int | None) -> Iterator[StyledLine]:
    reward = "–" if row.reward is None else format_short_number(row.reward)
    style = STRONG if row.reward is not None else BAD
    yield styled_line(
        (f"task {one_line(str(row.example_id))} · rollout {row.rollout}", STRONG), f"  {row.outcome}  "
    )
    yield styled_line(("  reward ", DIM), (reward, style))
    parts: Mapping[str, Any] = {
        "prompt": format_conversation(row.prompt),
        "completion": format_conversation(row.completion),
        "answer": row.answer if isinstance(row.answer, str) else msgspec.json.encode(row.answer).decode(),
        "error": f"{row.error.error}: {row.error.message}" if row.error is not None else "",
    }
    for label, text in parts.items():
        if text and text != "null":
            yield styled_line((f"  {label}", DIM))
            yield from layout_paragraph(text, width, indent="    ", full=full)
    yield styled_line("")
