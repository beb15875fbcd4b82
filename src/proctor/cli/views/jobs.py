"""Runs and their rollouts as tables. Everything from outside is shown as plain text."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import (
    format_duration,
    format_moment,
    format_quantity,
    format_short_count,
    format_short_number,
)
from proctor.cli.views.lines import BAD, DIM, STRONG, WARN, Part, StyledLine, styled_line
from proctor.cli.views.page import TableColumn, cell, layout_paragraph, layout_table
from proctor.cli.views.stdout import encode_json
from proctor.rollout import is_settled
from proctor.stats.mean import MeanEstimate
from proctor.store.index import DAMAGED, INTERRUPTED, StoredRun, expand_path
from proctor.store.traces import Brief, RolloutCounts

STATUS_STYLES = {"failed": BAD, DAMAGED: BAD, INTERRUPTED: WARN, "stopped": WARN}
EMPTY_CELL: Part = ("–", DIM)
FAMILIAR_ERRORS = {"AgentError", "DeadlineError", "EnvError", "ExcludedError", "GraderError", "ModelError"}
"""Kinds of error that say no more than the outcome."""
TODAY_SECONDS = 18 * 3600
YEAR_SECONDS = 300 * 24 * 3600


# Runs


def run_lines(runs: Sequence[StoredRun], found: int, width: int | None) -> Iterator[StyledLine]:
    shown = list(wide_lines(runs))
    if width is not None and shown[0].width > width:
        yield from narrow_lines(runs, width)
    else:
        folders = [("folder", DIM), *(cell(shorten_folder(run.folder)) for run in runs)]
        widest = max(each.width for each in shown)
        has_room = width is None or widest + 2 + max(len(text) for text, _ in folders) <= width
        for each, folder in zip(shown, folders, strict=True):
            yield each + styled_line(" " * (widest + 2 - each.width), folder) if has_room else each
    for run in runs:
        if run.status == DAMAGED:
            yield styled_line((f"{one_line(run.id)}: ", BAD), one_line(run.note))
    if found > len(runs):
        yield styled_line((f"… {format_quantity(found - len(runs), 'older run')}; -n -1 shows all.", DIM))


def wide_lines(runs: Sequence[StoredRun]) -> Iterator[StyledLine]:
    named = [name for name in ("label", "agent", "runtime") if any(getattr(run, name) for run in runs)]
    extra = [TableColumn(name) for name in named]
    columns = [TableColumn("run"), TableColumn("environment"), TableColumn("model"), *extra, *FIGURES]
    rows = [
        [
            *name_cells(run, run.model),
            *(cell(getattr(run, name)) for name in named),
            *figure_cells(run, f"{run.settled}/{run.planned}"),
        ]
        for run in runs
    ]
    return layout_table(columns, rows, None)


def narrow_lines(runs: Sequence[StoredRun], width: int) -> Iterator[StyledLine]:
    """Labels, agents and runtimes on lines of their own, models without their makers, large numbers in
    short."""
    columns = [
        TableColumn("run"),
        TableColumn("environment", may_shrink=True),
        TableColumn("model", may_shrink=True),
        *FIGURES,
    ]
    rows = [
        [
            *name_cells(run, run.model.rpartition("/")[2]),
            *figure_cells(
                run, f"{format_short_count(run.settled or 0)}/{format_short_count(run.planned or 0)}"
            ),
        ]
        for run in runs
    ]
    head, *lines = layout_table(columns, rows, width)
    yield head
    for run, each in zip(runs, lines, strict=True):
        yield each
        if about := ", ".join(filter(None, (one_line(run.label), describe_players(run)))):
            yield styled_line((f"{'':<10}{about}", DIM))


FIGURES = (
    TableColumn("when"),
    TableColumn("status"),
    TableColumn("done", right=True),
    TableColumn("reward", right=True),
    TableColumn("interval"),
)


def name_cells(run: StoredRun, model: str) -> list[Part]:
    return [
        cell(run.id, STRONG),
        cell(run.env) if run.env else EMPTY_CELL,
        cell(model) if model else EMPTY_CELL,
    ]


def figure_cells(run: StoredRun, done: str) -> list[Part]:
    is_known = run.settled is not None and run.planned is not None
    return [
        cell(format_recency(run.started_at)),
        cell(run.status or "?", STATUS_STYLES.get(run.status, "")),
        cell(done) if is_known else EMPTY_CELL if run.settled is None else cell(f"{run.settled}/?"),
        mean_cell(run.reward),
        interval_cell(run.reward),
    ]


def describe_players(run: StoredRun) -> str:
    """The agent, the runtime and the owner, as far as the run has them."""
    words = {"agent": run.agent, "runtime": run.runtime, "owner": run.owner}
    return ", ".join(f"{name} {one_line(value)}" for name, value in words.items() if value)


def mean_cell(reward: MeanEstimate | None) -> Part:
    return EMPTY_CELL if reward is None or reward.mean is None else (format_short_number(reward.mean), STRONG)


def interval_cell(reward: MeanEstimate | None) -> Part:
    if reward is None or reward.interval is None:
        return ("", "")
    return (f"{reward.interval.low:.2f}–{reward.interval.high:.2f}", "")


def format_recency(started_at: float) -> str:
    """The hour for what is recent, the day for what is not."""
    age = time.time() - started_at
    form = "%H:%M" if 0 <= age < TODAY_SECONDS else "%b %d" if 0 <= age < YEAR_SECONDS else "%Y-%m-%d"
    return time.strftime(form, time.localtime(started_at))


def shorten_folder(folder: Path) -> str:
    """A path as people write it."""
    text = os.path.relpath(folder) if not folder.is_absolute() else str(folder)
    home = str(expand_path("~"))
    return f"~{text[len(home) :]}" if text.startswith(f"{home}{os.sep}") else text


# The rollouts of one run


ROLLOUT_COLUMNS = (
    TableColumn("reward", right=True),
    TableColumn("turns", right=True),
    TableColumn("tokens", right=True),
    TableColumn("time", right=True),
    TableColumn("outcome"),
)
"""What a table says about a rollout, after what names it."""


def rollout_lines(
    run: StoredRun, found: Iterable[Brief], counted: RolloutCounts, failed: bool, width: int | None
) -> Iterator[StyledLine]:
    yield from head_lines(run, width)
    columns = [TableColumn("trace"), *ROLLOUT_COLUMNS]
    shown = CountingIterator(found)
    yield from layout_table(columns, (rollout_row(brief) for brief in shown), width)
    yield styled_line()
    yield styled_line((tail_text(counted, shown.number, failed), DIM))
    if counted.unreadable:
        lines = format_quantity(counted.unreadable, "line")
        yield styled_line((f"{lines} of the results cannot be read.", WARN))


class CountingIterator:
    """Counts what passes through it."""

    def __init__(self, found: Iterable[Brief]) -> None:
        self.found = found
        self.number = 0

    def __iter__(self) -> Iterator[Brief]:
        for brief in self.found:
            self.number += 1
            yield brief


def head_lines(run: StoredRun, width: int | None) -> Iterator[StyledLine]:
    title = styled_line((one_line(run.env), STRONG), ("  with  ", DIM), (one_line(run.model), STRONG))
    yield title + styled_line("  ", one_line(run.label)) if run.label else title
    facts = [f"run {one_line(run.id)}", run.status or "?", f"started {format_moment(run.started_at)}"]
    if run.seconds is not None:
        facts.append(f"took {format_duration(run.seconds)}")
    if run.imported_from:
        facts.append(f"imported from {one_line(run.imported_from)}")
    yield styled_line((", ".join(facts), STATUS_STYLES.get(run.status, DIM)))
    if players := describe_players(run):
        yield styled_line((players, DIM))
    yield styled_line((one_line(run.server or str(run.folder)), DIM))
    if run.note:
        yield from layout_paragraph(run.note, width, style=STATUS_STYLES.get(run.status, ""))
    yield styled_line()


def rollout_row(brief: Brief) -> list[Part]:
    return [
        cell(brief.trace),
        EMPTY_CELL if brief.reward is None else (format_short_number(brief.reward), STRONG),
        (str(brief.turns), ""),
        (format_short_count(brief.tokens), ""),
        (format_duration(brief.seconds), ""),
        outcome_cell(brief),
    ]


def outcome_cell(brief: Brief) -> Part:
    """How it ended, and of a failure what it was."""
    words = brief.outcome.replace("_", " ")
    if brief.attempts > 1:
        words += f", {brief.attempts} tries"
    if brief.error is not None:
        kind = "" if brief.error.error in FAMILIAR_ERRORS else f", {one_line(brief.error.error)}"
        words += f"{kind}: {one_line(brief.error.message)}"
    return (words, outcome_style(brief.outcome, brief.reward))


def outcome_style(outcome: str, reward: float | None) -> str:
    if not is_settled(outcome, reward):
        return BAD
    return WARN if outcome in ("truncated", "timeout") else ""


def tail_text(counted: RolloutCounts, shown: int, failed: bool) -> str:
    if not counted.rollouts:
        return "No rollout has ended yet."
    outcomes = ", ".join(
        f"{number:,} {name.replace('_', ' ')}" for name, number in counted.outcomes.most_common()
    )
    every = f"{format_quantity(counted.rollouts, 'rollout')}: {outcomes}."
    if shown < counted.matching:
        kind = "failed ones" if failed else "of them"
        return f"{every} {counted.matching - shown:,} more {kind}; -n -1 shows all."
    return f"{every} None failed." if failed and not shown else every


def rollouts_json(run: Mapping[str, Any], found: Iterable[Brief], counted: RolloutCounts) -> Iterator[bytes]:
    """One object, written as the rows are read."""
    yield b'{"run": ' + encode_json(run) + b',\n"rollouts": ['
    between = b"\n"
    for brief in found:
        yield between + encode_json(brief)
        between = b",\n"
    rest = {"outcomes": counted.outcomes, "matching": counted.matching, "unreadable": counted.unreadable}
    yield b"\n],\n" + encode_json(rest)[1:] + b"\n"
