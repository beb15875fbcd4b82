"""OpenAI's chat completions from a server that tells its token ids."""

from __future__ import annotations

from typing import Any

from .openai_chat import OpenAIChatWire
from .wires import TOKEN_IDS, Answer, register


class OpenAIChatTokensWire(OpenAIChatWire):
    client_type = "openai_chat_completions_token"
    features = OpenAIChatWire.features | {TOKEN_IDS}

    def reply(self, answer: Answer) -> dict[str, Any]:
        """A token a byte, and none that a template would put at the end of a turn."""
        body = super().reply(answer)
        body["prompt_token_ids"] = [1, 2, 3]
        body["choices"][0]["token_ids"] = list(answer.text.encode())
        return body


register(OpenAIChatTokensWire())
