"""The OpenAI text completions API: base models, which know text but no roles. Knows nothing of HTTP."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from proctor.trace import Message, Reply, text_of
from proctor.wires.chat import ChatUsage, first_choice, usage_of
from proctor.wires.codec import NOTHING, copy_if_present


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


_decode = msgspec.json.Decoder(TextCompletion).decode


def encode_prompt(messages: Sequence[Message]) -> str:
    """The texts of the conversation, one after the other."""
    return "\n\n".join(text for message in messages if (text := text_of(message)))


def decode_reply(content: bytes) -> Reply:
    completion = _decode(content)
    choice = first_choice(completion.choices, completion.error)
    return Reply(
        message={"role": "assistant", "content": choice.text},
        finish_reason=choice.finish_reason or "stop",
        usage=usage_of(completion.usage),
        model=completion.model,
        id=completion.id,
        logprobs=copy_if_present(choice.logprobs),
    )
