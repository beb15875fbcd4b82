"""A workflow and its grader as an environment: each row of a dataset is a task.

The author's code runs in threads of its own, and reaches the evaluated model through the gateway, so whatever
framework it uses is recorded, paced and counted. Knows nothing of repositories or recipes.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from proctor.contracts import HttpEndpoint, Seat, Session, Traits
from proctor.errors import AgentError, ExcludedError, GraderError, RolloutError
from proctor.optional_contracts import Fingerprint
from proctor.rollout import RecordedPlay, Score, require_finite_number
from proctor.support.code_hash import hash_code
from proctor.support.own_thread import run_in_own_thread
from proctor.task import Task
from proctor.trace import Message, Trace
from proctor.wires import chat, chat_server
from proctor.wires.errors import GatewayRefusedError
from proctor.workflow.artifacts import ArtifactFolders, copy_artifacts, has_files
from proctor.workflow.authoring import (
    AgentWorkflow,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    Grader,
    GraderContext,
    Messages,
    RolloutSample,
    Skippable,
)
from proctor.workflow.user_errors import describe_user_error

TRAITS = Traits(play_limit="agent_workflow_timeout_s", scoring_limit="grader_timeout_s")


class WorkflowEnvironment:
    """Plays a workflow on tasks, and has a grader score it."""

    traits = TRAITS
    provenance: Mapping[str, Any] = {}
    selection = "all rows"

    def __init__(
        self,
        tasks: Sequence[Task],
        workflow: type[AgentWorkflow[Any]],
        grader: type[Grader[Any]],
        project: Path = Path(),
    ) -> None:
        self._tasks = tasks
        self.workflow = workflow
        self.grader = grader
        self.project = project
        self.artifacts = ArtifactFolders()

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    def set_run_folder(self, folder: Path) -> None:
        self.artifacts.set_base(folder)

    @asynccontextmanager
    async def open(self, task: Task) -> AsyncIterator[Session]:
        session = WorkflowSession(self, task)
        with session.closing:
            yield session

    @asynccontextmanager
    async def restore(self, task: Task, recorded: RecordedPlay) -> AsyncIterator[Session]:
        """A session of a row that was played before, to be graded again with copies of its files."""
        session = RestoredWorkflowSession(self, task, recorded)
        with session.closing:
            yield session

    def explain_unrestorable(self) -> str | None:
        return None

    def fingerprint(self) -> Fingerprint:
        return Fingerprint(hash_code(self.workflow), hash_code(self.grader))

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass


class WorkflowSession:
    """One attempt at one row."""

    def __init__(self, environment: WorkflowEnvironment, task: Task) -> None:
        self.environment = environment
        self.task = task
        self.closing = ExitStack()
        self.folder = Path()
        """For the attempt's files, once it is played."""
        self.metrics: dict[str, float] = {}

    async def play(self, seat: Seat) -> None:
        facts = seat.facts
        self.folder = self.closing.enter_context(
            self.environment.artifacts.open(facts["example_id"], facts["rollout"])
        )
        seat.trace.prompt = list(self.task.prompt)
        async with seat.open_endpoint() as endpoint:
            context = self._workflow_context(str(facts["trajectory_id"]), endpoint)
            output = await self._run_workflow(context, endpoint)
        if output.messages is not None:
            adopt_messages(seat.trace, self.task.prompt, output.messages)
        elif not seat.trace.calls and not has_files(self.folder):
            raise AgentError(
                "run() returned no messages, called no model and wrote no file; there is nothing to grade"
            )
        self.metrics = {name: float(value) for name, value in output.metrics.items()}

    def _workflow_context(self, rollout_id: str, endpoint: HttpEndpoint) -> AgentWorkflowContext[Any]:
        return AgentWorkflowContext(
            prompt=copy_messages(self.task.prompt),
            metadata=copy.deepcopy(self.task.info),
            config=self.environment.workflow.config,
            artifacts_dir=self.folder,
            project_path=self.environment.project,
            chat_completions_url=f"{endpoint.url}/v1",
            api_key=endpoint.key,
            model=endpoint.model,
            rollout_id=rollout_id,
        )

    async def _run_workflow(
        self, context: AgentWorkflowContext[Any], endpoint: HttpEndpoint
    ) -> AgentWorkflowOutput:
        """Run the author's code; what it raises is the agent's failure, unless the model failed first."""
        workflow = self.environment.workflow
        try:
            value = await run_in_own_thread(lambda: workflow().run(context))
            require_not_skipped(context)
            return read_output(value)
        except (RolloutError, asyncio.CancelledError):
            raise
        except BaseException as error:
            require_not_skipped(context)
            if endpoint.traffic.failure is not None:
                raise endpoint.traffic.failure from error
            problem = describe_user_error(error, self.environment.project)
            raise AgentError(f"the workflow raised {problem}") from error

    async def score(self, seat: Seat) -> Score:
        grader = self.environment.grader
        context = self._grader_context(seat.trace)
        try:
            await run_in_own_thread(lambda: grader().grade(context))
        except (RolloutError, asyncio.CancelledError):
            raise
        except BaseException as error:
            require_not_skipped(context)
            problem = describe_user_error(error, self.environment.project)
            raise GraderError(f"the grader raised {problem}") from error
        require_not_skipped(context)
        if context.sample.remove_sample:
            raise ExcludedError("the grader removed the sample")
        if context.reward is None:
            raise GraderError("the grader set no reward; call ctx.set_reward() or ctx.skip()")
        reward = require_finite_number(context.reward, "set_reward()")
        metrics = {
            name: require_finite_number(value, f"metric {name!r}")
            for name, value in (self.metrics | context.metrics).items()
        }
        return Score(reward, metrics)

    def _grader_context(self, trace: Trace) -> GraderContext[Any]:
        sample = RolloutSample(
            messages=copy_messages([*trace.prompt, *trace.completion]), metrics=dict(self.metrics)
        )
        return GraderContext(
            label=self.task.answer,
            sample=sample,
            prompt=copy_messages(self.task.prompt),
            metadata=copy.deepcopy(self.task.info),
            config=self.environment.grader.config,
            artifacts_dir=self.folder,
            project_path=self.environment.project,
        )


class RestoredWorkflowSession(WorkflowSession):
    """A recorded attempt at one row: only its grader runs."""

    def __init__(self, environment: WorkflowEnvironment, task: Task, recorded: RecordedPlay) -> None:
        super().__init__(environment, task)
        self.recorded = recorded

    async def play(self, seat: Seat) -> None:
        row, attempt = seat.facts["example_id"], seat.facts["rollout"]
        self.folder = self.closing.enter_context(self.environment.artifacts.open(row, attempt))
        if self.recorded.folder is not None:
            await asyncio.to_thread(copy_artifacts, self.recorded.folder, row, attempt, self.folder)
        self.metrics = dict(self.recorded.metrics)


def require_not_skipped(context: Skippable) -> None:
    """Also honors a skip() whose exception the author's code has caught."""
    if context.skipped is not None:
        raise ExcludedError(context.skipped)


def read_output(value: object) -> AgentWorkflowOutput:
    if value is None:
        return AgentWorkflowOutput()
    if isinstance(value, AgentWorkflowOutput):
        return value
    if isinstance(value, list):
        return AgentWorkflowOutput(messages=value)
    raise AgentError(
        f"run() returned {type(value).__name__}; return messages, an AgentWorkflowOutput, or nothing"
    )


def adopt_messages(trace: Trace, prompt: Sequence[Message], messages: Messages) -> None:
    """Make the returned conversation the recorded one: its beginning is the prompt."""
    decoded = decode_messages(messages)
    opening = len(prompt) if decoded[: len(prompt)] == list(prompt) else 0
    trace.prompt = decoded[:opening] or list(prompt)
    trace.completion = decoded[opening:]


def decode_messages(messages: Messages) -> list[Message]:
    try:
        return [
            chat_server.read_message(msgspec.convert(message, chat_server.ChatMessage), f"message {number}")
            for number, message in enumerate(messages)
        ]
    except (msgspec.ValidationError, GatewayRefusedError) as error:
        raise AgentError(f"run() returned a message that is not one of the chat API: {error}") from error


def copy_messages(messages: Sequence[Message]) -> Messages:
    """Messages as the chat completions API spells them, for the author to change."""
    return copy.deepcopy([dict(message) for message in chat.encode_messages(messages)])
