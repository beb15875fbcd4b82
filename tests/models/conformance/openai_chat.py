"""OpenAI's chat completions."""

from __future__ import annotations

from typing import Any

from .wires import EVERY_FEATURE, KEPT_THOUGHTS, Answer, Call, image_of, joined, register

KINDS = {"rate_limit": "rate_limit_exceeded", "too_long": "context_length_exceeded"}


class OpenAIChatWire:
    client_type = "openai_chat_completions"
    features = EVERY_FEATURE - {KEPT_THOUGHTS}
    base = "/v1"
    path = "/v1/chat/completions"
    check_path = "/v1/models"
    too_long = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000."

    def key_headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}

    def reply(self, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in answer.calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}
        return {
            "id": "reply-1",
            "object": "chat.completion",
            "model": "served",
            "choices": [choice],
            "usage": usage(answer),
        }

    def error(self, status: int, message: str, kind: str) -> dict[str, Any]:
        return openai_error(status, message, kind)

    def system(self, body: Any) -> str | None:
        said = [joined(turn["content"]) for turn in body["messages"] if turn["role"] == "system"]
        return "\n\n".join(said) or None

    def turns(self, body: Any) -> list[tuple[str, str]]:
        spoken = [turn for turn in body["messages"] if turn["role"] in ("user", "assistant")]
        return [(turn["role"], joined(turn["content"])) for turn in spoken]

    def tools(self, body: Any) -> list[str]:
        return [tool["function"]["name"] for tool in body.get("tools", [])]

    def tool_calls(self, body: Any) -> list[Call]:
        return [
            Call(call["id"], call["function"]["name"], call["function"]["arguments"])
            for turn in body["messages"]
            for call in turn.get("tool_calls") or []
        ]

    def tool_results(self, body: Any) -> dict[str, str]:
        results = [turn for turn in body["messages"] if turn["role"] == "tool"]
        return {turn["tool_call_id"]: joined(turn["content"]) for turn in results}

    def images(self, body: Any) -> list[tuple[str, str]]:
        return [
            image_of(part["image_url"]["url"])
            for turn in body["messages"]
            if isinstance(turn["content"], list)
            for part in turn["content"]
            if part["type"] == "image_url"
        ]

    def seals(self, body: Any) -> list[str]:
        return []

    def max_tokens(self, body: Any) -> int | None:
        limit: int | None = body.get("max_tokens")
        return limit

    def effort(self, body: Any) -> str | None:
        word: str | None = body.get("reasoning_effort")
        return word

    def schema(self, body: Any) -> Any:
        return body.get("response_format", {}).get("json_schema", {}).get("schema")


def usage(answer: Answer) -> dict[str, Any]:
    used = answer.usage
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
    }


def openai_error(status: int, message: str, kind: str) -> dict[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": KINDS.get(kind)}
    return {"error": error}


register(OpenAIChatWire())
