"""Load and play a verifiers environment. Runs in that environment's own Python; knows nothing of Proctor.

The framework plays and scores; only its model client is ours. A reward function that raises is reported as
such, where the framework would count 0.
"""

from __future__ import annotations

import contextvars
import functools
import importlib
import importlib.util
import inspect
import json
import logging
import sys
from typing import Any

import verifiers as vf

MESSAGE_FIELDS = ("role", "content", "reasoning_content", "thinking_blocks", "tool_calls", "tool_call_id")
CORE_STATE = frozenset(
    (
        *("prompt", "completion", "answer", "info", "example_id", "input", "task", "client", "model"),
        *("sampling_args", "trajectory", "tool_defs", "usage_tracker", "timing", "metrics", "reward"),
        *("advantage", "error", "is_completed", "is_truncated", "stop_condition", "final_env_response"),
    )
)
"""What every state holds; the rest is the environment's own."""
LARGEST_COLUMN = 100_000
"""Characters of one value of the state that is passed on."""
TOO_LONG = "context_length_exceeded"

scored_state: contextvars.ContextVar[int | None] = contextvars.ContextVar("scored_state", default=None)
scoring_errors: contextvars.ContextVar[list[tuple[int | None, Exception, str]]] = contextvars.ContextVar(
    "scoring_errors"
)


def load(params: dict[str, Any], host: Any) -> PlayedEnvironment:
    """Import the environment's module and make the environment, as verifiers does it."""
    module_name, folder, file = params["module"], params.get("folder"), params.get("file")
    if folder is not None:
        sys.path.insert(0, folder)
    module = importlib.import_module(module_name) if file is None else import_file(module_name, file)
    if not hasattr(module, "load_environment"):
        raise AttributeError(f"{getattr(module, '__file__', module_name)} has no load_environment()")
    env = module.load_environment(**coerce_arguments(module.load_environment, params["arguments"]))
    env.env_id = getattr(env, "env_id", "") or params["env_id"]
    served = PlayedEnvironment(env, host, wants_endpoint=params["wants_endpoint"])
    if params.get("settings"):
        served.configure(params["settings"])
    if params.get("concurrency"):
        served.set_concurrency(params["concurrency"])
    return served


def import_file(name: str, file: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def coerce_arguments(loader: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """A typed `config` may be given as plain data, where this release has such a thing."""
    try:
        from verifiers.utils.env_utils import coerce_typed_env_config
    except ImportError:
        return arguments
    coerced: dict[str, Any] = coerce_typed_env_config(loader, inspect.signature(loader), arguments)
    return coerced


class PlayedEnvironment:
    """One environment, and the states of its rollouts until they are forgotten."""

    def __init__(self, env: Any, host: Any, *, wants_endpoint: bool) -> None:
        self.env = env
        self.host = host
        self.wants_endpoint = wants_endpoint
        self.dataset = env.get_eval_dataset()
        self.states: dict[int, Any] = {}
        self.members: dict[int, Any] = {}
        """The environment that plays each rollout: this one, or one of its group."""
        self._positions: dict[Any, int] | None = None
        for rubric in list_rubrics(env):
            record_errors(rubric)

    def describe(self) -> dict[str, Any]:
        env = self.env
        return {
            "size": len(self.dataset),
            "version": vf.__version__,
            "grouped": is_grouped(env),
            "pass_threshold": float(getattr(env, "pass_threshold", 0.5)),
            "wants_endpoint": self.wants_endpoint,
            "sampling": clean_sampling(env.sampling_args),
            "details": {
                "class": f"{type(env).__module__}.{type(env).__name__}",
                "rubrics": [type(rubric).__name__ for rubric in list_rubrics(env)],
            },
        }

    # Over the control socket

    def tasks(self, start: int, stop: int) -> list[dict[str, Any]]:
        rows = self.dataset.select(range(start, stop)).to_list()
        return [self.task_of(row) for row in rows]

    def task_of(self, row: dict[str, Any]) -> dict[str, Any]:
        known = ("prompt", "answer", "info", "example_id")
        info = row.get("info") or {}
        return {
            "id": row["example_id"],
            "prompt": plain_messages(row["prompt"]),
            "answer": row.get("answer", ""),
            "info": json.loads(info) if isinstance(info, str) else info,
            "columns": {name: value for name, value in row.items() if name not in known},
        }

    def configure(self, settings: dict[str, Any]) -> None:
        if hasattr(self.env, "set_kwargs"):
            self.env.set_kwargs(**settings)
        else:
            for name, value in settings.items():
                setattr(self.env, name, value)

    def set_concurrency(self, concurrency: int) -> None:
        if hasattr(self.env, "set_concurrency"):
            self.env.set_concurrency(concurrency)

    # Over the calls socket

    async def play(
        self, session: int, task: Any, model: str, endpoint: dict[str, str] | None = None
    ) -> dict[str, Any]:
        member, row = find_member(self.env, self.dataset[self.position(task)])
        client = HostClient(self.host, session, endpoint)
        self.members[session] = member
        state = await member.rollout(row, client, model, dict(self.env.sampling_args))
        self.states[session] = state
        error = state.get("error")
        return {
            "prompt": plain_messages(state["prompt"]),
            "completion": plain_messages(state.get("completion") or []),
            "stop_condition": state.get("stop_condition"),
            "truncated": bool(state.get("is_truncated")),
            "error": None if error is None else describe_cause(error),
            "too_long": bool(state.get("prompt_too_long")),
        }

    async def score(self, session: int) -> dict[str, Any]:
        state, member = self.states[session], self.members[session]
        scoring_errors.set([])
        if getattr(member, "score_rollouts", True):
            await member.rubric.score_rollout(state)
        else:
            await member.rubric.dummy_score_rollout(state)
        return self.describe_score(state)

    async def score_group(self, sessions: list[int]) -> list[dict[str, Any]]:
        states = [self.states[session] for session in sessions]
        scoring_errors.set([])
        await self.members[sessions[0]].rubric.score_group(states)
        return [self.describe_score(state) for state in states]

    async def forget(self, session: int) -> None:
        state, member = self.states.pop(session, None), self.members.pop(session, None)
        if state is not None and member is not None and hasattr(member.rubric, "cleanup"):
            await member.rubric.cleanup(state)

    async def close(self) -> None:
        teardown = getattr(self.env, "_teardown", None)
        if teardown is not None:
            await teardown()

    def position(self, task: Any) -> int:
        """Where the dataset holds the task with this id."""
        if self._positions is None:
            self._positions = {each: number for number, each in enumerate(self.dataset["example_id"])}
        return self._positions[task]

    def describe_score(self, state: Any) -> dict[str, Any]:
        failed = [each for each in scoring_errors.get() if each[0] in (None, id(state))]
        if failed:
            _, error, name = failed[0]
            return {"error": {**describe_cause(error), "message": f"{error} in reward function {name!r}"}}
        metrics = {name: float(value) for name, value in (state.get("metrics") or {}).items()}
        return {"reward": state["reward"], "metrics": metrics, "state": plain_state(state)}


def find_member(env: Any, row: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The environment of a group that a row belongs to, at any depth, and the row as that one takes it."""
    while hasattr(env, "_route_child_input"):
        name, row, _ = env._route_child_input(row)
        env = env.get_env_for_name(name)
    return env, row


class HostClient(vf.Client):  # type: ignore[misc]
    """Asks the model of one rollout, through Proctor."""

    def __init__(self, host: Any, session: int, endpoint: dict[str, str] | None) -> None:
        self.logger = logging.getLogger(__name__)
        self._config = None
        self._host = host
        self._session = session
        self._endpoint = endpoint
        self._raw: Any = None

    @property
    def client(self) -> Any:
        """An HTTP client for the same model, for code that wants one."""
        if self._raw is None:
            from openai import AsyncOpenAI

            assert self._endpoint is not None, "the source of this environment does not mention `client`"
            self._raw = AsyncOpenAI(base_url=self._endpoint["url"], api_key=self._endpoint["key"])
        return self._raw

    async def get_response(
        self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any
    ) -> Any:
        body = {"model": model, "messages": [chat_message(each) for each in prompt]}
        body.update(clean_sampling(sampling_args))
        if tools:
            body["tools"] = [chat_tool(tool) for tool in tools]
        state = kwargs.get("state") or {}
        facts = {"trajectory_id": state.get("trajectory_id")}
        request = {"session": self._session, "body": body, "facts": facts}
        try:
            answer = await self._host.request("complete", request)
        except self._host.RefusedError as error:
            kind = vf.OverlongPromptError if error.code == TOO_LONG else vf.ModelError
            raise kind(str(error)) from error
        return read_response(answer)

    # The abstract methods of the framework's client; get_response needs none of them.

    def setup_client(self, config: Any) -> Any:
        raise NotImplementedError

    async def to_native_tool(self, tool: Any) -> Any:
        return chat_tool(tool)

    async def to_native_prompt(self, messages: Any) -> Any:
        return [chat_message(each) for each in messages], {}

    async def get_native_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def raise_from_native_response(self, response: Any) -> None:
        pass

    async def from_native_response(self, response: Any) -> Any:
        return read_response(response)

    async def close(self) -> None:
        if self._raw is not None:
            await self._raw.close()


def read_response(answer: dict[str, Any]) -> Any:
    """A chat completion as the framework's Response."""
    choice = answer["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    calls = [
        vf.ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    if not (message.get("content") or calls or message.get("reasoning_content")):
        raise vf.EmptyModelResponseError("Model returned no content, reasoning, and did not call any tools")
    usage = answer.get("usage")
    return vf.Response(
        id=str(answer.get("id", "")),
        created=int(answer.get("created", 0)),
        model=str(answer.get("model", "")),
        usage=usage and read_usage(usage),
        message=vf.ResponseMessage(
            content=message.get("content"),
            reasoning_content=message.get("reasoning_content"),
            finish_reason=finish if finish in ("stop", "length", "tool_calls") else None,
            is_truncated=finish == "length",
            tokens=None,
            tool_calls=calls or None,
        ),
    )


def read_usage(usage: dict[str, Any]) -> Any:
    sent, written = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return vf.Usage(
        prompt_tokens=sent, reasoning_tokens=0, completion_tokens=written, total_tokens=sent + written
    )


def chat_message(message: Any) -> dict[str, Any]:
    """A message as the chat completions API has it."""
    given = plain_message(message)
    if given["role"] == "text":
        given["role"] = "user"
    if calls := given.get("tool_calls"):
        given["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in calls
        ]
    return given


def chat_tool(tool: Any) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def clean_sampling(sampling: Any) -> dict[str, Any]:
    """The parameters that say anything, with those of `extra_body` beside the others."""
    given = dict(sampling or {})
    extra = given.pop("extra_body", None) or {}
    if given.get("n") == 1:
        del given["n"]
    return {name: value for name, value in {**given, **extra}.items() if value is not None}


def plain_messages(messages: Any) -> list[dict[str, Any]]:
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [plain_message(each) for each in messages]


def plain_message(message: Any) -> dict[str, Any]:
    """A message as plain data, without fields that are not set."""
    given = message if isinstance(message, dict) else message.model_dump(exclude_none=True)
    return {name: value for name, value in given.items() if value is not None and name in MESSAGE_FIELDS}


def plain_state(state: Any) -> dict[str, Any]:
    """The environment's own part of a state, as far as JSON can hold it."""
    found: dict[str, Any] = {}
    for name, value in state.items():
        if name in CORE_STATE or not isinstance(name, str):
            continue
        try:
            text = json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            continue
        if len(text) <= LARGEST_COLUMN:
            found[name] = value
    return found


def list_rubrics(env: Any) -> list[Any]:
    """The rubrics of an environment, with those of groups of rubrics and of environments."""
    found: list[Any] = []
    waiting = [env.rubric, *(each.rubric for each in getattr(env, "envs", ()))]
    while waiting:
        rubric = waiting.pop()
        if rubric in found:
            continue
        found.append(rubric)
        waiting.extend(getattr(rubric, "rubrics", ()))
    return found


def is_grouped(env: Any) -> bool:
    if hasattr(env, "requires_group_rollouts"):
        return bool(env.requires_group_rollouts)
    return any(
        bool(rubric._get_group_reward_funcs())
        for rubric in list_rubrics(env)
        if hasattr(rubric, "_get_group_reward_funcs")
    )


def record_errors(rubric: Any) -> None:
    """Have a rubric's functions leave a note of what they raise, since the framework turns it into 0."""
    rubric.funcs = [recording(function) for function in rubric.funcs]
    inner = getattr(rubric, "_call_individual_reward_func", None)
    if inner is None:
        return

    async def call(func: Any, state: Any, **kwargs: Any) -> Any:
        token = scored_state.set(id(state))
        try:
            return await inner(func=func, state=state, **kwargs)
        finally:
            scored_state.reset(token)

    rubric._call_individual_reward_func = call


def recording(function: Any) -> Any:
    def note(error: Exception) -> None:
        errors = scoring_errors.get(None)
        if errors is not None:
            errors.append((scored_state.get(), error, getattr(function, "__name__", "?")))

    @functools.wraps(function)
    def blocking(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            note(error)
            raise

    @functools.wraps(function)
    async def waiting(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except Exception as error:
            note(error)
            raise

    return waiting if inspect.iscoroutinefunction(function) else blocking


def describe_cause(error: Any) -> dict[str, Any]:
    """An error that the framework kept in a state."""
    if isinstance(error, dict):
        return {"type": str(error.get("error")), "message": str(error.get("error_chain_str", ""))}
    import proctor_inside  # type: ignore[import-not-found]

    described: dict[str, Any] = proctor_inside.describe_error(error)
    return described
