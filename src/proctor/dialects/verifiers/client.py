"""The model client that a verifiers environment gets: each request goes to Proctor, in the shape of the chat
completions API, and the reply comes back as the framework's own.

Runs in the environment's own Python; knows nothing of Proctor, environments or rubrics.
"""

from __future__ import annotations

import logging
from typing import Any

import verifiers as vf

MESSAGE_FIELDS = ("role", "content", "reasoning_content", "thinking_blocks", "tool_calls", "tool_call_id")
TOO_LONG = "context_length_exceeded"


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
