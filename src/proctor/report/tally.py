"""Rollouts → Summary: what happened, what was scored, and how far to believe it.

A Tally takes one line per finished rollout and keeps a few bytes of each, so that a report of 100,000
rollouts costs no more memory than one of 1,000 rows. Every number is computed from lines; none is trusted
from a cache.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proctor.config.prices import Price
from proctor.contracts import PASS_THRESHOLD
from proctor.report.causes import ErrorGroup, count_error, rank_errors
from proctor.report.limits import (
    LONGEST_SECONDS,
    MOST_MEMBERS,
    MOST_NAMES,
    SAMPLE_LENGTH,
    bound_usage,
    bounded_name,
)
from proctor.report.lines import ReusedReplies, RolloutLine, drop_score
from proctor.report.notable import NotableRollouts
from proctor.report.summary import Bounds, Scores, Summary, compute_coverage
from proctor.stats.mean import MeanEstimate, headline_estimate, mean_estimate
from proctor.stats.pass_k import PassMeasure, pass_at_k, pass_curve, pass_hat_k
from proctor.stats.samples import group_means
from proctor.stats.spread import compute_histogram, compute_spread
from proctor.task import TaskId
from proctor.trace import Usage

FEWEST_TASKS = 5
"""With fewer tasks, a running interval says more about the formula than about the model."""


class Tally:
    """Counts finished rollouts as they come."""

    def __init__(self, pass_threshold: float = PASS_THRESHOLD) -> None:
        self.pass_threshold = pass_threshold
        self.outcomes: Counter[str] = Counter()
        self.stop_conditions: Counter[str] = Counter()
        self._used = [0, 0, 0, 0]
        self.other_usage: dict[str, Usage] = {}
        self.reused_replies: dict[str, ReusedReplies] = {}
        self.retried = 0
        self.timed_out = 0
        """Scored on what the agent had done when its time was up."""
        self._tasks: dict[TaskId, int] = {}
        self._task_of = array("l")
        self._rewards = array("d")
        self._seconds = array("f")
        self._metrics: dict[str, tuple[array[int], array[float]]] = {}
        self._errors: dict[tuple[str, str], ErrorGroup] = {}
        self._cleanup_errors: dict[tuple[str, str], ErrorGroup] = {}
        self.notable = NotableRollouts()
        self.members: dict[str, Tally] = {}

    def add(self, line: RolloutLine) -> None:
        self._count(line)
        if line.env and (member := self._find_member(line.env)) is not None:
            member._count(line)

    def _find_member(self, env: Any) -> Tally | None:
        """The tally of one of several environments; None beyond what a report tells apart."""
        name = env[:SAMPLE_LENGTH] if isinstance(env, str) else ""
        if name and name not in self.members and len(self.members) < MOST_MEMBERS:
            self.members[name] = Tally(self.pass_threshold)
        return self.members.get(name)

    def _count(self, line: RolloutLine) -> None:
        if line.reward is not None and (problem := line.illegal_score):
            line = drop_score(line, problem)
        reward, outcome = line.reward, line.outcome
        self.outcomes[outcome] += 1
        stop = line.stop_condition or "none"
        if stop not in self.stop_conditions:
            stop = bounded_name(self.stop_conditions, stop)
        self.stop_conditions[stop] += 1
        self._spend(line.token_usage)
        if line.earlier_attempts:
            for attempt in line.earlier_attempts:
                self._spend(attempt.usage)
        if line.other_usage:
            for name, usage in line.other_usage.items():
                model = bounded_name(self.other_usage, name)
                self.other_usage[model] = self.other_usage.get(model, Usage()) + bound_usage(usage)
        if line.reused_replies:
            for name, reused in line.reused_replies.items():
                model = bounded_name(self.reused_replies, name)
                reused = ReusedReplies(reused.calls, bound_usage(reused.usage))
                self.reused_replies[model] = self.reused_replies.get(model, ReusedReplies()) + reused
        if line.attempts > 1:
            self.retried += 1
        seconds = line.timing.total
        self._seconds.append(min(LONGEST_SECONDS, seconds))
        if reward is not None:
            self._add_score(line, reward)
        if outcome != "scored":
            self.notable.see_outcome(line)
        if line.error is not None and outcome != "excluded":
            count_error(self._errors, line, line.error)
        if line.cleanup_error is not None:
            count_error(self._cleanup_errors, line, line.cleanup_error)

    def _add_score(self, line: RolloutLine, reward: float) -> None:
        if line.outcome == "timeout":
            self.timed_out += 1
        tasks = self._tasks
        task = tasks.setdefault(line.example_id, len(tasks))
        self._task_of.append(task)
        self._rewards.append(reward)
        metrics = self._metrics
        for name, value in line.metrics.items():
            if name not in metrics:
                if len(metrics) >= MOST_NAMES:
                    continue  # a mean of several metrics would mean nothing
                metrics[name] = (array("l"), array("d"))
            tasks_of, values = metrics[name]
            tasks_of.append(task)
            values.append(value)
        self.notable.see_score(line, reward)

    def _spend(self, usage: Usage) -> None:
        used, usage = self._used, bound_usage(usage)
        used[0] += usage.input_tokens
        used[1] += usage.output_tokens
        if usage.cached_tokens or usage.reasoning_tokens:
            used[2] += usage.cached_tokens
            used[3] += usage.reasoning_tokens

    @property
    def usage(self) -> Usage:
        return Usage(*self._used)

    @property
    def finished(self) -> int:
        return self.outcomes.total()

    @property
    def scored(self) -> int:
        return len(self._rewards)

    @property
    def failed(self) -> int:
        return self.finished - self.scored - self.outcomes["excluded"]

    def running(self) -> MeanEstimate:
        """The mean so far, cheap enough to ask for again and again."""
        estimate = mean_estimate(group_means(self._groups(self._task_of, self._rewards)))
        interval = estimate.interval
        if interval is None or estimate.n < FEWEST_TASKS:
            return replace(estimate, interval=None)
        low, high = min(0.0, min(self._rewards)), max(1.0, max(self._rewards))
        return replace(
            estimate, interval=replace(interval, low=max(low, interval.low), high=min(high, interval.high))
        )

    def running_metrics(self) -> dict[str, float]:
        running = {}
        for name, (tasks, values) in self._metrics.items():
            by_task = group_means(self._groups(tasks, values))
            running[name] = math.fsum(by_task) / len(by_task)
        return running

    def summary(
        self,
        *,
        planned: int | None,
        rollouts_per_task: int,
        model: str = "",
        prices: Mapping[str, Price] | None = None,
    ) -> Summary:
        groups = self._groups(self._task_of, self._rewards)
        _, unpriced = self._cost(model, prices or {})
        return Summary(
            tasks=len(self._tasks),
            rollouts_per_task=rollouts_per_task,
            planned=planned,
            finished=self.finished,
            scored=self.scored,
            timed_out=self.timed_out,
            coverage=compute_coverage(self.scored, planned, self.outcomes["excluded"]),
            outcomes=dict(self.outcomes.most_common()),
            reward=headline_estimate(groups),
            bounds=self._bounds(planned),
            metrics={
                name: headline_estimate(self._groups(tasks, values))
                for name, (tasks, values) in self._metrics.items()
            },
            pass_threshold=self.pass_threshold,
            scores=self.scores(),
            pass_at_k=self._pass(groups, rollouts_per_task, pass_at_k),
            pass_hat_k=self._pass(groups, rollouts_per_task, pass_hat_k),
            stop_conditions=dict(self.stop_conditions.most_common()),
            seconds=compute_spread(self._seconds),
            usage=self.usage,
            other_usage=dict(self.other_usage),
            cost_usd=self.cost_usd(model, prices or {}),
            unpriced_models=unpriced,
            errors=rank_errors(self._errors),
            cleanup_errors=rank_errors(self._cleanup_errors),
            retried=self.retried,
            members={
                name: member.summary(
                    planned=member.finished if self.finished == planned else None,
                    rollouts_per_task=rollouts_per_task,
                    model=model,
                    prices=prices,
                )
                for name, member in sorted(self.members.items())
            },
            reused_replies=dict(self.reused_replies),
            saved_usd=self._saved_usd(prices or {}),
            rewards=compute_histogram(self._rewards),
        )

    def cost_usd(self, model: str, prices: Mapping[str, Price]) -> float | None:
        """What was paid so far; None without a price of the evaluated model."""
        (cost, _), saved = self._cost(model, prices), self._saved_usd(prices)
        return cost if cost is None or saved is None else max(0.0, cost - saved)

    def scores(self) -> Scores:
        """How attempts fared so far."""
        graded, skipped = self.scored, self.outcomes["excluded"]
        attempts, total = self.finished - skipped, math.fsum(self._rewards)
        passed = sum(reward >= self.pass_threshold for reward in self._rewards)
        return Scores(
            attempts=attempts,
            graded=graded,
            passed=passed,
            failed=attempts - graded,
            skipped=skipped,
            pass_rate=passed / attempts if attempts else None,
            reward_over_graded=total / graded if graded else None,
            reward_over_all=total / attempts if attempts else None,
        )

    def _groups(self, tasks: array[int], values: array[float]) -> list[list[float]]:
        """The values of each task that has any."""
        groups: list[list[float]] = [[] for _ in self._tasks]
        for task, value in zip(tasks, values, strict=True):
            groups[task].append(value)
        return list(filter(None, groups))

    def _pass(self, groups: list[list[float]], most: int, measure: PassMeasure) -> dict[str, float]:
        if most < 2:
            return {}
        tries = [(len(group), sum(reward >= self.pass_threshold for reward in group)) for group in groups]
        return {str(k): value for k, value in pass_curve(tries, most, measure).items()}

    def _bounds(self, planned: int | None) -> Bounds | None:
        """Rewards from 0 to 1 are taken to fail at 0 and pass at 1; others at the extremes seen."""
        wanted = (planned if planned is not None else self.finished) - self.outcomes["excluded"]
        missing = wanted - self.scored
        if missing <= 0 or not self._rewards or wanted <= 0:
            return None
        low, high = min(0.0, min(self._rewards)), max(1.0, max(self._rewards))
        total = math.fsum(self._rewards)
        return Bounds((total + missing * low) / wanted, (total + missing * high) / wanted)

    def _cost(self, model: str, prices: Mapping[str, Price]) -> tuple[float | None, tuple[str, ...]]:
        used = {model: self.usage, **self.other_usage}
        if model in self.other_usage:
            used[model] = self.usage + self.other_usage[model]
        unpriced = tuple(name for name in used if name not in prices) if self.finished else ()
        priced = [prices[name].of(usage) for name, usage in used.items() if name in prices]
        return (math.fsum(priced) if model in prices else None), unpriced

    def _saved_usd(self, prices: Mapping[str, Price]) -> float | None:
        """What reused replies would have cost, of the models that have a price."""
        priced = [
            prices[name].of(reused.usage) for name, reused in self.reused_replies.items() if name in prices
        ]
        return math.fsum(priced) if priced else None
