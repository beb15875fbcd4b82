"""Scores over time as a table, with every interval drawn on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from proctor.cli.views.bars import BarScale
from proctor.cli.views.formatting import format_interval, format_moment, format_short_number
from proctor.cli.views.page import TableColumn, page_width, print_table
from proctor.stats.mean import MeanEstimate

if TYPE_CHECKING:
    from proctor.api.runs import RunInfo
    from proctor.store.index import StoredRun

SHOWN_DIGITS = 12
BAR = 24
ROOM_FOR_BARS = 110
"""On narrower screens the numbers are enough."""


class HistoryEntry(msgspec.Struct, frozen=True):
    """One run in a history."""

    at: float
    named: tuple[str, ...]
    """What it is, in columns."""
    status: str
    mean: float | None
    reward: MeanEstimate | None
    pass_rate: float | None = None


def stored_entry(run: StoredRun) -> HistoryEntry:
    mean = None if run.reward is None else run.reward.mean
    return HistoryEntry(run.started_at, (run.id, run.model, run.label), run.status, mean, run.reward)


def hosted_entry(run: RunInfo) -> HistoryEntry:
    from proctor.cli.views.hosted_runs import parse_summary

    summary, origin = parse_summary(run), run.origin
    commit, branch = ("", "") if origin is None else (origin.commit_sha[:SHOWN_DIGITS], origin.branch)
    return HistoryEntry(
        run.created_at,
        (commit, branch, run.name),
        run.status,
        run.progress.mean_reward if summary is None else summary.reward.mean,
        None if summary is None else summary.reward,
        None if summary is None else summary.scores.pass_rate,
    )


def show_history(entries: Sequence[HistoryEntry], found: int, next_step: str = "") -> None:
    is_recipe = bool(next_step)
    names = ("commit", "branch", "name") if is_recipe else ("run", "model", "label")
    columns = [
        TableColumn("submitted" if is_recipe else "started"),
        *(TableColumn(name, may_shrink=name in ("name", "model", "label")) for name in names),
        TableColumn("status"),
        TableColumn("score", right=True),
    ]
    bars = draw_bars(entries) if (page_width() or ROOM_FOR_BARS) >= ROOM_FOR_BARS else []
    columns += [TableColumn("")] if bars else []
    columns.append(TableColumn("interval", may_shrink=True))
    columns += [TableColumn("pass rate", right=True)] if is_recipe else []
    rows = [
        (
            format_moment(entry.at),
            *entry.named,
            entry.status,
            format_optional(entry.mean),
            *bars[index : index + 1],
            "" if entry.reward is None else format_interval(entry.reward),
            *((format_optional(entry.pass_rate),) if is_recipe else ()),
        )
        for index, entry in enumerate(entries)
    ]
    print_table(columns, rows, nothing=f"No runs of this recipe; {next_step}.")
    if found > len(entries):
        from proctor.cli.views.escape import echo

        echo(f"… and {found - len(entries)} older; -n -1 shows all.", err=True)


def draw_bars(entries: Sequence[HistoryEntry]) -> list[str]:
    """The interval of each, or its mean, on a scale that all of them share."""
    ends = [
        end
        for entry in entries
        if entry.mean is not None
        for end in (entry.mean, *interval_ends(entry.reward))
    ]
    if not ends:
        return []
    scale = BarScale(min(ends), max(ends), BAR)
    return ["" if entry.mean is None else draw_bar(scale, entry.mean, entry.reward) for entry in entries]


def draw_bar(scale: BarScale, mean: float, reward: MeanEstimate | None) -> str:
    low, high = interval_ends(reward) or (None, None)
    return scale.interval(low, mean, high).ljust(scale.width).replace(" ", "·")


def interval_ends(reward: MeanEstimate | None) -> tuple[()] | tuple[float, float]:
    if reward is None or reward.interval is None:
        return ()
    return reward.interval.low, reward.interval.high


def format_optional(value: float | None) -> str:
    return "–" if value is None else format_short_number(value)
