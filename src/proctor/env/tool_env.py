"""Environments whose model may call tools: functions, written as functions.

The calls of one turn are made in their order, except neighbors that are all marked as parallel; the model
gets their results in the same order. A failing call returns its error to the model, and the rollout
continues. Knows nothing of how a function becomes a schema.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from proctor.env.dataset import RowSource
from proctor.env.hooks import stop
from proctor.env.multi_turn import MultiTurnEnv, MultiTurnSession
from proctor.env.restored import RestoredTurnSession
from proctor.env.state import State
from proctor.errors import (
    ConfigError,
    EnvError,
    MissingSecretError,
    RolloutError,
    find_missing_variable,
)
from proctor.plugins import did_you_mean
from proctor.rollout import RecordedPlay
from proctor.support.in_order import run_in_order
from proctor.support.threads import Threads
from proctor.task import Task
from proctor.tools import Tool, ToolArgumentsError, ToolError
from proctor.trace import Message, ToolSpec

RawToolCall = Mapping[str, Any]
Arguments = dict[str, Any]
History = Sequence[Message]
ErrorFormatter = Callable[[Exception], str]


def describe_tool_error(error: Exception) -> str:
    """What the model reads about a failed call."""
    if isinstance(error, (ToolError, ToolArgumentsError)):
        return str(error)
    name, message = type(error).__name__, str(error)
    return f"{name}: {message}" if message else name


class ToolEnv(MultiTurnEnv):
    """The model calls tools until it answers without calling any."""

    def __init__(
        self,
        dataset: RowSource | None = None,
        *,
        tools: Sequence[Callable[..., Any]] | None = None,
        max_turns: int = 10,
        error_formatter: ErrorFormatter = describe_tool_error,
        stop_errors: Sequence[type[Exception]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(dataset, max_turns=max_turns, **settings)
        self.error_formatter = error_formatter
        self.stop_errors = tuple(stop_errors or ())
        """Exceptions that end the rollout instead of being returned to the model."""
        self.tools: dict[str, Tool] = {}
        for function in tools or ():
            self.add_tool(function)

    def add_tool(self, function: Callable[..., Any]) -> None:
        self._add(Tool.of(function))

    def remove_tool(self, tool: Callable[..., Any] | str) -> None:
        """Remove a tool, by its name or its function."""
        name = tool if isinstance(tool, str) else self._name_of(tool)
        if name not in self.tools:
            raise ConfigError(f"{type(self).__name__} has no tool {name!r}{did_you_mean(name, self.tools)}")
        del self.tools[name]

    def _add(self, tool: Tool) -> None:
        if tool.name in self.tools:
            raise ConfigError(f"Two tools are called {tool.name!r}; rename one.")
        self.tools[tool.name] = tool

    def _name_of(self, function: Callable[..., Any]) -> str:
        names = (name for name, tool in self.tools.items() if tool.function == function)
        return next(names, getattr(function, "__name__", repr(function)))

    # What an author may override

    def tools_of(self, state: State) -> Mapping[str, Tool]:  # noqa: ARG002
        """The tools of one rollout, by name."""
        return self.tools

    async def fill_in(self, tool: Tool, sent: Arguments, messages: History, state: State) -> Arguments:  # noqa: ARG002
        """The arguments a tool is called with, given those the model sent."""
        return sent

    # The turn

    def open(self, task: Task) -> MultiTurnSession:
        session = super().open(task)
        session.state["tool_errors"] = 0
        return session

    def restore(self, task: Task, recorded: RecordedPlay) -> RestoredTurnSession:
        session = super().restore(task, recorded)
        session.state["tool_errors"] = int(recorded.metrics.get("tool_errors", 0))
        return session

    def tool_specs(self, state: State) -> Sequence[ToolSpec]:
        return tuple(tool.spec for tool in self.tools_of(state).values())

    @stop
    async def no_tools_called(self, state: State) -> bool:
        completion: list[Message] = state["completion"]
        return bool(completion) and completion[-1].get("role") == "assistant" and not calls_of(completion[-1])

    async def env_response(self, messages: list[Message], state: State) -> list[Message]:
        calls, tools = calls_of(messages[-1]), self.tools_of(state)
        results = await run_in_order(
            calls,
            lambda call: self.answer(call, messages, state),
            lambda call: is_parallel(call, tools),
        )
        return [
            {"role": "tool", "tool_call_id": call.get("id") or "", "content": replace_surrogates(result)}
            for call, result in zip(calls, results, strict=True)
        ]

    async def answer(self, call: RawToolCall, messages: History, state: State) -> str:
        """The result of one call, as text for the model; raises only what ends the rollout."""
        try:
            tool = find_tool(str(call.get("name") or ""), self.tools_of(state))
            sent = tool.arguments(call.get("arguments") or "")
        except (ToolError, ToolArgumentsError) as error:
            return self._handle_tool_error(error, call, state)
        arguments = await self.fill_in(tool, sent, messages, state)
        try:
            return as_text(await run_tool(tool, arguments, self.threads))
        except Exception as error:
            return self._handle_tool_error(error, call, state)

    def metrics(self, state: State) -> dict[str, float]:
        calls = Counter(call.get("name") for message in state["completion"] for call in calls_of(message))
        return {
            **super().metrics(state),
            "total_tool_calls": float(calls.total()),
            **{f"{name}_calls": float(calls[name]) for name in self.tools_of(state)},
            "tool_errors": float(state["tool_errors"]),
        }

    def _handle_tool_error(self, error: Exception, call: RawToolCall, state: State) -> str:
        state["tool_errors"] += 1
        if isinstance(error, RolloutError):
            raise error
        if isinstance(error, self.stop_errors):
            raise EnvError(f"tool {call.get('name')!r} failed: {describe_tool_error(error)}") from error
        return self.error_formatter(error)


class StatefulToolEnv(ToolEnv):
    """Tools with arguments that the model never sees, filled from the rollout's state."""

    def add_tool(self, function: Callable[..., Any], args_to_skip: Collection[str] = ()) -> None:
        self._add(Tool.of(function, hidden=args_to_skip))

    def update_tool_args(self, tool_name: str, tool_args: Arguments, messages: History, state: State) -> Any:  # noqa: ARG002
        """The arguments with the hidden ones added, as a dict. May be async."""
        return tool_args

    async def fill_in(self, tool: Tool, sent: Arguments, messages: History, state: State) -> Arguments:
        updated = await self.threads.call(self.update_tool_args, tool.name, sent, messages, state)
        filled: Arguments = sent if updated is None else updated  # changed in place
        if forgotten := [name for name in tool.hidden - filled.keys() if _is_required(tool, name)]:
            raise EnvError(
                f"{type(self).__name__}.update_tool_args did not set {forgotten[0]!r} of tool {tool.name!r}, "
                "which the model cannot send"
            )
        return filled


def find_tool(name: str, tools: Mapping[str, Tool]) -> Tool:
    if name not in tools:
        # Comparing is quadratic in length, and a model may send a name of any length.
        raise ToolError(f"There is no tool {name[:100]!r}{did_you_mean(name[:100], tools)}")
    return tools[name]


async def run_tool(tool: Tool, arguments: Arguments, threads: Threads) -> Any:
    """Call the function, in a thread if it blocks. A variable that is not set is not the model's mistake."""
    try:
        if tool.is_async:
            value = tool.function(**arguments)
        else:
            value = await threads.run(lambda: tool.function(**arguments))
        return await value if inspect.isawaitable(value) else value
    except KeyError as error:
        name = find_missing_variable(error)
        if name is None:
            raise
        raise MissingSecretError(name) from error
    except SystemExit as error:  # would end the whole run, not only this call
        raise ToolError(f"`{tool.name}` tried to exit with {error.code!r}.") from error
    except KeyboardInterrupt as error:
        raise ToolError(f"`{tool.name}` raised KeyboardInterrupt.") from error


def is_parallel(call: RawToolCall, tools: Mapping[str, Tool]) -> bool:
    tool = tools.get(str(call.get("name") or ""))
    return tool is not None and tool.spec.parallel


def calls_of(message: Message) -> Sequence[RawToolCall]:
    return message.get("tool_calls") or ()


def as_text(value: Any) -> str:
    """A tool's result as the model reads it: text as it is, anything else as JSON if possible."""
    if isinstance(value, (bytes, bytearray)):
        return value.decode(errors="replace")
    try:
        plain = msgspec.to_builtins(value, str_keys=True, builtin_types=(bytes, bytearray), enc_hook=_plain)
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, default=as_text)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, as in some file names, which can be neither sent nor stored."""
    return text.encode(errors="replace").decode()


def _plain(value: Any) -> Any:
    """Convert Pydantic models and arrays to plain data, and anything else to text."""
    for method in ("model_dump", "tolist"):
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    return str(value)


def _is_required(tool: Tool, argument: str) -> bool:
    parameter = inspect.signature(tool.function).parameters[argument]
    return parameter.default is parameter.empty
