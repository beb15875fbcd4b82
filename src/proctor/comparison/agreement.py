"""How far a judge agrees with people, how far people agree, and what people would have scored.

Takes scores by rollout. Knows nothing of files or terminals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec

from proctor.rollout import RolloutKey
from proctor.stats.agreement import AgreementEstimate, cohen_kappa, krippendorff_alpha
from proctor.stats.prediction_powered import CorrectedMean, prediction_powered_mean
from proctor.task import TaskId

Scores = Mapping[RolloutKey, float]
EVERYBODY = "everybody"
"""The mean of all people's scores of a rollout."""


class RaterAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The judge against one person, or against everybody together."""

    person: str
    labels: int
    mean: float | None
    """Of the person's scores."""
    kappa: AgreementEstimate
    """On passing and failing."""
    alpha: AgreementEstimate
    """On the scores themselves."""
    only_judge_passes: int
    """The judge passes it, the person does not."""
    only_person_passes: int


class JudgeReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to believe a judge."""

    judge: str
    """`reward`, or the name of a metric."""
    pass_threshold: float
    level: float
    rollouts: int
    """That the judge scored."""
    tasks: int
    people: tuple[RaterAgreement, ...]
    everybody: RaterAgreement | None
    """None with fewer than two people."""
    between_people: AgreementEstimate | None
    """Krippendorff's alpha over the scores of people alone."""
    corrected: CorrectedMean


def examine_judge(
    judged: Scores,
    labels: Mapping[str, Scores],
    *,
    judge: str = "reward",
    pass_threshold: float = 0.5,
    level: float = 0.95,
) -> JudgeReport:
    """Compare a judge's scores with people's; labels of rollouts that it did not score are left out."""
    known = {
        person: {key: score for key, score in scores.items() if key in judged}
        for person, scores in sorted(labels.items())
    }
    known = {person: scores for person, scores in known.items() if scores}
    together = combine_people(known)
    rated = [rate_person(person, scores, judged, pass_threshold, level) for person, scores in known.items()]
    several = len(known) > 1
    return JudgeReport(
        judge=judge,
        pass_threshold=pass_threshold,
        level=level,
        rollouts=len(judged),
        tasks=len({task for task, _ in judged}),
        people=tuple(rated),
        everybody=rate_person(EVERYBODY, together, judged, pass_threshold, level) if several else None,
        between_people=rate_people(list(known.values()), level) if several else None,
        corrected=correct_mean(judged, together, level),
    )


def combine_people(labels: Mapping[str, Scores]) -> dict[RolloutKey, float]:
    """The mean of what people say about each rollout."""
    found: dict[RolloutKey, list[float]] = {}
    for scores in labels.values():
        for key, score in scores.items():
            found.setdefault(key, []).append(score)
    return {key: fmean(scores) for key, scores in found.items()}


def rate_person(
    person: str, scores: Scores, judged: Scores, threshold: float, level: float
) -> RaterAgreement:
    keys = list(scores)
    tasks = [task for task, _ in keys]
    pairs = [(judged[key], scores[key]) for key in keys]
    passes = [(float(judge >= threshold), float(own >= threshold)) for judge, own in pairs]
    return RaterAgreement(
        person=person,
        labels=len(keys),
        mean=fmean(scores.values()) if scores else None,
        kappa=cohen_kappa([judge for judge, _ in passes], [own for _, own in passes], tasks, level),
        alpha=krippendorff_alpha(pairs, "interval", tasks, level),
        only_judge_passes=passes.count((1.0, 0.0)),
        only_person_passes=passes.count((0.0, 1.0)),
    )


def rate_people(people: Sequence[Scores], level: float) -> AgreementEstimate:
    keys = list({key: None for scores in people for key in scores})
    units = [[scores[key] for scores in people if key in scores] for key in keys]
    return krippendorff_alpha(units, "interval", [task for task, _ in keys], level)


def correct_mean(judged: Scores, people: Scores, level: float) -> CorrectedMean:
    tasks: dict[TaskId, list[tuple[float, float | None]]] = {}
    for key, score in judged.items():
        tasks.setdefault(key[0], []).append((score, people.get(key)))
    return prediction_powered_mean(list(tasks.values()), level)
