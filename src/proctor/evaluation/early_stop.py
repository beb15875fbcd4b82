"""Stop a run when enough is known: the mean is known precisely, or the comparison is decided.

A task counts once all its rollouts have ended and so have those of every task before it in the seeded random
order: quick tasks that finish first must not decide alone. After every task the rule looks at a confidence
sequence, which holds however often that happens. Knows nothing of how rollouts are played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from proctor.comparison.pairing import find_content_problem, pair_tasks, pool_tasks
from proctor.comparison.scores import RunScores, TaskScores
from proctor.config.schema import LATEST, EvalConfig
from proctor.errors import ConfigError, StoreError
from proctor.report.lines import RolloutLine
from proctor.stats.interval import Interval
from proctor.stats.samples import mean_of
from proctor.stats.sequential import ConfidenceSequence
from proctor.store.index import find_run, search_folders
from proctor.store.scores import read_scores
from proctor.task import Task, TaskId

StopVerdict = Literal["better", "worse"]


class StoppingRule(msgspec.Struct, frozen=True, kw_only=True):
    """When to stop a run."""

    halfwidth: float | None = None
    """Once the mean is known to within this much."""
    baseline: str = ""
    """Once it is better or worse than this run."""
    baseline_means: Mapping[TaskId, float] = {}
    """What each of our tasks scored there; tasks without one do not count."""


class EarlyStop(msgspec.Struct, frozen=True, kw_only=True):
    """What a stopping rule has seen; `early_stop` in the metadata and in `--json`."""

    rule: Literal["halfwidth", "decided"]
    target: float | None
    baseline: str
    reached: bool
    tasks: int
    """Tasks that the rule had looked at when it was reached, or has looked at so far."""
    available: int
    """Tasks that there were to play."""
    mean: float | None
    """Of the reward or, against a baseline, of the difference from it."""
    interval: Interval | None
    """It stays valid however often it is checked, unlike the interval of the reward, which is for a single
    look."""
    verdict: StopVerdict | None
    text: str


class StoppingWatch:
    """Feeds finished rollouts to a stopping rule, in the order of the tasks."""

    def __init__(self, rule: StoppingRule, order: Sequence[Task], rollouts_per_task: int) -> None:
        self.rule = rule
        self._position = {task.id: position for position, task in enumerate(order)}
        self._order = [task.id for task in order]
        self._rollouts = rollouts_per_task
        self._ended: dict[TaskId, dict[int, float | None]] = {}
        self._next = 0
        span = 1.0 if rule.baseline else 0.0
        self._sequence = ConfidenceSequence(low=-span)
        self._reached: EarlyStop | None = None

    def add(self, line: RolloutLine) -> None:
        """Count a rollout that has ended, with a score or without one."""
        if line.example_id in self._position:
            self._ended.setdefault(line.example_id, {})[line.rollout] = (
                None if line.illegal_score else line.reward
            )
            self._advance()

    @property
    def is_reached(self) -> bool:
        return self._reached is not None

    @property
    def begun(self) -> int:
        """How many tasks there are up to the last one that has a rollout."""
        return max((self._position[task] + 1 for task in self._ended), default=0)

    def describe(self) -> EarlyStop:
        return self._reached or self._describe(None, reached=False)

    def _advance(self) -> None:
        """Look after every task whose turn it is."""
        while self._next < len(self._order):
            task = self._order[self._next]
            ended = self._ended.get(task, {})
            if len(ended) < self._rollouts:
                return
            self._next += 1
            rewards = [reward for reward in ended.values() if reward is not None]
            if rewards:
                self._look(task, mean_of(rewards))

    def _look(self, task: TaskId, mean: float) -> None:
        if self.rule.baseline:
            theirs = self.rule.baseline_means.get(task)
            if theirs is None:
                return
            mean -= theirs
        sequence = self._sequence
        sequence.add(mean)
        if self._reached is not None:
            return
        reach, target = sequence.halfwidth, self.rule.halfwidth
        if target is not None and reach <= target:
            self._reached = self._describe(None, reached=True)
        elif target is None and reach < abs(sequence.mean):
            self._reached = self._describe("better" if sequence.mean > 0 else "worse", reached=True)

    def _describe(self, verdict: StopVerdict | None, *, reached: bool) -> EarlyStop:
        sequence, rule = self._sequence, self.rule
        found = EarlyStop(
            rule="decided" if rule.baseline else "halfwidth",
            target=rule.halfwidth,
            baseline=rule.baseline,
            reached=reached,
            tasks=sequence.n,
            available=len(self._order),
            mean=sequence.mean if sequence.n else None,
            interval=sequence.interval,
            verdict=verdict,
            text="",
        )
        return msgspec.structs.replace(found, text=describe_stop(found))


def describe_stop(stop: EarlyStop) -> str:
    """Whether the rule was reached, and what it saw, in one sentence."""
    tasks = f"{stop.tasks:,} of {stop.available:,} tasks"
    interval = stop.interval
    seen = "too few to say anything"
    if interval is not None and stop.mean is not None:
        reach = interval.high - stop.mean
        seen = f"{stop.mean:+.3f} ± {reach:.3f}" if stop.baseline else f"{stop.mean:.3f} ± {reach:.3f}"
        seen = f"{seen} ({interval.level:.0%} confidence sequence)"
    if stop.rule == "halfwidth":
        wanted = f"--until-halfwidth {stop.target:g}"
        return f"{wanted} was {'' if stop.reached else 'not '}reached after {tasks}: {seen}"
    if stop.reached:
        return f"--until-decided: {stop.verdict} than {stop.baseline} after {tasks}: {seen}"
    return f"--until-decided: neither better nor worse than {stop.baseline} after {tasks}: {seen}"


def open_watch(
    config: EvalConfig, tasks: Sequence[Task], settings_of: Path | None = None
) -> StoppingWatch | None:
    """The watch that the settings ask for, if any. `settings_of` is the folder of the run itself."""
    if config.until_halfwidth is not None:
        rule = StoppingRule(halfwidth=config.until_halfwidth)
    elif config.until_decided is not None:
        environment = config.name or config.env_id
        rule = read_baseline(config.until_decided, environment, tasks, settings_of)
    else:
        return None
    return StoppingWatch(rule, tasks, config.rollouts_per_example)


def name_baseline(config: EvalConfig) -> EvalConfig:
    """The settings with `latest` replaced by that run's id, before the run itself becomes the latest."""
    if config.until_decided != LATEST:
        return config
    return msgspec.structs.replace(config, until_decided=find_run(LATEST, search_folders()).resolve().name)


def read_baseline(
    word: str, environment: str, tasks: Sequence[Task], own_folder: Path | None
) -> StoppingRule:
    """What our tasks scored in an earlier run, matched by content, then by id."""
    folder = find_run(word, search_folders())
    if own_folder is not None and folder.resolve() == own_folder.resolve():
        raise ConfigError(
            f"--until-decided {word} names the run that is resumed; name its baseline by its id."
        )
    try:
        scores = read_scores(folder, folder.resolve().name)
    except StoreError as error:
        raise ConfigError(f"--until-decided {word}: {error}") from error
    means = match_means(scores, environment, tasks)
    if not means:
        raise ConfigError(
            f"--until-decided {word}: that run scored none of these {len(tasks):,} tasks; name a run of the "
            f"same tasks."
        )
    return StoppingRule(baseline=scores.run, baseline_means=means)


def match_means(scores: RunScores, environment: str, tasks: Sequence[Task]) -> dict[TaskId, float]:
    theirs = [msgspec.structs.replace(task, member="") for task in scores.tasks]
    ours = [TaskScores(id=task.id, hash=task.hash, rollouts=(0,), rewards=(0.0,)) for task in tasks]
    baseline = [msgspec.structs.replace(scores, tasks=theirs)]
    candidate = [RunScores(run="", environment=environment, tasks=ours)]
    if find_content_problem(baseline, candidate):
        return {}
    pairs, _ = pair_tasks(pool_tasks(baseline), pool_tasks(candidate))
    return {pair.candidate.id: mean_of(pair.baseline.rewards) for pair in pairs}
