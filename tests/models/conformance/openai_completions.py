"""OpenAI's text completions, which know texts and nothing else."""

from __future__ import annotations

from typing import Any

from .openai_chat import openai_error, usage
from .wires import CACHED_TOKENS, REASONING_TOKENS, Answer, Call, register


class OpenAICompletionsWire:
    client_type = "openai_completions"
    features = frozenset({CACHED_TOKENS, REASONING_TOKENS})
    base = "/v1"
    path = "/v1/completions"
    check_path = "/v1/models"
    too_long = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."

    def key_headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}

    def reply(self, answer: Answer) -> dict[str, Any]:
        choice = {"index": 0, "text": answer.text, "logprobs": None, "finish_reason": answer.finish_reason}
        return {
            "id": "reply-1",
            "object": "text_completion",
            "model": "served",
            "choices": [choice],
            "usage": usage(answer),
        }

    def error(self, status: int, message: str, kind: str) -> dict[str, Any]:
        return openai_error(status, message, kind)

    def system(self, body: Any) -> str | None:
        return None

    def turns(self, body: Any) -> list[tuple[str, str]]:
        return [("user", body["prompt"])]

    def tools(self, body: Any) -> list[str]:
        return []

    def tool_calls(self, body: Any) -> list[Call]:
        return []

    def tool_results(self, body: Any) -> dict[str, str]:
        return {}

    def images(self, body: Any) -> list[tuple[str, str]]:
        return []

    def seals(self, body: Any) -> list[str]:
        return []

    def max_tokens(self, body: Any) -> int | None:
        limit: int | None = body.get("max_tokens")
        return limit

    def effort(self, body: Any) -> str | None:
        return None

    def schema(self, body: Any) -> Any:
        return None


register(OpenAICompletionsWire())
