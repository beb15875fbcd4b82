"""The score and the progress of a run, from its report. Knows nothing of stores."""

from __future__ import annotations

from proctor.api.runs import Progress, RunScore
from proctor.report.summary import Summary


def score_of_summary(summary: Summary) -> RunScore:
    reward = summary.reward
    return RunScore(mean=reward.mean, interval=reward.interval, tasks=reward.n, coverage=summary.coverage)


def progress_of_summary(summary: Summary, planned: int | None) -> Progress:
    excluded = summary.outcomes.get("excluded", 0)
    return Progress(
        planned=summary.planned if summary.planned is not None else planned,
        settled=summary.scored + excluded,
        scored=summary.scored,
        failed=summary.finished - summary.scored - excluded,
        mean_reward=summary.reward.mean,
    )
