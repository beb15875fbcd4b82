"""What a display tells of a run while it goes on: counts, pace, time left, and the words for them.

An event only moves counters, because there may be thousands a second; whatever costs more is worked out
when somebody looks. Knows nothing of terminals.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence

from proctor.cli.text import one_line
from proctor.evaluation import Control
from proctor.events import (
    Event,
    LogLine,
    ModelCalled,
    PlanCounted,
    RolloutRetried,
    RolloutsFinished,
    RolloutStarted,
    RunEnded,
    RunStarted,
)
from proctor.report import Tally
from proctor.rollout import SCORED
from proctor.run import Run
from proctor.stats import Estimate
from proctor.trace import Usage

Settings = Sequence[tuple[str, str]]
"""What is evaluated and how, as (label, value) pairs."""

PACE_SECONDS = 10.0
LONG_PACE_SECONDS = 60.0
ENOUGH = 10
"""Fewer than this in the short span, and the pace is read from the long one."""
SAMPLE_SECONDS = 0.5
SCORE_SECONDS = 1.0
SCORE_SHARE = 50
"""The running score may take one part in this many of the time."""
NO_ESTIMATE = Estimate(None, None, None, 0)


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
        if count - then[1] < ENOUGH and span < LONG_PACE_SECONDS:
            return self.per_second(now, count, LONG_PACE_SECONDS)
        return (count - then[1]) / (now - then[0])


class Progress:
    """Listens to a run."""

    def __init__(self, control: Control, clock: Callable[[], float] = time.monotonic) -> None:
        self.control = control
        self.run: Run | None = None
        self.planned: int | None = None
        self.ended = False
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
        self._clock = clock
        self._started_at = clock()
        self._started = 0
        self._finished = 0
        self._pace = Pace()
        self._token_pace = Pace()
        self._scored_at_count = 0
        self._score_due = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, ModelCalled):
            self._count_call(event)
        elif isinstance(event, RolloutStarted):
            self._started += 1
        elif isinstance(event, RolloutsFinished):
            self._finished += len(event.rollouts)
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
            self.run = event.run
            self.ended = True

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

    def look(self) -> None:
        """Bring the pace and the score up to date; call it before reading them."""
        now = self._clock()
        self._pace.sample(now, self._finished)
        if self.run is not None:  # tokens of before a resume are no pace
            self._token_pace.sample(now, self.output_tokens)
        tally = self.control.tally
        if tally is not None and now >= self._score_due and tally.finished != self._scored_at_count:
            self._work_out_score(tally)
            self._score_due = now + max(SCORE_SECONDS, SCORE_SHARE * (self._clock() - now))

    def look_at_last(self) -> None:
        """Bring everything up to date once more, however lately that was done."""
        self._score_due = 0.0
        self.look()

    def _work_out_score(self, tally: Tally) -> None:
        self._scored_at_count = tally.finished
        self.score = tally.running()
        self.metrics = tally.running_metrics()

    @property
    def finished(self) -> int:
        return 0 if self.control.tally is None else self.control.tally.finished

    @property
    def failed(self) -> int:
        return 0 if self.control.tally is None else self.control.tally.failed

    @property
    def in_flight(self) -> int:
        """Being played or scored now; a rollout that waits for its next try is not."""
        return max(0, self._started - self.retries - self._finished)

    @property
    def seconds(self) -> float:
        return self._clock() - self._started_at

    @property
    def per_second(self) -> float | None:
        return self._pace.per_second(self._clock(), self._finished)

    @property
    def tokens_per_second(self) -> float | None:
        return self._token_pace.per_second(self._clock(), self.output_tokens)

    @property
    def seconds_left(self) -> float | None:
        """At the pace of the last minute, which is steadier than the one shown."""
        if self.planned is None or not self._finished:
            return None
        pace = self._pace.per_second(self._clock(), self._finished, LONG_PACE_SECONDS)
        pace = pace or self._finished / max(self.seconds, SAMPLE_SECONDS)
        return max(0, self.planned - self.finished) / pace

    @property
    def requests_at_once(self) -> int | None:
        """What the provider's rate limit has cut the run down to."""
        pace = self.control.pace
        return None if pace is None or pace.gate is None else pace.gate.limit

    def outcomes(self) -> list[tuple[str, int]]:
        """Outcomes with counts: scored first, then failures by number, then the rest."""
        counts = {} if self.control.tally is None else self.control.tally.outcomes
        failures = [name for name in counts if name not in SCORED and name != "excluded" and counts[name]]
        failures.sort(key=lambda name: -counts[name])
        others = [name for name in ("truncated", "excluded") if counts.get(name)]
        return [(name, counts.get(name, 0)) for name in ("scored", *failures, *others)]

    def stopping(self) -> str | None:
        """The sentence that says a stop was asked for, if it was."""
        if not self.control.stopping or self.ended:
            return None
        left = self.in_flight
        return f"Stopping: {counted(left, 'rollout')} in flight will finish; Ctrl-C again leaves at once."


class LogTap(logging.Handler):
    """Hands on what a logger lets through."""

    def __init__(self, take: Callable[[LogLine], None]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                text = f"{text}: {type(error).__name__}: {error}"
            self._take(LogLine(record.levelname, text, record.created))
        except Exception:
            self.handleError(record)


def title(settings: Settings) -> tuple[str, str, list[tuple[str, str]]]:
    """Environment, model, and the other settings, all safe to print."""
    safe = {one_line(label): one_line(value) for label, value in settings}
    return safe.pop("environment", ""), safe.pop("model", ""), list(safe.items())


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def short_count(number: float) -> str:
    """1234567 → 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size * 0.9995:
            return f"{number / size:.1f}{letter}" if number < size * 99.95 else f"{number / size:.0f}{letter}"
    return f"{number:.0f}"


def short_number(value: float) -> str:
    """A score or a metric in about five characters."""
    size = abs(value)
    if size >= 100_000:
        return f"{value:.2e}"
    return f"{value:.3f}" if size < 10 else f"{value:.2f}" if size < 100 else f"{value:.1f}"


def short_rate(per_second: float | None, noun: str = "") -> str:
    if per_second is None:
        return "–"
    if per_second >= 1 or not per_second:
        amount = f"{per_second:.1f}" if per_second < 100 else short_count(per_second)
        return f"{amount}{noun}/s"
    return f"{per_second * 60:.1f}{noun}/min"


def clock_text(seconds: float) -> str:
    """72 → 1:12, 4000 → 1:06:40, two days → 2d 03:00."""
    whole = int(seconds)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24}d {hours % 24:02}:{minute:02}"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def interval_text(estimate: Estimate) -> str:
    """Where the mean plausibly lies; nothing where nobody can say yet."""
    interval = estimate.interval
    if interval is None:
        return ""
    bounds = f"{short_number(interval.low)} … {short_number(interval.high)}"
    return f"{bounds} ({interval.level * 100:g} %, {interval.kind})"
