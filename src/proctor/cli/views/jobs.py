"""Runs and their rollouts as tables. Everything from outside is shown as plain text."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.cli.live.wording import counted as number_of
from proctor.cli.live.wording import short_count, short_number
from proctor.cli.views.escape import one_line
from proctor.cli.views.lines import BAD, LABELS, STRONG, WARN, Line, Part, line
from proctor.cli.views.page import Column, cell, paragraph, seconds_text, table
from proctor.rollout import is_settled
from proctor.stats.inference import Estimate
from proctor.store.index import DAMAGED, INTERRUPTED, StoredRun, as_path
from proctor.store.traces import Brief, Counted

STATUS_STYLES = {"failed": BAD, DAMAGED: BAD, INTERRUPTED: WARN, "stopped": WARN}
NOTHING: Part = ("–", LABELS)
NO_NEWS = {"AgentError", "DeadlineError", "EnvError", "ExcludedError", "GraderError", "ModelError"}
"""Kinds of error that say no more than the outcome."""
TODAY_SECONDS = 18 * 3600
YEAR_SECONDS = 300 * 24 * 3600


# Runs


def run_lines(runs: Sequence[StoredRun], found: int, width: int | None) -> Iterator[Line]:
    shown = list(wide_lines(runs))
    if width is not None and shown[0].width > width:
        yield from narrow_lines(runs, width)
    else:
        folders = [("folder", LABELS), *(cell(shortened(run.folder)) for run in runs)]
        widest = max(each.width for each in shown)
        has_room = width is None or widest + 2 + max(len(text) for text, _ in folders) <= width
        for each, folder in zip(shown, folders, strict=True):
            yield each + line(" " * (widest + 2 - each.width), folder) if has_room else each
    for run in runs:
        if run.status == DAMAGED:
            yield line((f"{one_line(run.id)}: ", BAD), one_line(run.note))
    if found > len(runs):
        yield line((f"… {number_of(found - len(runs), 'older run')}; -n -1 shows all.", LABELS))


def wide_lines(runs: Sequence[StoredRun]) -> Iterator[Line]:
    labels = [Column("label")] if any(run.label for run in runs) else []
    columns = [Column("run"), Column("environment"), Column("model"), *labels, *FIGURES]
    rows = [
        [
            *name_cells(run, run.model),
            *([cell(run.label)] if labels else []),
            *figure_cells(run, f"{run.settled}/{run.planned}"),
        ]
        for run in runs
    ]
    return table(columns, rows, None)


def narrow_lines(runs: Sequence[StoredRun], width: int) -> Iterator[Line]:
    """Labels on lines of their own, models without their makers, large numbers in short."""
    columns = [
        Column("run"),
        Column("environment", may_shrink=True),
        Column("model", may_shrink=True),
        *FIGURES,
    ]
    rows = [
        [
            *name_cells(run, run.model.rpartition("/")[2]),
            *figure_cells(run, f"{short_count(run.settled or 0)}/{short_count(run.planned or 0)}"),
        ]
        for run in runs
    ]
    head, *lines = table(columns, rows, width)
    yield head
    for run, each in zip(runs, lines, strict=True):
        yield each
        if run.label:
            yield line((f"{'':<10}{one_line(run.label)}", LABELS))


FIGURES = (
    Column("when"),
    Column("status"),
    Column("done", right=True),
    Column("reward", right=True),
    Column("interval"),
)


def name_cells(run: StoredRun, model: str) -> list[Part]:
    return [cell(run.id, STRONG), cell(run.env) if run.env else NOTHING, cell(model) if model else NOTHING]


def figure_cells(run: StoredRun, done: str) -> list[Part]:
    is_known = run.settled is not None and run.planned is not None
    return [
        cell(when(run.started_at)),
        cell(run.status or "?", STATUS_STYLES.get(run.status, "")),
        cell(done) if is_known else NOTHING if run.settled is None else cell(f"{run.settled}/?"),
        mean_cell(run.reward),
        interval_cell(run.reward),
    ]


def mean_cell(reward: Estimate | None) -> Part:
    return NOTHING if reward is None or reward.mean is None else (short_number(reward.mean), STRONG)


def interval_cell(reward: Estimate | None) -> Part:
    if reward is None or reward.interval is None:
        return ("", "")
    return (f"{reward.interval.low:.2f}–{reward.interval.high:.2f}", "")


def when(started_at: float) -> str:
    """The hour for what is recent, the day for what is not."""
    age = time.time() - started_at
    form = "%H:%M" if 0 <= age < TODAY_SECONDS else "%b %d" if 0 <= age < YEAR_SECONDS else "%Y-%m-%d"
    return time.strftime(form, time.localtime(started_at))


def shortened(folder: Path) -> str:
    """A path as people write it."""
    text = os.path.relpath(folder) if not folder.is_absolute() else str(folder)
    home = str(as_path("~"))
    return f"~{text[len(home) :]}" if text.startswith(f"{home}{os.sep}") else text


# The rollouts of one run


def rollout_lines(
    run: StoredRun, found: Iterable[Brief], counted: Counted, failed: bool, width: int | None
) -> Iterator[Line]:
    yield from head_lines(run, width)
    columns = [
        Column("trace"),
        Column("reward", right=True),
        Column("turns", right=True),
        Column("tokens", right=True),
        Column("time", right=True),
        Column("outcome"),
    ]
    shown = Shown(found)
    yield from table(columns, (rollout_row(brief) for brief in shown), width)
    yield line()
    yield line((tail_text(counted, shown.number, failed), LABELS))
    if counted.unreadable:
        lines = number_of(counted.unreadable, "line")
        yield line((f"{lines} of the results cannot be read.", WARN))


class Shown:
    """Counts what passes through it."""

    def __init__(self, found: Iterable[Brief]) -> None:
        self.found = found
        self.number = 0

    def __iter__(self) -> Iterator[Brief]:
        for brief in self.found:
            self.number += 1
            yield brief


def head_lines(run: StoredRun, width: int | None) -> Iterator[Line]:
    title = line((one_line(run.env), STRONG), ("  with  ", LABELS), (one_line(run.model), STRONG))
    yield title + line("  ", one_line(run.label)) if run.label else title
    facts = [f"run {one_line(run.id)}", run.status or "?", f"started {moment(run.started_at)}"]
    if run.seconds is not None:
        facts.append(f"took {seconds_text(run.seconds)}")
    yield line((", ".join(facts), STATUS_STYLES.get(run.status, LABELS)))
    yield line((one_line(str(run.folder)), LABELS))
    if run.note:
        yield from paragraph(run.note, width, style=STATUS_STYLES.get(run.status, ""))
    yield line()


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def rollout_row(brief: Brief) -> list[Part]:
    return [
        cell(brief.trace),
        NOTHING if brief.reward is None else (short_number(brief.reward), STRONG),
        (str(brief.turns), ""),
        (short_count(brief.tokens), ""),
        (seconds_text(brief.seconds), ""),
        outcome_cell(brief),
    ]


def outcome_cell(brief: Brief) -> Part:
    """How it ended, and of a failure what it was."""
    words = brief.outcome.replace("_", " ")
    if brief.attempts > 1:
        words += f", {brief.attempts} tries"
    if brief.error is not None:
        kind = "" if brief.error.error in NO_NEWS else f", {one_line(brief.error.error)}"
        words += f"{kind}: {one_line(brief.error.message)}"
    return (words, outcome_style(brief.outcome, brief.reward))


def outcome_style(outcome: str, reward: float | None) -> str:
    if not is_settled(outcome, reward):
        return BAD
    return WARN if outcome in ("truncated", "timeout") else ""


def tail_text(counted: Counted, shown: int, failed: bool) -> str:
    if not counted.rollouts:
        return "No rollout has ended yet."
    outcomes = ", ".join(
        f"{number:,} {name.replace('_', ' ')}" for name, number in counted.outcomes.most_common()
    )
    every = f"{number_of(counted.rollouts, 'rollout')}: {outcomes}."
    if shown < counted.matching:
        kind = "failed ones" if failed else "of them"
        return f"{every} {counted.matching - shown:,} more {kind}; -n -1 shows all."
    return f"{every} None failed." if failed and not shown else every


def rollouts_json(run: Mapping[str, Any], found: Iterable[Brief], counted: Counted) -> Iterator[bytes]:
    """One object, written as the rows are read."""
    encode = msgspec.json.encode
    yield b'{"run": ' + encode(run) + b',\n"rollouts": ['
    between = b"\n"
    for brief in found:
        yield between + encode(brief)
        between = b",\n"
    rest = {"outcomes": counted.outcomes, "matching": counted.matching, "unreadable": counted.unreadable}
    yield b"\n],\n" + encode(rest)[1:] + b"\n"
