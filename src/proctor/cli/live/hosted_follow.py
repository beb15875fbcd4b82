"""Follow hosted runs with the display that local runs have.

What a server reports of a run becomes the events that the engine would have emitted; a display cannot tell
them apart. Ctrl-C leaves the run to itself. Knows nothing of how lines come through; see client/follow.py.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import cast

import msgspec

from proctor.api.runs import RolloutBrief, RunEvent, RunInfo
from proctor.cli.live.display_choice import choose_display
from proctor.cli.live.progress import DisplayedRun
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.follow import FollowTimings, follow
from proctor.client.runs import read_run
from proctor.config.schema import Presentation
from proctor.contracts import Listener
from proctor.errors import Failure
from proctor.evaluation.evaluate import Control
from proctor.events import LogLine, ModelCalled, PlanCounted, RolloutsFinished, RunEnded, RunStarted
from proctor.report.lines import ErrorLine, RolloutLine, TimingLine
from proctor.report.tally import Tally
from proctor.rollout import Outcome, Rollout, RolloutKey, Score, Span, Timing
from proctor.run import ENDED, Run
from proctor.support.logs import log
from proctor.task import Task
from proctor.trace import ModelCall, Reply, Trace, Usage

WAITING = {"pending": "Waits for its turn.", "stopping": "Is being stopped."}


class FollowedRun(msgspec.Struct, frozen=True):
    """A run as it was when following it ended."""

    run: RunInfo
    error: ServerError | None = None


class FollowInterruptedError(Exception):
    """The user pressed Ctrl-C; the runs continue."""


async def follow_all(
    server: ServerConnection, runs: Sequence[RunInfo], shown: Presentation, patience: FollowTimings
) -> list[FollowedRun]:
    """Follow them side by side to their ends."""
    controls = [Control() for _ in runs]
    display = choose_display(
        [DisplayedRun(display_settings(run), control) for run, control in zip(runs, controls, strict=True)],
        disabled=shown.disable_tui,
        fullscreen=shown.fullscreen,
    )
    relays = [
        Relay(run, control, display.listener(index), verbose=shown.verbose)
        for index, (run, control) in enumerate(zip(runs, controls, strict=True))
    ]
    following = asyncio.ensure_future(follow_concurrently(server, relays, patience))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, following.cancel)
    try:
        async with display:
            return await following
    except asyncio.CancelledError:
        raise FollowInterruptedError from None
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def follow_concurrently(
    server: ServerConnection, relays: Sequence[Relay], patience: FollowTimings
) -> list[FollowedRun]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow_one(server, relay, patience)) for relay in relays]
    return [task.result() for task in tasks]


async def follow_one(server: ServerConnection, relay: Relay, patience: FollowTimings) -> FollowedRun:
    run = relay.run
    try:
        async for event in follow(server, run.id, patience=patience, notify=log.warning):
            relay(event)
        return FollowedRun(await read_run(server, run.id))
    except ServerError as error:
        relay.report_lost(str(error))
        return FollowedRun(run, error)


class Relay:
    """Tells a display of one run."""

    def __init__(self, run: RunInfo, control: Control, emit: Listener, *, verbose: bool = False) -> None:
        self.run = run
        self._emit = emit
        self._verbose = verbose
        self._tally = control.tally = Tally()
        self._counted: set[RolloutKey] = set()
        self._begun = False
        self._planned: int | None = None

    def __call__(self, event: RunEvent) -> None:
        if event.kind == "log":
            self._emit_log(event.level or "INFO", event.text, event.at)
        if event.status is not None:
            self._status(event)
        if event.progress is not None and event.progress.planned not in (None, self._planned):
            self._planned = event.progress.planned
            assert self._planned is not None
            self._begin(event.at)
            self._emit(PlanCounted(self._planned))
        if event.rollout is not None:
            self._begin(event.at)
            self._rollout(event.rollout, event.at)

    def report_lost(self, why: str) -> None:
        """Nothing more can be learned of it."""
        self._emit(RunEnded(self._as_run("failed", note=why)))

    def _emit_log(self, level: str, text: str, at: float) -> None:
        if self._verbose or level != "DEBUG":
            self._emit(LogLine(level, text, at))

    def _status(self, event: RunEvent) -> None:
        assert event.status is not None
        if event.status in ENDED:
            note = event.cause.message if event.cause is not None else event.text
            self._emit(RunEnded(self._as_run(event.status, ended_at=event.at, note=note)))
            return
        if event.status == "running":
            self._begin(event.at)
        if event.status == "pending" and event.cause is not None:
            self._emit_log(
                "WARNING", f"The attempt ended: {event.cause.message} It is started again.", event.at
            )
        elif event.text or event.status != "running":
            self._emit_log("INFO", event.text or WAITING[event.status], event.at)

    def _begin(self, at: float) -> None:
        if not self._begun:
            self._begun = True
            self._emit(RunStarted(self._as_run("running", started_at=at), self._planned))

    def _as_run(self, status: str, *, started_at: float = 0.0, ended_at: float = 0.0, note: str = "") -> Run:
        return Run(
            id=self.run.id,
            env_id=self.run.environment,
            model=self.run.model,
            status=status,  # type: ignore[arg-type]
            started_at=started_at,
            ended_at=ended_at or None,
            note=note,
        )

    def _rollout(self, brief: RolloutBrief, at: float) -> None:
        """Count it once, though it may be reported again after a crash."""
        key = (brief.task, brief.number)
        if key in self._counted:
            return
        self._counted.add(key)
        outcome = cast(Outcome, brief.outcome)
        kind, _, message = brief.error.partition(": ")
        usage = Usage(brief.input_tokens, brief.output_tokens)
        failure = Failure(kind, message) if brief.error else None
        self._tally.add(
            RolloutLine(
                brief.task,
                brief.number,
                outcome,
                reward=brief.reward,
                token_usage=usage,
                timing=TimingLine(brief.seconds),
                error=ErrorLine(kind, message) if brief.error else None,
            )
        )
        # one call stands for all that the rollout made: only their tokens are known here
        call = ModelCall("agent", self.run.model, (), {}, at, reply=Reply({}, usage=usage))
        self._emit(ModelCalled(key, call))
        moment = Span(at - brief.seconds, at)
        rollout = Rollout(
            task=Task(id=brief.task),
            number=brief.number,
            outcome=outcome,
            trace=Trace(),
            timing=Timing(moment, moment, moment, at),
            usage=usage,
            score=None if brief.reward is None else Score(brief.reward),
            failure=failure,
        )
        self._emit(RolloutsFinished((rollout,)))


def display_settings(run: RunInfo) -> list[tuple[str, str]]:
    version = f"{run.environment}@{run.version}" if run.version else run.environment
    rows = [("environment", version), ("model", run.model), ("label", run.name), ("run", run.id)]
    return [(label, value) for label, value in rows if value]
