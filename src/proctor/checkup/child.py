"""Where the environment under check really runs: a process that may print, hang or die without harm.

python -m proctor.checkup.child REQUEST FD        a CheckupRequest as JSON in, messages to a file descriptor
out
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
from proctor.checkup.interference import find_interference
from proctor.checkup.messages import (
    CheckupDone,
    CheckupMessage,
    CheckupRequest,
    FindingReported,
    StepStarted,
    TasksRead,
    TrialPlayed,
    helper_endpoint,
)
from proctor.checkup.reference_agents import ScriptedPlayer, create_players
from proctor.checkup.trial import Trial, play_trial
from proctor.contracts import EnvironmentProtocol, Model
from proctor.env.multi_turn import MultiTurnEnv
from proctor.errors import ProctorError, format_last_frames
from proctor.optional_contracts import OffersGold, get_pass_threshold
from proctor.packages import loading as packages
from proctor.support.loop import exit_now
from proctor.task import Task

CLEANUP_SECONDS = 60.0
GRACE_SECONDS = 10.0
FOREIGN_SECONDS = 1800.0
"""Loading an environment of another framework may first install what it requires."""

SendLine = Callable[[CheckupMessage], None]


class ExaminationStoppedError(Exception):
    """What was found makes the rest meaningless."""


class Examination:
    """One environment, looked at step by step until something makes the rest meaningless."""

    def __init__(self, request: CheckupRequest, send: SendLine) -> None:
        self.request = request
        self.send = send

    def run(self) -> None:
        with suppress(ExaminationStoppedError):
            self.examine()
        self.send(CheckupDone())

    def examine(self) -> None:
        request = self.request
        found = packages.find_environment(request.env_id, request.env_dir)
        is_foreign = packages.dialect_of(found) is not None
        with self.step("importing the module", "E103"):
            is_module = not found.registered and packages.find_task_source(found) is None
            module = packages.import_environment(found) if is_module and not is_foreign else None
        with self.step("looking for load_environment()", "E102"):
            loader = packages.loader_of(module) if module else packages.import_loader(found)
        with self.step("load_environment()", "E105", FOREIGN_SECONDS if is_foreign else None):
            environment = packages.call_loader(loader, request.arguments, found)
        tasks = self.read_tasks(environment)
        if request.only_tasks:
            return
        for finding in tasks_check.find_task_problems(tasks):
            self.send(FindingReported(finding))
        if not tasks:
            raise ExaminationStoppedError
        with self.step("the second load_environment()", "E106", FOREIGN_SECONDS if is_foreign else None):
            again = packages.call_loader(loader, request.arguments, found)
        changed = tasks_check.find_content_change(
            tasks_check.task_contents(tasks),
            tasks_check.task_contents(self.first_tasks(again)),
            "after a second load",
        )
        if changed:
            self.send(FindingReported(changed))
        distinct = list({task.id: task for task in tasks}.values())
        played = distinct[: request.tasks]
        with self.step("gold answers", "E301"):
            players = create_players(environment, played)
        if not is_foreign:  # its rollouts are apart, or share what their framework shares
            self.look_for_interference(environment, players, played[0])
        # Not asyncio.run(): it would wait for threads that are stuck in the environment's code.
        asyncio.new_event_loop().run_until_complete(self.perform(environment, players, played))

    def look_for_interference(
        self, environment: EnvironmentProtocol, players: list[ScriptedPlayer], task: Task
    ) -> None:
        """Before anything is played here, since that starts threads, and a fork would lack them."""
        self.send(StepStarted("playing two at once", self.request.seconds + GRACE_SECONDS))
        found = find_interference(environment, players, task, self.request.seconds)
        if found is not None:
            self.send(FindingReported(found))

    def read_tasks(self, environment: EnvironmentProtocol) -> list[Task]:
        tasks = self.first_tasks(environment)
        self.send(TasksRead(tasks_check.task_contents(tasks)))
        return tasks

    def first_tasks(self, environment: EnvironmentProtocol) -> list[Task]:
        with self.step("reading the tasks", "E201"):
            return list(islice(environment.tasks(), tasks_check.MAX_TASKS_EXAMINED))

    async def perform(
        self, environment: EnvironmentProtocol, players: list[ScriptedPlayer], tasks: list[Task]
    ) -> None:
        request = self.request
        helper = open_helper_model(request)
        try:
            with self.step("the environment's own check()", "E107"):
                await environment.check()
                if helper is not None:
                    await helper.check()
            # One rollout is played, scored twice and closed before anything is reported.
            longest = 3 * request.seconds + CLEANUP_SECONDS + GRACE_SECONDS
            playing = StepStarted("playing", longest)
            self.send(playing)
            with self.step("playing", "E305", longest):
                trial = await play_trial(
                    environment,
                    players,
                    tasks,
                    helper=helper,
                    seconds=request.seconds,
                    progress=lambda: self.send(playing),
                )
            self.judge(trial, environment)
        finally:
            await self.close(environment, helper)

    def judge(self, trial: Trial, environment: EnvironmentProtocol) -> None:
        threshold = get_pass_threshold(environment)
        for finding in verdict.find_trial_problems(
            trial, offers_gold=has_gold_method(environment), pass_threshold=threshold
        ):
            self.send(FindingReported(finding))
        self.send(TrialPlayed(verdict.summarize_rewards(trial)))

    async def close(self, environment: EnvironmentProtocol, helper: Model | None) -> None:
        with self.step("close()", "W312"):
            await environment.close()
        if helper is not None:
            await helper.close()

    @contextmanager
    def step(self, what: str, code: str, seconds: float | None = None) -> Iterator[None]:
        """Say what begins; whatever goes wrong in it becomes a finding, and ends the examination."""
        self.send(StepStarted(what, seconds or self.request.seconds))
        try:
            yield
        except ExaminationStoppedError:
            raise
        except ProctorError as error:
            self.send(FindingReported(Finding(code, str(error))))
            raise ExaminationStoppedError from error
        except Exception as error:
            location = next(iter(reversed(format_last_frames(error))), "")
            problem = f"{what} raised {type(error).__name__}: {' '.join(str(error).split())} at {location}"
            self.send(FindingReported(Finding(code, problem)))
            raise ExaminationStoppedError from error


def has_gold_method(environment: EnvironmentProtocol) -> bool:
    """Whether its author said what is right, rather than only what the answer is."""
    return isinstance(environment, OffersGold) and type(environment).gold is not MultiTurnEnv.gold


def open_helper_model(request: CheckupRequest) -> Model | None:
    endpoint = helper_endpoint(request)
    if endpoint is None:
        return None
    model: Model = plugins.load(plugins.MODELS, endpoint.client_type).at(endpoint)
    return model


def open_line_writer(descriptor: int) -> SendLine:
    """Writes each line at once, so that it arrives even if the process dies right after."""

    def send(line: Any) -> None:
        content = memoryview(msgspec.json.encode(line) + b"\n")
        while content:
            content = content[os.write(descriptor, content) :]

    return send


def main() -> None:
    request = msgspec.json.decode(sys.argv[1], type=CheckupRequest)
    logging.getLogger("proctor").setLevel(logging.ERROR)
    os.set_inheritable(int(sys.argv[2]), False)
    Examination(request, open_line_writer(int(sys.argv[2]))).run()
    exit_now(0)


if __name__ == "__main__":
    main()
