"""Find state that rollouts share: play one alone, two at once and two in a row, each in a fresh copy of the
process, and compare.

An agent that always says the same must find the same conversation and the same reward each time. Knows
nothing of what the rewards should be.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from proctor.checkup.finding import Finding
from proctor.checkup.reference_agents import RANDOM, Rendezvous, ScriptedPlayer
from proctor.checkup.trial import play_trial
from proctor.contracts import EnvironmentProtocol
from proctor.rollout import Rollout
from proctor.task import Task

CHUNK_BYTES = 65_536
ADVICE = (
    "keep state in the template or the session instead of the module, or have each rollout played in a "
    "process of its own with --runtime local"
)


class Performance(msgspec.Struct, frozen=True):
    """How one rollout ended, as its agent and its report would see it."""

    reward: float
    messages: Any


Performances = list[Performance] | None
"""None if not every rollout could be scored."""


def find_interference(
    environment: EnvironmentProtocol, players: Sequence[ScriptedPlayer], task: Task, seconds: float
) -> Finding | None:
    """The difference that another rollout makes, if any. It forks: call it before any thread is started."""
    traits = environment.traits
    if traits.grouped:  # its rewards depend on the siblings by design
        return None
    player = next((each for each in players if each.name.startswith("oracle")), None)
    player = player or next(each for each in players if each.name == RANDOM)

    def play(count: int, at_once: int) -> Callable[[], Performances]:
        return lambda: asyncio.run(perform(environment, player, task, count, at_once, seconds))

    at_once = [] if traits.capacity == 1 else [play(2, 2)]
    alone, again, in_a_row, *together = run_in_forks([play(1, 1), play(1, 1), play(2, 1), *at_once], seconds)
    if alone is None or alone != again:  # it fails, or is random: nothing to compare with
        return None
    for results, manner in ((next(iter(together), None), "at once"), (in_a_row, "one after the other")):
        if results is not None and (found := describe_interference(alone[0], results, manner, task)):
            return found
    return None


def describe_interference(
    alone: Performance, results: Sequence[Performance], manner: str, task: Task
) -> Finding | None:
    where = f"two rollouts of task {task.id!r}, played {manner}"
    for each in results:
        if each.reward != alone.reward:
            words = f"{where}: the reward is {each.reward:g}, and {alone.reward:g} for the same answers alone"
            return Finding("E306", f"{words}; {ADVICE}")
    if any(each != alone for each in results):
        words = f"{where}, see other messages than one alone, for the same answers"
        return Finding("W314", f"{words}; {ADVICE}")
    return None


async def perform(
    environment: EnvironmentProtocol,
    player: ScriptedPlayer,
    task: Task,
    count: int,
    at_once: int,
    seconds: float,
) -> Performances:
    trial = await play_trial(
        environment,
        [player] * count,
        [task],
        helper=None,
        seconds=seconds,
        progress=lambda: None,
        at_once=at_once,
        rendezvous=Rendezvous(at_once) if at_once > 1 else None,
    )
    if len(trial.rollouts) < count or any(rollout.score is None for rollout in trial.rollouts):
        return None
    return [performance_of(rollout) for rollout in trial.rollouts]


def performance_of(rollout: Rollout) -> Performance:
    assert rollout.score is not None
    trace = rollout.trace
    return Performance(rollout.score.reward, msgspec.to_builtins([*trace.prompt, *trace.completion]))


# Fresh copies of this process


def run_in_forks(works: Sequence[Callable[[], Performances]], seconds: float) -> list[Performances]:
    """What each returns in a fork of this process, all at the same time; None if that takes too long."""
    forks = [fork(work) for work in works]
    deadline = time.monotonic() + seconds
    try:
        return [read_result(pipe, deadline) for _, pipe in forks]
    finally:
        for pid, pipe in forks:
            os.close(pipe)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def fork(work: Callable[[], Performances]) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # what it prints is counted where it is played for the record
        os.dup2(nowhere, descriptor)
    with suppress(BaseException):
        content = memoryview(msgspec.json.encode(work()))
        while content:
            content = content[os.write(writing, content) :]
    os._exit(0)


def read_result(pipe: int, deadline: float) -> Performances:
    content = b"".join(read_until(pipe, deadline))
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(content, type=list[Performance] | None)
    return None


def read_until(pipe: int, deadline: float) -> Iterator[bytes]:
    while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        chunk = os.read(pipe, CHUNK_BYTES)
        if not chunk:
            return
        yield chunk
