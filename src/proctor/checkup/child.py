"""Where the environment under check really runs: a process that may print, hang or die without harm.

python -m proctor.checkup.child ORDER FD        told by JSON, tells by lines written to a file descriptor
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

import msgspec

from proctor import plugins
from proctor.checkup import tasks as tasks_check
from proctor.checkup import verdict
from proctor.checkup.finding import Finding
from proctor.checkup.players import cast
from proctor.checkup.trial import Trial, play
from proctor.checkup.wire import Began, Done, Found, Line, Order, Played, TasksRead, helper_endpoint
from proctor.contracts import Environment, Model
from proctor.env.multi_turn import MultiTurnEnv
from proctor.errors import ProctorError, last_frames
from proctor.packages import loading as packages
from proctor.support.loop import leave
from proctor.task import Task

CLEANUP_SECONDS = 60.0
GRACE_SECONDS = 10.0

Tell = Callable[[Line], None]


class StopError(Exception):
    """What was found makes the rest meaningless."""


class Examination:
    """One environment, looked at step by step until something makes the rest meaningless."""

    def __init__(self, order: Order, tell: Tell) -> None:
        self.order = order
        self.tell = tell

    def run(self) -> None:
        with suppress(StopError):
            self.examine()
        self.tell(Done())

    def examine(self) -> None:
        order = self.order
        found = packages.find(order.env_id, order.env_dir)
        with self.step("importing the module", "E103"):
            module = None if found.registered else packages.module_of(found)
        with self.step("looking for load_environment()", "E102"):
            loader = packages.loader_of(module) if module else packages.imported_loader(found)
        with self.step("load_environment()", "E105"):
            environment = packages.make(loader, order.arguments, found)
        tasks = self.read_tasks(environment)
        if order.only_tasks:
            return
        for finding in tasks_check.findings(tasks):
            self.tell(Found(finding))
        if not tasks:
            raise StopError
        with self.step("the second load_environment()", "E106"):
            again = packages.make(loader, order.arguments, found)
        changed = tasks_check.difference(
            tasks_check.content_of(tasks),
            tasks_check.content_of(self.first_tasks(again)),
            "after a second load",
        )
        if changed:
            self.tell(Found(changed))
        distinct = list({task.id: task for task in tasks}.values())
        # Not asyncio.run(): it would wait for threads that are stuck in the environment's code.
        asyncio.new_event_loop().run_until_complete(self.perform(environment, distinct[: order.tasks]))

    def read_tasks(self, environment: Environment) -> list[Task]:
        tasks = self.first_tasks(environment)
        self.tell(TasksRead(tasks_check.content_of(tasks)))
        return tasks

    def first_tasks(self, environment: Environment) -> list[Task]:
        with self.step("reading the tasks", "E201"):
            return list(islice(environment.tasks(), tasks_check.LOOKED_AT))

    async def perform(self, environment: Environment, tasks: list[Task]) -> None:
        order = self.order
        helper = helper_of(order)
        with self.step("gold answers", "E301"):
            players = cast(environment, tasks)
        try:
            with self.step("the environment's own check()", "E107"):
                await environment.check()
                if helper is not None:
                    await helper.check()
            # One rollout is played, scored twice and closed before anything is heard of it.
            longest = 3 * order.seconds + CLEANUP_SECONDS + GRACE_SECONDS
            playing = Began("playing", longest)
            self.tell(playing)
            with self.step("playing", "E305", longest):
                trial = await play(
                    environment,
                    players,
                    tasks,
                    helper=helper,
                    seconds=order.seconds,
                    progress=lambda: self.tell(playing),
                )
            self.judge(trial, environment)
        finally:
            await self.close(environment, helper)

    def judge(self, trial: Trial, environment: Environment) -> None:
        threshold = float(getattr(environment, "pass_threshold", 0.5))
        for finding in verdict.findings(
            trial, offers_gold=offers_gold(environment), pass_threshold=threshold
        ):
            self.tell(Found(finding))
        self.tell(Played(verdict.figures(trial)))

    async def close(self, environment: Environment, helper: Model | None) -> None:
        with self.step("close()", "W312"):
            await environment.close()
        if helper is not None:
            await helper.close()

    @contextmanager
    def step(self, what: str, code: str, seconds: float | None = None) -> Iterator[None]:
        """Say what begins; whatever goes wrong in it becomes a finding, and ends the examination."""
        self.tell(Began(what, seconds or self.order.seconds))
        try:
            yield
        except StopError:
            raise
        except ProctorError as error:
            self.tell(Found(Finding(code, str(error))))
            raise StopError from error
        except Exception as error:
            place = next(iter(reversed(last_frames(error))), "")
            told = f"{what} raised {type(error).__name__}: {' '.join(str(error).split())} at {place}"
            self.tell(Found(Finding(code, told)))
            raise StopError from error


def offers_gold(environment: Environment) -> bool:
    """Whether its author said what is right, rather than only what the answer is."""
    offered = getattr(type(environment), "gold", None)
    return offered is not None and offered is not MultiTurnEnv.gold


def helper_of(order: Order) -> Model | None:
    endpoint = helper_endpoint(order)
    if endpoint is None:
        return None
    model: Model = plugins.load(plugins.MODELS, endpoint.client_type).at(endpoint)
    return model


def teller(descriptor: int) -> Tell:
    """Writes each line at once, so that it is heard even if the next moment is the last."""

    def tell(line: Any) -> None:
        content = memoryview(msgspec.json.encode(line) + b"\n")
        while content:
            content = content[os.write(descriptor, content) :]

    return tell


def main() -> None:
    order = msgspec.json.decode(sys.argv[1], type=Order)
    logging.getLogger("proctor").setLevel(logging.ERROR)
    os.set_inheritable(int(sys.argv[2]), False)
    Examination(order, teller(int(sys.argv[2]))).run()
    leave(0)


if __name__ == "__main__":
    main()
