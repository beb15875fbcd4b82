"""Rollouts → Summary: what happened, what was scored, and how far to believe it.

A Tally takes one line per finished rollout, live or read back from a file, and keeps a few bytes of each,
so that a report of 100,000 rollouts costs no more memory than one of 1,000 rows. Every number is computed
from lines; none is trusted from a cache. Knows nothing of files or terminals.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
from msgspec.structs import astuple

from proctor.config.prices import Price
from proctor.contracts import PASS_THRESHOLD
from proctor.errors import Failure
from proctor.rollout import (
    LARGEST_SCORE,
    LEGAL_SCORE,
    Attempt,
    Outcome,
    Rollout,
    RolloutKey,
    is_settled,
)
from proctor.stats.mean import MeanEstimate, headline_estimate, mean_estimate
from proctor.stats.pass_k import pass_at_k, pass_hat_k
from proctor.stats.samples import is_zero_one
from proctor.task import TaskId
from proctor.trace import Usage

FEWEST_TASKS = 5
"""With fewer tasks, a running interval says more about the formula than about the model."""
EXTREMES = ("worst", "best", "longest answer")
SAMPLE_LENGTH = 300
HISTOGRAM_PARTS = 20
MOST_MEMBERS = 200
"""Environments that a report tells apart: a file may claim any number."""
MOST_NAMES = 500
"""Metrics, models, stop conditions and kinds of errors that a report tells apart, for the same reason."""
OTHERS = "others"
"""What is counted under no name of its own."""
LONGEST_SECONDS = 1e9
MOST_TOKENS = 10**15
"""Of one rollout: whatever a provider or a file claims beyond, totals can still be written as JSON."""


class ErrorLine(msgspec.Struct, frozen=True):
    """The part of a stored error that a report reads."""

    error: str
    message: str = ""
    phase: str = ""
    location: str = ""


class TimingLine(msgspec.Struct, frozen=True):
    total: float = 0.0
    start_time: float = 0.0


class AttemptLine(msgspec.Struct, frozen=True):
    """A try before the one that counts."""

    outcome: Outcome
    error: ErrorLine
    start: float = 0.0
    seconds: float = 0.0
    usage: Usage = Usage()


class ReusedReplies(msgspec.Struct, frozen=True):
    """Replies of one model that were not asked for, and so not paid for: of a cache, or of an earlier run."""

    calls: int = 0
    usage: Usage = Usage()

    def __add__(self, other: ReusedReplies) -> ReusedReplies:
        return ReusedReplies(self.calls + other.calls, self.usage + other.usage)


class RolloutLine(msgspec.Struct, frozen=True):
    """The part of a stored rollout that a report reads; field names are those of the file."""

    example_id: TaskId
    rollout: int
    outcome: Outcome
    task_hash: str = ""
    reward: float | None = None
    metrics: dict[str, float] = {}
    stop_condition: str | None = None
    token_usage: Usage = Usage()
    other_usage: dict[str, Usage] = {}
    timing: TimingLine = TimingLine()
    error: ErrorLine | None = None
    cleanup_error: ErrorLine | None = None
    attempts: int = 1
    earlier_attempts: tuple[AttemptLine, ...] = ()
    env: Any = ""
    """Which of several environments it belongs to; files of others may hold anything there."""
    reused_replies: dict[str, ReusedReplies] = {}
    """By model."""

    @property
    def key(self) -> RolloutKey:
        return (self.example_id, self.rollout)

    @property
    def is_settled(self) -> bool:
        return is_settled(self.outcome, self.reward)

    @property
    def illegal_score(self) -> str:
        """Which of its numbers cannot be a score, as a sentence; empty if all can."""
        reward = self.reward
        if reward is not None and not -LARGEST_SCORE <= reward <= LARGEST_SCORE:
            return f"the reward is {reward}; a score {LEGAL_SCORE}"
        for name, value in self.metrics.items():
            if not -LARGEST_SCORE <= value <= LARGEST_SCORE:
                return f"metric {name!r} is {value}; a score {LEGAL_SCORE}"
        return ""


def rollout_line(rollout: Rollout) -> RolloutLine:
    score, failure, cleanup = rollout.score, rollout.failure, rollout.cleanup_failure
    return RolloutLine(
        rollout.task.id,
        rollout.number,
        rollout.outcome,
        rollout.task.hash,
        None if score is None else score.reward,
        {} if score is None else score.metrics,
        rollout.trace.stop_condition,
        rollout.usage,
        helper_usage(rollout),
        TimingLine(rollout.timing.total),
        None if failure is None else error_line(failure),
        None if cleanup is None else error_line(cleanup),
        1 + len(rollout.earlier),
        tuple(map(attempt_line, rollout.earlier)),
        rollout.task.member,
        count_reused(rollout),
    )


def error_line(failure: Failure) -> ErrorLine:
    return ErrorLine(failure.kind, failure.message, failure.phase, failure.location)


def attempt_line(attempt: Attempt) -> AttemptLine:
    error = error_line(attempt.failure)
    return AttemptLine(attempt.outcome, error, attempt.started_at, attempt.seconds, attempt.usage)


def helper_usage(rollout: Rollout) -> dict[str, Usage]:
    """Tokens of judges and other helpers, by model."""
    usage: dict[str, Usage] = {}
    for call in rollout.trace.calls:
        if call.reply is not None and call.role != "agent":
            usage[call.model] = usage.get(call.model, Usage()) + call.reply.usage
    return usage


def count_reused(rollout: Rollout) -> dict[str, ReusedReplies]:
    """Replies that cost nothing this time, by model."""
    reused: dict[str, ReusedReplies] = {}
    for call in rollout.trace.calls:
        if call.reused and call.reply is not None:
            known = reused.get(call.model, ReusedReplies())
            reused[call.model] = known + ReusedReplies(1, call.reply.usage)
    return reused


class ErrorGroup(msgspec.Struct, frozen=True):
    """All failures of one kind, with one of them."""

    outcome: str
    kind: str
    count: int
    sample: str
    task: TaskId
    rollout: int
    phase: str = ""
    location: str = ""
    """The line of the author's code that failed."""


class Spread(msgspec.Struct, frozen=True):
    """How a quantity is distributed over rollouts."""

    median: float
    p90: float
    longest: float


class Bounds(msgspec.Struct, frozen=True):
    """The mean if every unscored rollout had failed, and if every one had passed."""

    low: float
    high: float


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """How attempts fared, each counted once; those left out by the environment are in no denominator."""

    attempts: int = 0
    """Finished and not skipped: what rates are shares of."""
    graded: int = 0
    passed: int = 0
    failed: int = 0
    """Without a reward, whatever the reason."""
    skipped: int = 0
    pass_rate: float | None = None
    """Passed ÷ attempts: a failed attempt did not pass."""
    reward_over_graded: float | None = None
    reward_over_all: float | None = None
    """The same, where a failed attempt counts as 0."""


class Histogram(msgspec.Struct, frozen=True):
    """How many values lie in each of equal parts of a range."""

    low: float
    high: float
    counts: tuple[int, ...]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run. `--json` prints it unchanged."""

    tasks: int
    rollouts_per_task: int
    planned: int | None
    finished: int
    scored: int
    timed_out: int
    """Of the scored, those whose agent ran out of time."""
    coverage: float | None
    outcomes: dict[str, int]
    reward: MeanEstimate
    bounds: Bounds | None
    metrics: dict[str, MeanEstimate]
    pass_threshold: float
    scores: Scores = Scores()
    pass_at_k: dict[str, float]
    pass_hat_k: dict[str, float]
    stop_conditions: dict[str, int]
    seconds: Spread | None
    usage: Usage
    other_usage: dict[str, Usage]
    cost_usd: float | None
    unpriced_models: tuple[str, ...]
    errors: tuple[ErrorGroup, ...]
    cleanup_errors: tuple[ErrorGroup, ...]
    retried: int
    members: dict[str, Summary] = {}
    """The same for each of several environments that ran as one."""
    reused_replies: dict[str, ReusedReplies] = {}
    """By model: replies of a cache or of an earlier run. Their tokens are in `usage`, not in the cost."""
    saved_usd: float | None = None
    """What they would have cost."""
    rewards: Histogram | None = None
    """Of all scored rollouts, if not every reward is 0 or 1."""


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
            line = unscored(line, problem)
        reward, outcome = line.reward, line.outcome
        self.outcomes[outcome] += 1
        self.stop_conditions[told_apart(self.stop_conditions, line.stop_condition or "none")] += 1
        self._spend(line.token_usage)
        if line.earlier_attempts:
            for attempt in line.earlier_attempts:
                self._spend(attempt.usage)
        if line.other_usage:
            for name, usage in line.other_usage.items():
                model = told_apart(self.other_usage, name)
                self.other_usage[model] = self.other_usage.get(model, Usage()) + bounded(usage)
        if line.reused_replies:
            for name, reused in line.reused_replies.items():
                model = told_apart(self.reused_replies, name)
                reused = ReusedReplies(reused.calls, bounded(reused.usage))
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
        for name, value in line.metrics.items():
            known = self._metrics.get(name)
            if known is None and len(self._metrics) >= MOST_NAMES:
                continue  # a mean of several metrics would mean nothing
            if known is None:
                known = self._metrics[name] = (array("l"), array("d"))
            known[0].append(task)
            known[1].append(value)
        self.notable.see_score(line, reward)

    def _spend(self, usage: Usage) -> None:
        used, usage = self._used, bounded(usage)
        used[0] += usage.input_tokens
        used[1] += usage.output_tokens
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
            saved_usd=self._saved(prices or {}),
            rewards=count_rewards(self._rewards),
        )

    def cost_usd(self, model: str, prices: Mapping[str, Price]) -> float | None:
        """What was paid so far; None without a price of the evaluated model."""
        (cost, _), saved = self._cost(model, prices), self._saved(prices)
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
        groups: dict[int, list[float]] = {}
        for task, value in zip(tasks, values, strict=True):
            groups.setdefault(task, []).append(value)
        return [groups[task] for task in sorted(groups)]

    def _pass(self, groups: list[list[float]], most: int, measure: Any) -> dict[str, float]:
        if most < 2:
            return {}
        passed = [sum(reward >= self.pass_threshold for reward in group) for group in groups]
        found = {}
        for k in powers_of_two(most):
            values = [
                measure(len(group), count, k)
                for group, count in zip(groups, passed, strict=True)
                if len(group) >= k
            ]
            if values:
                found[str(k)] = math.fsum(values) / len(values)
        return found

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
        unpriced = tuple(name for name in used if name not in prices)
        priced = [prices[name].of(usage) for name, usage in used.items() if name in prices]
        return (math.fsum(priced) if model in prices else None), unpriced

    def _saved(self, prices: Mapping[str, Price]) -> float | None:
        """What reused replies would have cost, of the models that have a price."""
        priced = [
            prices[name].of(reused.usage) for name, reused in self.reused_replies.items() if name in prices
        ]
        return math.fsum(priced) if priced else None


class NotableRollouts:
    """Which rollouts a reader would want to see: the worst, the odd, the best."""

    def __init__(self) -> None:
        self._by_reason: dict[str, tuple[float, RolloutKey]] = {}
        self._most = [-math.inf] * len(EXTREMES)

    def see_outcome(self, line: RolloutLine) -> None:
        self._by_reason.setdefault(line.outcome.replace("_", " "), (0.0, line.key))

    def see_score(self, line: RolloutLine, reward: float) -> None:
        tokens, most = line.token_usage.output_tokens, self._most
        if -reward <= most[0] and reward <= most[1] and tokens <= most[2]:
            return
        for index, size in enumerate((-reward, reward, tokens)):
            if size > most[index]:
                most[index] = size
                self._by_reason[EXTREMES[index]] = (size, line.key)

    def keys(self, most: int = 4) -> dict[RolloutKey, str]:
        """Keys with the reason for each: the worst first, then the odd, then the best."""
        order = {"worst": 0, "longest answer": 2, "best": 3}  # what is odd comes second
        reasons = sorted(self._by_reason, key=lambda reason: order.get(reason, 1))
        chosen: dict[RolloutKey, str] = {}
        for reason in reasons:
            key = self._by_reason[reason][1]
            if key not in chosen and len(chosen) < most:
                chosen[key] = reason
        return chosen


def unscored(line: RolloutLine, problem: str) -> RolloutLine:
    """Normalize a line from a file that Proctor may not have written."""
    error = ErrorLine("GraderError", problem, "scoring")
    return msgspec.structs.replace(line, outcome="grader_error", reward=None, metrics={}, error=error)


def bounded(usage: Usage) -> Usage:
    if (
        0 <= usage.input_tokens <= MOST_TOKENS
        and 0 <= usage.output_tokens <= MOST_TOKENS
        and 0 <= usage.cached_tokens <= MOST_TOKENS
        and 0 <= usage.reasoning_tokens <= MOST_TOKENS
    ):
        return usage
    return Usage(*(max(0, min(count, MOST_TOKENS)) for count in astuple(usage)))


def told_apart(known: Collection[str], name: str) -> str:
    """The name that something is counted by."""
    return name if name in known or len(known) < MOST_NAMES else OTHERS


def count_error(errors: dict[tuple[str, str], ErrorGroup], line: RolloutLine, error: ErrorLine) -> None:
    cause = (line.outcome, error.error)
    if cause not in errors and len(errors) >= MOST_NAMES:
        cause = (line.outcome, OTHERS)
    known = errors.get(cause)
    if known is None:
        sample = error.message[:SAMPLE_LENGTH].encode("utf-8", "replace").decode()
        where = (line.example_id, line.rollout, error.phase, error.location)
        known = ErrorGroup(cause[0], cause[1], 0, sample, *where)
    errors[cause] = msgspec.structs.replace(known, count=known.count + 1)


def rank_errors(errors: Mapping[Any, ErrorGroup]) -> tuple[ErrorGroup, ...]:
    return tuple(sorted(errors.values(), key=lambda group: -group.count))


def compute_coverage(scored: int, planned: int | None, excluded: int) -> float | None:
    """Share of the rollouts that count which were scored."""
    if planned is None:
        return None
    wanted = planned - excluded
    return scored / wanted if wanted > 0 else 1.0


def group_means(groups: Iterable[list[float]]) -> list[float]:
    return [math.fsum(group) / len(group) for group in groups if group]


def compute_spread(values: array[float]) -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(ordered[last // 2], ordered[math.ceil(last * 0.9)], ordered[-1])


def count_rewards(rewards: array[float]) -> Histogram | None:
    if not rewards or is_zero_one([rewards]):
        return None
    low, high = min(0.0, min(rewards)), max(1.0, max(rewards))
    counts, width = [0] * HISTOGRAM_PARTS, (high - low) / HISTOGRAM_PARTS
    for reward in rewards:
        counts[min(HISTOGRAM_PARTS - 1, int((reward - low) / width))] += 1
    return Histogram(low, high, tuple(counts))


def powers_of_two(most: int) -> list[int]:
    powers = [2**exponent for exponent in range(most.bit_length()) if 2**exponent <= most]
    return powers if powers[-1] == most else [*powers, most]
