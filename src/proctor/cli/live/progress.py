"""What a display shows of a run while it is played: counts, pace, time left, and the words for them.

An event only moves counters, because there may be thousands a second; whatever costs more is worked out
when they are shown. Knows nothing of terminals.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import format_quantity
from proctor.evaluation.evaluate import Control
from proctor.events import (
    Event,
    ModelCalled,
    PlanCounted,
    RolloutRetried,
    RolloutsFinished,
    RolloutStarted,
    RunEnded,
    RunStarted,
)
from proctor.listeners.waiting import WaitStatus
from proctor.report.tally import Tally
from proctor.run import Run
from proctor.stats.mean import MeanEstimate
from proctor.trace import Usage

Settings = Sequence[tuple[str, str]]
"""What is evaluated and how, as (label, value) pairs; "environment", "model" and "label" name the run."""
State = Literal["waiting", "running", "stopping", "finished", "failed", "stopped", "timed out"]

PACE_SECONDS = 10.0
LONG_PACE_SECONDS = 60.0
MIN_PACE_COUNT = 10
"""Fewer than this in the short span, and the pace is read from the long one."""
SAMPLE_SECONDS = 0.5
SCORE_SECONDS = 1.0
SCORE_SHARE = 50
"""The running score may take one part in this many of the time."""
TIMED_OUT = "scored_at_timeout"
"""An agent ran out of time and was scored all the same; a `timeout` without a score is a failure."""
SUCCESS_OUTCOMES = ("scored", TIMED_OUT, "truncated", "excluded")
NO_ESTIMATE = MeanEstimate(None, None, None, 0)


class DisplayedRun(msgspec.Struct, frozen=True):
    """An evaluation to show."""

    settings: Settings
    control: Control


class Pace:
    """How fast a count grows, from samples of the last minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, now: float, count: int) -> None:
        samples = self._samples
        if samples and now - samples[-1][0] < SAMPLE_SECONDS:
            return
        samples.append((now, count))
        while now - samples[0][0] > LONG_PACE_SECONDS:
            samples.popleft()

    def per_second(self, now: float, count: int, span: float = PACE_SECONDS) -> float | None:
        """Growth over the last `span` seconds, or the last minute where that is little; None at first."""
        then = next((sample for sample in self._samples if now - sample[0] <= span), None)
        if then is None or now - then[0] < SAMPLE_SECONDS:
            return None
        if count - then[1] < MIN_PACE_COUNT and span < LONG_PACE_SECONDS:
            return self.per_second(now, count, LONG_PACE_SECONDS)
        return (count - then[1]) / (now - then[0])


class RunProgress:
    """Listens to a run, one of `among` that are shown together."""

    def __init__(
        self, shown: DisplayedRun, clock: Callable[[], float] = time.monotonic, *, among: int = 1
    ) -> None:
        self.control = shown.control
        self.env, self.model, self.label, self.settings = split_title(shown.settings)
        self.run: Run | None = None
        self.planned: int | None = None
        self.finished_before = 0
        self.retries = 0
        self.rate_limited = 0
        """Requests the provider answered with 429."""
        self.input_tokens = 0
        self.output_tokens = 0
        self.last_error: tuple[str, str] | None = None
        """Kind and message, as they came."""
        self.score = NO_ESTIMATE
        self.metrics: dict[str, float] = {}
        self.finished_here = 0
        """Without what was finished before a resume."""
        self.score_due = 0.0
        """When the score may be worked out again."""
        self._clock = clock
        self._score_share = SCORE_SHARE * among
        self._started_at = clock()
        self._ended_at: float | None = None
        self._started = 0
        self._pace = Pace()
        self._token_pace = Pace()
        self._scored_at_count = 0
        self._wait = WaitStatus(self.model, clock)

    wants_traces = False

    def __call__(self, event: Event) -> None:
        self._wait(event)
        if isinstance(event, ModelCalled):
            self._count_call(event)
        elif isinstance(event, RolloutStarted):
            self._started += 1
        elif isinstance(event, RolloutsFinished):
            self.finished_here += len(event.rollouts)
            for rollout in event.rollouts:
                if rollout.failure is not None and rollout.outcome != "excluded":
                    self.last_error = (rollout.failure.kind, rollout.failure.message)
        elif isinstance(event, RolloutRetried):
            self.retries += 1
            self.last_error = (f"{event.failure.kind} (retried)", event.failure.message)
        elif isinstance(event, RunStarted):
            self._begin(event)
        elif isinstance(event, PlanCounted):
            self.planned = event.planned
        elif isinstance(event, RunEnded):
            self._end(event)

    def _count_call(self, event: ModelCalled) -> None:
        call = event.call
        if call.reply is not None:
            if call.role == "agent":
                usage = call.reply.usage
                self.input_tokens += usage.input_tokens
                self.output_tokens += usage.output_tokens
        elif call.failure is not None and call.failure.kind == "RateLimitError":
            self.rate_limited += 1

    def _begin(self, event: RunStarted) -> None:
        self.run = event.run
        self.planned = event.planned
        self.finished_before = event.finished_before
        self._started_at = self._clock()
        tally = self.control.tally
        before = Usage() if tally is None else tally.usage
        self.input_tokens += before.input_tokens
        self.output_tokens += before.output_tokens

    def _end(self, event: RunEnded) -> None:
        if self.run is None:  # it failed before it began
            self._started_at = self._clock()
        self.run = event.run
        self._ended_at = self._clock()
        self.score_due = 0.0

    def look(self, *, with_score: bool = True) -> None:
        """Bring the pace and the score up to date; call it before reading them."""
        now = self._now()
        if self.run is not None:  # neither waiting nor the tokens of before a resume are a pace
            self._pace.sample(now, self.finished_here)
            self._token_pace.sample(now, self.output_tokens)
        tally = self.control.tally
        due = with_score and now >= self.score_due
        if tally is not None and due and tally.finished != self._scored_at_count:
            self._update_score(tally)
            self.score_due = now + max(SCORE_SECONDS, self._score_share * (self._now() - now))

    def refresh_fully(self) -> None:
        """Bring everything up to date once more, however lately that was done."""
        self.score_due = 0.0
        self.look()

    def _update_score(self, tally: Tally) -> None:
        self._scored_at_count = tally.finished
        self.score = tally.running()
        self.metrics = tally.running_metrics()

    def _now(self) -> float:
        """The time, which stands still when the run has ended."""
        return self._clock() if self._ended_at is None else self._ended_at

    @property
    def name(self) -> str:
        """Environment, model and what a sweep chose: what tells runs apart."""
        return " ".join(part for part in (f"{self.env} · {self.model}", self.label) if part)

    @property
    def state(self) -> State:
        if self.run is None:
            return "waiting"
        if not self.ended:
            return "stopping" if self.control.stopping else "running"
        status = self.run.status
        if status == "timed_out":
            return "timed out"
        return status if status in ("failed", "stopped") else "finished"

    @property
    def ended(self) -> bool:
        return self._ended_at is not None

    @property
    def note(self) -> str:
        """Why it failed or was stopped."""
        return one_line(self.run.note) if self.run is not None and self.ended else ""

    @property
    def finished(self) -> int:
        return 0 if self.control.tally is None else self.control.tally.finished

    @property
    def failed(self) -> int:
        return 0 if self.control.tally is None else self.control.tally.failed

    @property
    def hears_starts(self) -> bool:
        """Whether it sees rollouts begin; a server reports only those that ended."""
        return self._started > 0 or self.finished_here == 0

    @property
    def in_flight(self) -> int:
        """Being played or scored now; a rollout that waits for its next try is not."""
        return 0 if self.ended else max(0, self._started - self.retries - self.finished_here)

    @property
    def seconds(self) -> float:
        return self._now() - self._started_at

    @property
    def per_second(self) -> float | None:
        if self.ended:
            return self.finished_here / max(self.seconds, SAMPLE_SECONDS)
        return self._pace.per_second(self._now(), self.finished_here)

    @property
    def tokens_per_second(self) -> float | None:
        return self._token_pace.per_second(self._now(), self.output_tokens)

    @property
    def seconds_left(self) -> float | None:
        """At the pace of the last minute, which is steadier than the one shown."""
        if self.planned is None or not self.finished_here:
            return None
        pace = self._pace.per_second(self._now(), self.finished_here, LONG_PACE_SECONDS)
        pace = pace or self.finished_here / max(self.seconds, SAMPLE_SECONDS)
        return max(0, self.planned - self.finished) / pace

    @property
    def requests_at_once(self) -> int | None:
        """What the provider's rate limit has cut the run down to."""
        pace = self.control.pace
        return None if pace is None or pace.semaphore is None else pace.semaphore.limit

    def waiting(self) -> str | None:
        """What it waits for, if nothing happens."""
        if self.run is None or self.ended:
            return None
        pace = self.control.pace
        described = self._wait.describe(None if pace is None else pace.in_flight)
        return None if described is None else one_line(described)

    def outcomes(self) -> list[tuple[str, int]]:
        """Outcomes with counts: scored first, then failures by number, then the rest."""
        tally = self.control.tally
        counts = Counter() if tally is None else tally.outcomes.copy()
        if tally is not None and tally.timed_out:
            counts[TIMED_OUT] = tally.timed_out
            counts["timeout"] -= tally.timed_out
        failures = [name for name, count in counts.most_common() if count and name not in SUCCESS_OUTCOMES]
        others = [name for name in SUCCESS_OUTCOMES[1:] if counts[name]]
        return [(name, counts[name]) for name in ("scored", *failures, *others)]

    def stopping(self) -> str | None:
        """The sentence that says a stop was requested, if it was."""
        if not self.control.stopping or self.ended:
            return None
        left = self.in_flight
        rollouts = format_quantity(left, "rollout")
        return f"Stopping: {rollouts} in flight will finish; Ctrl-C again leaves at once."


def split_title(settings: Settings) -> tuple[str, str, str, list[tuple[str, str]]]:
    """Environment, model, what a sweep chose, and the other settings, all safe to print."""
    safe = {one_line(label): one_line(value) for label, value in settings}
    env, model, label = (safe.pop(name, "") for name in ("environment", "model", "label"))
    return env, model, label, list(safe.items())
