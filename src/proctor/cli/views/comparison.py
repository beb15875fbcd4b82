"""Runs against runs as text: the verdict, interval bars, every measure, and the tasks that flipped."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.cli.views.bars import NARROWEST_BAR, WIDEST_BAR, BarScale
from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import format_quantity, format_short_number
from proctor.cli.views.lines import (
    BAD,
    DIM,
    DONE,
    STRONG,
    WARN,
    Part,
    StyledLine,
    styled_line,
    text_width,
)
from proctor.cli.views.page import TableColumn, cell, layout_table
from proctor.comparison.compare import Comparison, SettingDifference
from proctor.comparison.measure import MeasureComparison
from proctor.comparison.pairing import UnmatchedTasks
from proctor.comparison.runs import RunVariation, SideSummary
from proctor.comparison.tasks import ComparedRollout, TaskDifference
from proctor.comparison.wording import VERDICTS
from proctor.stats.interval import Interval

INDENT = "  "
DROPPED_FIRST = ("could see", "won/tied/lost", "baseline", "candidate", "p")
WITHOUT_TERMINAL = 100
NAMED = 5
"""Unmatched tasks that are named in a line."""
STYLES = {"better": DONE, "worse": BAD, "higher": STRONG, "lower": STRONG, "too_little_data": WARN}
EQUIVALENCE_STYLES = {"equivalent": DONE, "no_worse": DONE, "worse": BAD}


class ComparedPair(msgspec.Struct, frozen=True):
    """One comparison, and how its runs are named to `proctor trace`."""

    comparison: Comparison
    words: Mapping[str, str]

    def trace(self, rollout: ComparedRollout) -> str:
        return shlex.quote(f"{self.words.get(rollout.run, rollout.run)}/{rollout.task}/{rollout.rollout}")

    def trace_diff(self, task: TaskDifference) -> str:
        return f"proctor trace diff {self.trace(task.baseline_rollout)} {self.trace(task.candidate_rollout)}"


class RunComparisons(msgspec.Struct, frozen=True):
    """All comparisons of one command, and what only one side has."""

    pairs: Sequence[ComparedPair]
    only_baseline: Sequence[str]
    only_candidate: Sequence[str]


def compared_document(compared: RunComparisons) -> dict[str, Any]:
    """For `--json`: the comparisons as they are."""
    return {
        "comparisons": [pair.comparison for pair in compared.pairs],
        "only_baseline": compared.only_baseline,
        "only_candidate": compared.only_candidate,
    }


def comparison_lines(compared: RunComparisons, most: int, width: int | None) -> Iterator[StyledLine]:
    """Every comparison in full, after a table of verdicts where there are several."""
    if len(compared.pairs) > 1:
        yield from verdict_table(compared.pairs, width)
        yield styled_line()
    for number, pair in enumerate(compared.pairs):
        if number:
            yield styled_line()
        yield from pair_lines(pair, most, width)
    for side, names in (("baseline", compared.only_baseline), ("candidate", compared.only_candidate)):
        if names:
            yield styled_line((f"Only the {side} has {', '.join(map(one_line, names))}.", WARN))


def verdict_table(pairs: Sequence[ComparedPair], width: int | None) -> Iterator[StyledLine]:
    columns = [
        TableColumn("environment", may_shrink=True),
        TableColumn("baseline", may_shrink=True),
        TableColumn("candidate", may_shrink=True),
        TableColumn("difference", right=True),
        TableColumn("interval", right=True),
        TableColumn("p", right=True),
        TableColumn("verdict"),
    ]
    rows = []
    for pair in pairs:
        each, reward = pair.comparison, pair.comparison.reward
        rows.append(
            [
                cell(each.candidate.runs[0].environment),
                cell(name_side(each.baseline)),
                cell(name_side(each.candidate)),
                (format_signed(reward.difference), STRONG),
                (format_interval(reward.interval), ""),
                (format_p(reward.p_adjusted), ""),
                (VERDICTS[each.verdict], STYLES.get(each.verdict, "")),
            ]
        )
    if width is not None and width < WITHOUT_TERMINAL:  # names are repeated below
        columns, rows = columns[:1] + columns[2:], [row[:1] + row[2:] for row in rows]
    yield from layout_table(columns, rows, width)


def pair_lines(pair: ComparedPair, most: int, width: int | None) -> Iterator[StyledLine]:
    each = pair.comparison
    environments = dict.fromkeys(run.environment for run in (*each.baseline.runs, *each.candidate.runs))
    yield styled_line((one_line(" and ".join(environments)), STRONG))
    for text, style in verdict_parts(each):
        yield from wrap_styled(text, style, width)
    yield styled_line()
    yield from bar_lines(each, width)
    yield styled_line()
    yield from measure_lines(each, width)
    yield from note_lines(each)
    yield from task_lines(pair, most)


def verdict_parts(each: Comparison) -> list[Part]:
    parts = [(each.text, STYLES.get(each.verdict, STRONG))]
    if each.equivalence is not None:
        style = EQUIVALENCE_STYLES.get(each.equivalence.verdict, WARN)
        parts.append((f"margin {each.equivalence.margin:g}: {each.equivalence.text}", style))
    return parts


def wrap_styled(text: str, style: str, width: int | None) -> Iterator[StyledLine]:
    from proctor.cli.views.page import wrap_text

    for piece in wrap_text(one_line(text), max(20, (width or WITHOUT_TERMINAL) - len(INDENT))):
        yield styled_line(INDENT, (piece, style))


# Pictures


def bar_lines(each: Comparison, width: int | None) -> Iterator[StyledLine]:
    """Both sides on one scale, and the difference on another with 0 marked."""
    names = [name_side(each.baseline), name_side(each.candidate), "difference"]
    label = max(map(len, names))
    figures = [format_estimate(each.baseline), format_estimate(each.candidate)]
    reward = each.reward
    figures.append(f"{format_signed(reward.difference)}  {format_interval(reward.interval)}".rstrip())
    room = (width or WITHOUT_TERMINAL) - len(INDENT) - label - max(map(len, figures)) - 4
    bars = ["", "", ""] if room < NARROWEST_BAR else draw_bars(each, min(WIDEST_BAR, room))
    wide = max(map(len, bars))
    for name, figure, bar in zip(names, figures, bars, strict=True):
        style = DIM if name == "difference" else ""
        yield styled_line(INDENT, (f"{one_line(name):<{label}}  ", style), f"{bar:<{wide}}  ", figure)


def draw_bars(each: Comparison, width: int) -> list[str]:
    sides = [each.baseline.reward, each.candidate.reward]
    ends = [
        end
        for side in sides
        if side.mean is not None
        for end in ((side.interval.low, side.interval.high) if side.interval else (side.mean,))
    ]
    if not ends:
        return ["", "", ""]
    scale = BarScale(min(ends), max(ends), width)
    bars = [
        ""
        if side.mean is None
        else scale.interval(
            side.interval.low if side.interval else None,
            side.mean,
            side.interval.high if side.interval else None,
        )
        for side in sides
    ]
    reward = each.reward
    if reward.difference is None or reward.interval is None:
        return [*bars, ""]
    reach = max(abs(reward.interval.low), abs(reward.interval.high))
    around = BarScale(-reach, reach, width)
    return [
        *bars,
        around.interval(reward.interval.low, reward.difference, reward.interval.high, zero=True),
    ]


def format_estimate(side: SideSummary) -> str:
    mean = "none" if side.reward.mean is None else f"{format_short_number(side.reward.mean)} "
    return f"{mean}  {format_interval(side.reward.interval, signed=False)}".rstrip()


# Measures


def measure_lines(each: Comparison, width: int | None) -> Iterator[StyledLine]:
    rows = [measure_cells(measure) for measure in (each.reward, *each.members, *each.metrics)]
    room = None if width is None else width - len(INDENT)
    kept = choose_columns(rows, room)
    columns = [TableColumn(name, right=name not in ("", "verdict"), may_shrink=not name) for name in kept]
    lines = layout_table(columns, [[row[name] for name in kept] for row in rows], room)
    yield from (styled_line(INDENT) + line for line in lines)


def choose_columns(rows: Sequence[Mapping[str, Part]], room: int | None) -> list[str]:
    """The columns that there is room for; what the verdict can do without goes first."""
    kept = list(rows[0])
    for spare in DROPPED_FIRST:
        wide = sum(max(len(name), *(text_width(row[name][0]) for row in rows)) + 2 for name in kept)
        if room is not None and wide - 2 > room:
            kept.remove(spare)
    return kept


def measure_cells(measure: MeasureComparison) -> dict[str, Part]:
    least = measure.smallest_detectable
    return {
        "": cell(measure.member or measure.name, DIM if measure.member else ""),
        "baseline": (format_optional(measure.baseline), ""),
        "candidate": (format_optional(measure.candidate), ""),
        "difference": (format_signed(measure.difference), STRONG),
        "interval": (format_interval(measure.interval), ""),
        "p": (format_p(measure.p_adjusted), ""),
        "won/tied/lost": (f"{measure.wins:,}/{measure.ties:,}/{measure.losses:,}", ""),
        "could see": ("–" if least is None else f"±{format_short_number(least)}", ""),
        "verdict": (VERDICTS[measure.verdict], STYLES.get(measure.verdict, "")),
    }


# Notes


def note_lines(each: Comparison) -> Iterator[StyledLine]:
    notes = list(notes_of(each))
    if notes:
        yield styled_line()
    for note in notes:
        yield styled_line(INDENT, (one_line(note), WARN))


def notes_of(each: Comparison) -> Iterator[str]:
    """What a reader should know before believing the verdict."""
    pairing = each.pairing
    if pairing.paired_by_id:
        yield f"{format_quantity(pairing.paired_by_id, 'task')} paired by id only: their content differs"
    for unmatched, where in (
        (pairing.only_baseline, "only in the baseline"),
        (pairing.only_candidate, "only in the candidate"),
        (pairing.unscored, "without a score on one side"),
    ):
        if unmatched.count:
            yield f"{format_quantity(unmatched.count, 'task')} {where}: {name_tasks(unmatched)}"
    for name, side in (("baseline", each.baseline), ("candidate", each.candidate)):
        if side.variation is not None:
            yield f"{name}: {describe_variation(side.variation)}"
    if each.settings:
        yield f"settings that differ: {'; '.join(map(describe_setting, each.settings))}"


def describe_variation(variation: RunVariation) -> str:
    expected = (
        "" if variation.expected_sd is None else f"; rollouts alone would give {variation.expected_sd:.3f}"
    )
    return (
        f"{variation.runs} runs pooled, whose means have a standard deviation of {variation.sd:.3f}{expected}"
    )


def describe_setting(setting: SettingDifference) -> str:
    return f"{setting.name} {format_values(setting.baseline)} → {format_values(setting.candidate)}"


def format_values(values: Sequence[Any]) -> str:
    return " or ".join("unset" if value is None else str(value) for value in values)


def name_tasks(unmatched: UnmatchedTasks) -> str:
    named = ", ".join(map(str, unmatched.named[:NAMED]))
    return f"{named} …" if unmatched.count > NAMED else named


# Tasks


def task_lines(pair: ComparedPair, most: int, hint: str = "-n -1 shows all") -> Iterator[StyledLine]:
    each = pair.comparison
    shown = each.tasks if most < 0 else each.tasks[:most]
    if not each.differing_tasks.count or not shown:
        return
    counts = each.differing_tasks
    yield styled_line()
    yield styled_line(
        (f"{format_quantity(counts.count, 'task')} differ", STRONG),
        (f": {counts.lost:,} passed only on the baseline, {counts.won:,} only on the candidate", DIM),
    )
    wide = max(len(str(task.task)) for task in shown)
    for task in shown:
        style = {"lost": BAD, "won": DONE}.get(task.flip, DIM)
        yield styled_line(
            INDENT,
            (f"{'' if task.flip == 'none' else task.flip:<4}  ", style),
            f"{one_line(str(task.task)):<{wide}}  {format_short_number(task.baseline)} → "
            f"{format_short_number(task.candidate)}  ",
            (one_line(pair.trace_diff(task)), DIM),
        )
    if counts.count > len(shown):
        yield styled_line((f"{INDENT}… {counts.count - len(shown):,} more; {hint}.", DIM))


# Words


def name_side(side: SideSummary) -> str:
    """The run, or how many; with the model if there is one."""
    models = " ".join(dict.fromkeys(run.model for run in side.runs))
    label = " ".join(dict.fromkeys(run.label for run in side.runs if run.label))
    runs = side.runs[0].run if len(side.runs) == 1 else f"{len(side.runs)} runs"
    return one_line(" ".join(part for part in (runs, models, label) if part))


def format_signed(value: float | None) -> str:
    if value is None:
        return "–"
    text = format_short_number(abs(value))
    return f"-{text}" if value < 0 and float(text) else f"+{text}"


def format_interval(interval: Interval | None, signed: bool = True) -> str:
    if interval is None:
        return ""
    low, high = (
        (format_signed(interval.low), format_signed(interval.high))
        if signed
        else (format_short_number(interval.low), format_short_number(interval.high))
    )
    return f"{low} … {high}"


def format_optional(value: float | None) -> str:
    return "–" if value is None else format_short_number(value)


def format_p(p: float | None) -> str:
    return "–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"
