"""The OpenAI text completions API: base models, which know text but no roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import MalformedReplyError, RequestRefusedError
from proctor.models.http_client import UNREADABLE
from proctor.models.http_model import HttpModel
from proctor.models.openai_chat import NOTHING, ChatUsage, copy_if_present, first_choice, usage_of
from proctor.trace import Message, Reply, text_of


class TextChoice(msgspec.Struct):
    text: str
    finish_reason: str | None = None
    logprobs: msgspec.Raw = NOTHING


class TextCompletion(msgspec.Struct):
    choices: list[TextChoice] | None = None
    usage: ChatUsage | None = None
    model: str | None = None
    id: str | None = None
    error: msgspec.Raw = NOTHING


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(TextCompletion).decode


class OpenAICompletions(HttpModel):
    """A model behind `POST {url}/completions`."""

    async def complete(self, request: Request) -> Reply:
        if request.tools:
            raise RequestRefusedError(
                "A text completion model cannot be given tools; use a chat client type."
            )
        body: dict[str, Any] = {"model": self.endpoint.model, "prompt": as_text(request.messages)}
        body.update(request.sampling)
        content = await self.http.post("/completions", _encode(body), request.headers)
        return read_text_reply(content, self.endpoint)


def read_text_reply(content: bytes, endpoint: Endpoint) -> Reply:
    try:
        completion = _decode(content)
    except UNREADABLE as error:
        raise MalformedReplyError(
            f"{endpoint.url} answered with what is no text completion ({error})."
        ) from error
    choice = first_choice(completion.choices, completion.error, endpoint)
    return Reply(
        message={"role": "assistant", "content": choice.text},
        finish_reason=choice.finish_reason or "stop",
        usage=usage_of(completion.usage),
        model=completion.model,
        id=completion.id,
        logprobs=copy_if_present(choice.logprobs),
    )


def as_text(messages: Sequence[Message]) -> str:
    """The texts of the conversation, one after the other."""
    return "\n\n".join(text for message in messages if (text := text_of(message)))
