"""Environments that own their turn loop: one exchange, or many.

An environment is its dataset, its rubric and a few hooks; the session below plays one rollout with them.
Hooks may be blocking or async. Knows nothing of the engine but its seat.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import Any, cast

import msgspec

from proctor.contracts import PASS_THRESHOLD, Seat, Session, Traits
from proctor.env.dataset import PromptMaker, RowSource, tasks_of
from proctor.env.functions import is_ours
from proctor.env.gold import Gold, answer_text
from proctor.env.hooks import cleanup, hooks_of, stop, teardown
from proctor.env.parsers import Parser
from proctor.env.restored import RestoredTurnSession
from proctor.env.rubric import GroupResult, Rubric, RubricGroup
from proctor.env.state import State, state_of
from proctor.errors import ConfigError, EnvError
from proctor.optional_contracts import Fingerprint
from proctor.plugins import did_you_mean
from proctor.rollout import RecordedPlay, Score
from proctor.support.code_hash import hash_code
from proctor.support.threads import Threads, recommended_max_workers
from proctor.task import Task
from proctor.trace import Message, Reply, ToolSpec
from proctor.types import to_message, to_messages

__all__ = ["MultiTurnEnv", "SingleTurnEnv", "cleanup", "stop", "teardown"]

Messages = Sequence[Message] | str

STATE_HOOKS = ("setup_state", "env_response", "get_prompt_messages")
LIVE = frozenset({"threads", "connections", "_executors", "_opened", "_in_order", "_counted"})
"""Attributes that say nothing of what an environment does."""
NOT_PLAYED = LIVE | {"rubric", "_source", "_tasks", "pass_threshold", "capacity", "name"}
CHECKED_TASKS = 50
"""How many tasks are looked at for the names of their columns, before the first model call."""


class MultiTurnEnv:
    """Turns alternate between the model and `env_response` until a stop condition holds."""

    def __init__(
        self,
        dataset: RowSource | None = None,
        *,
        eval_dataset: RowSource | None = None,
        rubric: Rubric | None = None,
        parser: Parser | None = None,
        system_prompt: str | None = None,
        few_shot: Sequence[Message] | None = None,
        max_turns: int = -1,
        max_total_completion_tokens: int = -1,
        sampling_args: Mapping[str, Any] | None = None,
        pass_threshold: float = PASS_THRESHOLD,
        capacity: int | None = None,
        name: str = "",
        env_id: str | None = None,
        tool_defs: Sequence[Mapping[str, Any]] | None = None,
        timeout_seconds: float | None = None,
        score_rollouts: bool = True,
        stops_after_response: bool = False,
        **more: Any,
    ) -> None:
        """`more` become attributes, for code of yours that reads them."""
        source = dataset if eval_dataset is None else eval_dataset
        if source is None:
            raise ConfigError(f"{type(self).__name__} needs a dataset.")
        self.name = name or env_id or type(self).__name__
        self.env_id = env_id or ""
        self.timeout_seconds = timeout_seconds
        """How long one rollout may be played; it is scored on what it has by then."""
        self.score_rollouts = score_rollouts
        self.stops_after_response = stops_after_response
        """Also check stop conditions after `env_response`, so that no model call is wasted."""
        self.tool_defs = [read_tool(each) for each in tool_defs or ()]
        self.parser = parser or Parser()
        self.rubric = rubric or Rubric()
        self.rubric.use_parser(self.parser)
        self.system_prompt = system_prompt
        self.few_shot = tuple(few_shot or ())
        self.max_turns = max_turns
        self.max_total_completion_tokens = max_total_completion_tokens
        self.sampling_args = dict(sampling_args or {})
        self.pass_threshold = pass_threshold
        self.capacity = capacity
        self.threads = Threads()
        self._executors: list[ThreadPoolExecutor] = []
        self._source = source
        self._tasks: Iterable[Task] | None = None
        self.has_setup = is_overridden(self, "setup_state")
        self.shows_everything = not is_overridden(self, "get_prompt_messages")
        self.stops = hooks_of(self, "stop")
        self.cleanups = hooks_of(self, "cleanup")
        self._teardowns = hooks_of(self, "teardown")
        for setting, value in more.items():
            setattr(self, setting, value)

    # What an author overrides

    async def setup_state(self, state: State) -> State | None:
        """Prepare one rollout before the first model call."""

    async def env_response(self, messages: list[Message], state: State) -> Messages:
        """The environment's messages after the model's turn."""
        raise NotImplementedError(f"{type(self).__name__} does not define env_response")

    async def get_prompt_messages(self, state: State) -> Sequence[Message]:
        """The messages to send to the model on its next turn."""
        return [*state["prompt"], *state["completion"]]

    def tool_specs(self, state: State) -> Sequence[ToolSpec]:  # noqa: ARG002
        """The tools offered to the model."""
        return tuple(self.tool_defs)

    def metrics(self, state: State) -> dict[str, float]:
        """Metrics beside those of the rubric."""
        return {} if self.max_turns == 1 else {"num_turns": float(state["turn"])}

    def gold(self, task: Task) -> Gold:
        """What a perfect model would answer, for `proctor env check`: a text, or one entry per turn."""
        return answer_text(task.answer)

    # The contract

    @property
    def traits(self) -> Traits:
        return Traits(grouped=bool(self.rubric.group_functions), capacity=self.capacity)

    def tasks(self) -> Iterable[Task]:
        if self._tasks is None:
            maker = PromptMaker(self.system_prompt, self.few_shot)
            self._tasks = tasks_of(self._source, maker)
        return self._tasks

    def open(self, task: Task) -> MultiTurnSession:
        return MultiTurnSession(self, state_of(task, self.name))

    def restore(self, task: Task, recorded: RecordedPlay) -> RestoredTurnSession:
        """A session of a rollout that was played before, to be scored again."""
        return RestoredTurnSession(self, task, recorded, adds_to_state(self))

    def explain_unrestorable(self) -> str | None:
        return None

    def fingerprint(self) -> Fingerprint:
        unplayed = NOT_PLAYED if adds_to_state(self) else NOT_PLAYED | {"parser"}
        scoring = hash_code(self.rubric, type(self).metrics, without=LIVE)
        return Fingerprint(hash_code(self, without=unplayed), scoring)

    async def score_group(self, played: Sequence[tuple[Session, Seat]]) -> list[GroupResult]:
        states = [cast(MultiTurnSession, session).state for session, _ in played]
        results = await self.rubric.score_group(states, self.threads)
        return [
            self.with_metrics_of(state, result) if isinstance(result, Score) else result
            for state, result in zip(states, results, strict=True)
        ]

    async def check(self) -> None:
        tasks: Iterable[Task] = ()
        with suppress(Exception):  # reported where the tasks are read
            tasks = self.tasks()
        if isinstance(tasks, Sequence) and tasks:
            first = (state_of(task, self.name) for task in islice(tasks, CHECKED_TASKS))
            names = {name for state in first for name in state}
            self.rubric.check_arguments(names, is_open=adds_to_state(self))
        await self.rubric.check()

    async def close(self) -> None:
        try:
            for hook in self._teardowns:
                await self.threads.call(hook)
        finally:
            await self.rubric.close()

    def with_metrics_of(self, state: State, score: Score) -> Score:
        """The rubric's score with the environment's metrics, also stored in the state."""
        score = with_metrics(score, self.metrics(state))
        state["reward"] = score.reward
        state["metrics"] = score.metrics
        return score

    # Settings

    def add_rubric(self, rubric: Rubric) -> None:
        """Score by another rubric too: the rewards are added."""
        rubric.use_parser(self.parser)
        if isinstance(self.rubric, RubricGroup):
            self.rubric.rubrics.append(rubric)
        else:
            self.rubric = RubricGroup([self.rubric, rubric])

    def set_concurrency(self, concurrency: int) -> None:
        """Size every thread pool for this many rollouts at once."""
        workers = recommended_max_workers(concurrency)
        self.threads.resize(workers)
        for executor in self._executors:
            executor._max_workers = workers
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        loop.set_default_executor(ThreadPoolExecutor(workers, thread_name_prefix="proctor-default"))

    def register_executor(self, executor: ThreadPoolExecutor) -> None:
        """Register an executor of your own, to be resized with the others."""
        self._executors.append(executor)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Set attributes after construction, by `set_<name>()` where there is one."""
        for name, value in settings.items():
            setter = getattr(self, f"set_{name}", None)
            if callable(setter):
                setter(value)
            elif name in vars(self) and not name.startswith("_"):
                setattr(self, name, value)
            else:
                known = [known for known in vars(self) if not known.startswith("_")]
                raise ConfigError(f"{type(self).__name__} has no setting {name!r}{did_you_mean(name, known)}")

    # One turn

    async def stop_reason(self, state: State) -> str | None:
        """Why the rollout is over, or None."""
        for hook in self.stops:
            if await self.threads.call(hook, state):
                return hook.__name__
        return self.limit_reached(state)

    def limit_reached(self, state: State) -> str | None:
        if state.get("final_env_response") is not None:
            return "has_final_env_response"
        if 0 < self.max_turns <= state["turn"]:
            return "max_turns_reached"
        if 0 < self.max_total_completion_tokens <= state.seat.trace.usage().output_tokens:
            return "max_total_completion_tokens_reached"
        return None


class SingleTurnEnv(MultiTurnEnv):
    """One question, one answer."""

    def __init__(self, dataset: RowSource | None = None, **settings: Any) -> None:
        super().__init__(dataset, **{**settings, "max_turns": 1})


class MultiTurnSession:
    """One rollout of a MultiTurnEnv."""

    def __init__(self, env: MultiTurnEnv, state: State) -> None:
        self.env = env
        self.state = state

    async def __aenter__(self) -> MultiTurnSession:
        if not self.env.has_setup:
            return self
        try:
            await self.set_up()
        except BaseException as error:
            try:
                await self.clean_up()
            except Exception as failed:  # often because setup did not get far enough
                error.add_note(f"Cleanup failed too: {type(failed).__name__}: {failed}")
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.env.cleanups:
            await self.clean_up()

    async def play(self, seat: Seat) -> None:
        env, state, trace = self.env, self.state, seat.trace
        for name, fact in seat.facts.items():
            state.setdefault(name, fact)
        seat.facts = state
        state.seat = seat
        trace.prompt = state["prompt"]
        trace.completion = state["completion"]
        if env.timeout_seconds is None:
            await self.take_turns(seat)
            return
        try:
            async with asyncio.timeout(env.timeout_seconds) as limit:
                await self.take_turns(seat)
        except TimeoutError:
            if not limit.expired():  # an author's code raised it
                raise
            trace.stop_condition = state["stop_condition"] = "timeout_reached"
            trace.timed_out = state["timed_out"] = True

    async def take_turns(self, seat: Seat) -> None:
        """As in verifiers, the model gets to see what the environment answered, unless that was final."""
        env, state, trace = self.env, self.state, seat.trace
        models_turn = may_stop = True
        while True:
            if may_stop:
                reason = await env.stop_reason(state) if env.stops else env.limit_reached(state)
                if reason is not None:
                    trace.stop_condition = state["stop_condition"] = reason
                    return
            if models_turn:
                await self.turn(seat)
                may_stop = True
            else:
                response = await self.call(env.env_response, self.conversation(), state)
                final = state.get("final_env_response")
                self.add_response(response if final is None else final)
                may_stop = final is not None or env.stops_after_response
            models_turn = not models_turn

    async def score(self, seat: Seat) -> Score:  # noqa: ARG002
        if not self.env.score_rollouts:
            return Score(0.0)
        return self.env.with_metrics_of(self.state, await self.env.rubric.score(self.state, self.env.threads))

    async def turn(self, seat: Seat) -> None:
        env, state = self.env, self.state
        messages = (
            self.conversation() if env.shows_everything else await self.call(env.get_prompt_messages, state)
        )
        reply: Reply = await seat.complete(
            messages, tools=env.tool_specs(state), sampling=env.sampling_args or None
        )
        message = to_message(reply.message)
        call = seat.trace.calls[-1]
        if call.reply is reply:  # rows refer to messages of the conversation by identity
            call.reply = reply = msgspec.structs.replace(reply, message=message)
        state["completion"].append(message)
        state["turn"] += 1
        state["trajectory"].append(describe_step(messages, message, reply, state))
        if reply.truncated:
            seat.trace.truncated = state["is_truncated"] = True

    async def set_up(self) -> None:
        replaced = await self.call(self.env.setup_state, self.state)
        if replaced is not None and replaced is not self.state:
            self.state.update(replaced)

    async def clean_up(self) -> None:
        failure: Exception | None = None
        for hook in self.env.cleanups:
            try:
                await self.env.threads.call(hook, self.state)
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def conversation(self) -> list[Message]:
        return [*self.state["prompt"], *self.state["completion"]]

    def add_response(self, response: Messages | None) -> None:
        if response is None:
            raise EnvError(f"{type(self.env).__name__}.env_response returned None; return messages or a text")
        self.state["completion"].extend(to_messages(response))

    async def call(self, hook: Callable[..., Any], *args: Any) -> Any:
        if inspect.iscoroutinefunction(hook):
            return await hook(*args)
        return await self.env.threads.call(hook, *args)


def describe_step(
    messages: Sequence[Message], message: Message, reply: Reply, state: State
) -> dict[str, Any]:
    """One turn of the model as `state["trajectory"]` holds it, with the fields that verifiers has."""
    return {
        "prompt": messages,
        "completion": [message],
        "response": reply,
        "tokens": None,
        "reward": None,
        "advantage": None,
        "is_truncated": reply.truncated,
        "trajectory_id": state.get("trajectory_id"),
        "extras": {},
    }


def read_tool(given: Mapping[str, Any]) -> ToolSpec:
    """A tool that is described rather than written as a function."""
    try:
        return ToolSpec(given["name"], given["description"], given["parameters"])
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"A tool in tool_defs needs name, description and parameters; it is {given!r}."
        ) from error


def adds_to_state(env: MultiTurnEnv) -> bool:
    """Whether an author's code sees the state while a rollout is played, and may add to it."""
    replaced = any(hook in vars(env) for hook in STATE_HOOKS)
    return replaced or not all(is_ours(base.__module__) for base in type(env).__mro__ if base is not object)


def is_overridden(env: MultiTurnEnv, method: str) -> bool:
    """Whether an author replaced the method, in a class or on the object itself."""
    return method in vars(env) or getattr(type(env), method) is not getattr(MultiTurnEnv, method)


def with_metrics(score: Score, metrics: Mapping[str, float]) -> Score:
    """The score with further metrics; its own win."""
    return score if not metrics else Score(score.reward, {**metrics, **score.metrics}, score.subscores)
