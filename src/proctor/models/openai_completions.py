"""A client for the OpenAI text completions API."""

from __future__ import annotations

from typing import Any

from proctor.contracts import Request
from proctor.errors import RequestRefusedError
from proctor.models.http_model import HttpModel
from proctor.models.openai_chat import STREAMING
from proctor.trace import Reply
from proctor.wires.completions import decode_reply, encode_prompt


class OpenAICompletions(HttpModel):
    """A model behind `POST {url}/completions`."""

    expected = "a text completion"

    async def complete(self, request: Request) -> Reply:
        if request.tools:
            raise RequestRefusedError("A text completion model takes no tools; use a chat client type.")
        body: dict[str, Any] = {"model": self.endpoint.model, "prompt": encode_prompt(request.messages)}
        body.update(request.sampling)
        return await self.ask("/completions", body, request, decode_reply, STREAMING)
