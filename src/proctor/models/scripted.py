"""A model that replays a script: answers, tool calls, errors and delays. The double for tests and demos.

A script is a list of steps, taken in turn and repeated, or a mapping from a piece of the last user
message to a step or a list of steps. A step is a text, an exception to raise, or a `Step`. Without a
script the model repeats the last user message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import (
    AuthError,
    ConfigError,
    ContextTooLongError,
    MalformedReplyError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
    UnreachableError,
)
from proctor.plugins import did_you_mean
from proctor.trace import Message, Reply, Usage, text_of

ERRORS: dict[str, type[ModelError]] = {
    "auth": AuthError,
    "context_too_long": ContextTooLongError,
    "malformed": MalformedReplyError,
    "overloaded": OverloadedError,
    "rate_limit": RateLimitError,
    "refused": RequestRefusedError,
    "timeout": ModelTimeoutError,
    "unreachable": UnreachableError,
}


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scripted answer."""

    text: str | None = None
    tool_calls: list[dict[str, Any]] = []
    reasoning: str | None = None
    finish_reason: str | None = None
    delay_seconds: float = 0.0
    error: str | None = None
    retry_after_seconds: float | None = None
    when: str | None = None
    """In a file: use this step only if the last user message contains this text."""


AnyStep = str | Step | BaseException
Script = Sequence[AnyStep] | Mapping[str, AnyStep | Sequence[AnyStep]]


class Scripted:
    """Replays a script."""

    def __init__(self, script: Script = (), name: str = "scripted") -> None:
        self._name = name
        by_question = script if isinstance(script, Mapping) else {"": script}
        self._steps = {when: as_steps(steps) for when, steps in by_question.items()}
        self._next = dict.fromkeys(self._steps, 0)
        self.requests: list[Request] = []
        """Every request received, for tests."""

    @classmethod
    def at(cls, endpoint: Endpoint) -> Scripted:
        return cls(read_script(Path(endpoint.url)) if endpoint.url else (), endpoint.model)

    @property
    def name(self) -> str:
        return self._name

    async def check(self) -> None:
        pass

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        question = last_question(request.messages)
        step = self._take(question)
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, str):
            step = Step(text=step)
        if step.delay_seconds:
            await asyncio.sleep(step.delay_seconds)
        if step.error:
            raise scripted_error(step)
        return as_reply(step, request)

    async def close(self) -> None:
        pass

    def _take(self, question: str) -> AnyStep:
        for when, steps in self._steps.items():
            if steps and when in question:
                number = self._next[when]
                self._next[when] = number + 1
                return steps[number % len(steps)]
        return question


def read_script(path: Path) -> Script:
    """A script from a JSON Lines file: one step per line, a text or an object."""
    script: dict[str, list[AnyStep]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"Cannot read the script {str(path)!r} given by -b: {error.strerror}.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            step = msgspec.json.decode(line, type=str | Step)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{path}:{number}: not a step of a script ({error}).") from error
        if isinstance(step, Step) and step.error and step.error not in ERRORS:
            raise ConfigError(
                f"{path}:{number}: there is no error {step.error!r}{did_you_mean(step.error, ERRORS)}"
            )
        script.setdefault((step.when or "") if isinstance(step, Step) else "", []).append(step)
    return dict(sorted(script.items(), key=lambda entry: not entry[0]))


def scripted_error(step: Step) -> ModelError:
    kind = ERRORS[step.error or ""]
    message = step.text or f"scripted: {step.error}"
    if kind is RateLimitError:
        return RateLimitError(message, retry_after_seconds=step.retry_after_seconds)
    return kind(message)


def as_reply(step: Step, request: Request) -> Reply:
    message: Message = {"role": "assistant", "content": step.text}
    if step.reasoning:
        message["reasoning_content"] = step.reasoning
    if step.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.get("id", f"call_{number}"),
                "name": call["name"],
                "arguments": encode_arguments(call),
            }
            for number, call in enumerate(step.tool_calls)
        ]
    return Reply(
        message=message,
        finish_reason=step.finish_reason or ("tool_calls" if step.tool_calls else "stop"),
        usage=Usage(
            input_tokens=sum(count_words(text_of(item)) for item in request.messages),
            output_tokens=count_words(step.text or ""),
        ),
        model="scripted",
    )


def encode_arguments(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments", {})
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def count_words(text: str) -> int:
    return len(text.split())


def last_question(messages: Sequence[Message]) -> str:
    prompts = [message for message in messages if message.get("role") == "user"]
    return text_of(prompts[-1]) if prompts else ""


def as_steps(steps: AnyStep | Sequence[AnyStep]) -> list[AnyStep]:
    listed: list[AnyStep] = [steps] if isinstance(steps, (str, Step, BaseException)) else list(steps)
    for step in listed:
        if isinstance(step, Step) and step.error and step.error not in ERRORS:
            raise ConfigError(f"There is no error {step.error!r}{did_you_mean(step.error, ERRORS)}")
    return listed
