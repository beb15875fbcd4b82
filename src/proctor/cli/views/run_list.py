"""The table of `proctor eval list`: the runs on a server, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.api.runs import RunInfo
from proctor.cli.views.formatting import format_dollars, format_short_number
from proctor.cli.views.jobs import EMPTY_CELL, format_recency
from proctor.cli.views.lines import BAD, DIM, STRONG, WARN, Part, StyledLine, styled_line
from proctor.cli.views.page import TableColumn, cell, layout_table

STATUS_STYLES = {"failed": BAD, "timed_out": WARN, "stopped": WARN, "stopping": WARN, "pending": DIM}


def format_environment(run: RunInfo) -> str:
    return f"{run.environment}@{run.version}" if run.version else run.environment


def run_lines(runs: Sequence[RunInfo], more: bool, width: int | None) -> Iterator[StyledLine]:
    columns = [
        TableColumn("id"),
        TableColumn("name", may_shrink=True),
        TableColumn("environment", may_shrink=True),
        TableColumn("model", may_shrink=True),
        TableColumn("agent"),
        TableColumn("owner"),
        TableColumn("status"),
        TableColumn("kind"),
        TableColumn("runtime"),
        TableColumn("done", right=True),
        TableColumn("score", right=True),
        TableColumn("cost", right=True),
        TableColumn("started"),
    ]
    says_nothing = {
        *(() if any(run.name for run in runs) else ("name",)),
        *(() if any(run.kind != "hosted" for run in runs) else ("kind",)),
        *(() if any(run.agent for run in runs) else ("agent",)),
        *(() if any(run.runtime not in ("", "hosted") for run in runs) else ("runtime",)),
    }
    shown = [number for number, column in enumerate(columns) if column.name not in says_nothing]
    rows = ([run_cells(run)[number] for number in shown] for run in runs)
    yield from layout_table([columns[number] for number in shown], rows, width)
    if more:
        yield styled_line(("… and older ones; -n -1 shows all.", DIM))


def server_lines(runs: Sequence[RunInfo], more: bool, width: int | None) -> Iterator[StyledLine]:
    """The runs on a server, under a heading that tells them from those that are here."""
    yield styled_line(("On the server", STRONG))
    yield from run_lines(runs, more, width)


def run_cells(run: RunInfo) -> list[Part]:
    progress = run.progress
    planned = "?" if progress.planned is None else f"{progress.planned:,}"
    return [
        cell(run.id, STRONG),
        cell(run.name) if run.name else EMPTY_CELL,
        cell(format_environment(run)),
        cell(run.model),
        cell(run.agent) if run.agent else EMPTY_CELL,
        cell(f"{run.owner} for {run.team}" if run.team else run.owner),
        cell(run.status, STATUS_STYLES.get(run.status, "")),
        cell(run.kind),
        cell(run.runtime) if run.runtime else EMPTY_CELL,
        cell(f"{progress.settled:,}/{planned}"),
        EMPTY_CELL if progress.mean_reward is None else (format_short_number(progress.mean_reward), STRONG),
        EMPTY_CELL if run.cost_usd is None else cell(format_dollars(run.cost_usd)),
        cell(format_recency(run.started_at or run.created_at)),
    ]
