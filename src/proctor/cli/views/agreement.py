"""How far a judge agrees with people, as a table and a few sentences."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.cli.views.formatting import format_number, format_quantity
from proctor.cli.views.lines import DIM, Part, StyledLine, styled_line
from proctor.cli.views.page import TableColumn, cell, layout_table, page_width
from proctor.comparison.agreement import JudgeReport, RaterAgreement
from proctor.stats.agreement import AgreementEstimate
from proctor.stats.interval import Interval
from proctor.stats.prediction_powered import FEW_LABELLED, CorrectedMean

COLUMNS = (
    TableColumn("judge against"),
    TableColumn("labels", right=True),
    TableColumn("mean", right=True),
    TableColumn("agree", right=True),
    TableColumn("kappa"),
    TableColumn("alpha"),
    TableColumn("only judge passes", right=True),
    TableColumn("only they pass", right=True),
)


def agreement_lines(report: JudgeReport) -> Iterator[StyledLine]:
    scored = f"{format_quantity(report.rollouts, 'rollout')} of {format_quantity(report.tasks, 'task')}"
    yield styled_line(
        (f"Judge: {report.judge}", "strong"), f", {scored}, passed at {report.pass_threshold:g}"
    )
    yield styled_line("")
    rated = [*report.people, *([report.everybody] if report.everybody else [])]
    yield from layout_table(COLUMNS, [rater_row(each) for each in rated], page_width())
    yield styled_line("")
    if report.between_people is not None:
        shared = format_quantity(report.between_people.n, "rollout")
        yield styled_line(
            f"People among themselves: alpha {estimate_text(report.between_people)} on {shared}"
        )
    yield from corrected_lines(report.corrected, report.level)


def rater_row(rated: RaterAgreement) -> list[Part]:
    observed = rated.kappa.observed
    return [
        cell(rated.person),
        cell(f"{rated.labels:,}"),
        cell("–" if rated.mean is None else format_number(rated.mean)),
        cell("–" if observed is None else f"{observed:.0%}"),
        cell(estimate_text(rated.kappa)),
        cell(estimate_text(rated.alpha)),
        cell(rated.only_judge_passes),
        cell(rated.only_person_passes),
    ]


def estimate_text(estimate: AgreementEstimate) -> str:
    if estimate.value is None:
        return "– (nothing varies)"
    value = round(estimate.value, 3) + 0.0  # without the sign of a negative zero
    return f"{value:.3f}{interval_text(estimate.interval)}"


def interval_text(interval: Interval | None) -> str:
    if interval is None:
        return " (too few labels for an interval)"
    return f" ({interval.low:.3f} … {interval.high:.3f})"


def corrected_lines(corrected: CorrectedMean, level: float) -> Iterator[StyledLine]:
    if corrected.mean is None or corrected.judge_mean is None or corrected.people_mean is None:
        return
    yield styled_line(
        f"Mean score: judge {format_number(corrected.judge_mean)} over all rollouts, people "
        f"{format_number(corrected.people_mean)} over the {corrected.labelled:,} they scored."
    )
    interval = corrected.interval
    if interval is None:
        reason = (
            f"labels in {format_quantity(corrected.labelled_tasks, 'task')}; {FEW_LABELLED} are the least"
            if corrected.labelled_tasks < FEW_LABELLED
            else "judge and people never differ, and their scale is not 0 and 1"
        )
        yield styled_line(f"Corrected score {format_number(corrected.mean)}, without an interval: {reason}.")
        return
    bounds = f"{format_number(interval.low)} … {format_number(interval.high)}"
    yield styled_line(
        (f"Corrected score {format_number(corrected.mean)}", "strong"),
        f", {level * 100:g}% interval {bounds} (prediction-powered over tasks; the judge counts "
        f"{corrected.weight:.0%})",
    )
    yield styled_line(("It holds if the labelled rollouts are a random sample of the run's.", DIM))
