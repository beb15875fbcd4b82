"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .openai_chat import openai_error
from .wires import EVERY_FEATURE, SEAL, Answer, Call, image_of, joined, register

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class OpenAIResponsesWire:
    client_type = "openai_responses"
    features = EVERY_FEATURE
    base = "/v1"
    path = "/v1/responses"
    check_path = "/v1/models"
    too_long = "Your input exceeds the context window of this model. Please adjust your input and try again."

    def key_headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}

    def reply(self, answer: Answer) -> dict[str, Any]:
        reason = INCOMPLETE.get(answer.finish_reason)
        return {
            "id": "reply-1",
            "object": "response",
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "model": "served",
            "output": list(output(answer)),
            "store": False,
            "usage": usage(answer),
        }

    def error(self, status: int, message: str, kind: str) -> dict[str, Any]:
        return openai_error(status, message, kind)

    def system(self, body: Any) -> str | None:
        said = [joined(item["content"]) for item in messages(body) if item["role"] == "system"]
        return "\n\n".join(said) or body.get("instructions")

    def turns(self, body: Any) -> list[tuple[str, str]]:
        spoken = [item for item in messages(body) if item["role"] in ("user", "assistant")]
        return [(item["role"], joined(item["content"])) for item in spoken]

    def tools(self, body: Any) -> list[str]:
        assert all(tool["type"] == "function" for tool in body.get("tools", []))
        return [tool["name"] for tool in body.get("tools", [])]

    def tool_calls(self, body: Any) -> list[Call]:
        calls = [item for item in body["input"] if item.get("type") == "function_call"]
        return [Call(item["call_id"], item["name"], item["arguments"]) for item in calls]

    def tool_results(self, body: Any) -> dict[str, str]:
        results = [item for item in body["input"] if item.get("type") == "function_call_output"]
        return {item["call_id"]: joined(item["output"]) for item in results}

    def images(self, body: Any) -> list[tuple[str, str]]:
        return [
            image_of(part["image_url"])
            for item in body["input"]
            for part in item.get("content") or item.get("output") or ()
            if isinstance(part, dict) and part["type"] == "input_image"
        ]

    def seals(self, body: Any) -> list[str]:
        assert body["store"] is False
        assert body["include"] == ["reasoning.encrypted_content"]
        return [item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"]

    def max_tokens(self, body: Any) -> int | None:
        limit: int | None = body.get("max_output_tokens")
        return limit

    def effort(self, body: Any) -> str | None:
        word: str | None = body.get("reasoning", {}).get("effort")
        return word

    def schema(self, body: Any) -> Any:
        wanted = body.get("text", {}).get("format", {"type": "text"})
        assert wanted["type"] == "text" or wanted["name"], "a schema without a name is refused"
        return wanted.get("schema")


def output(answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        yield {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": SEAL}
    if answer.text:
        content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": answer.text}]
        status = "incomplete" if answer.finish_reason in INCOMPLETE else "completed"
        yield {"id": "msg_1", "type": "message", "status": status, "content": content, "role": "assistant"}
    for number, call in enumerate(answer.calls):
        yield {
            "id": f"fc_{number}",
            "type": "function_call",
            "status": "completed",
            "arguments": call.arguments,
            "call_id": call.id,
            "name": call.name,
        }


def usage(answer: Answer) -> dict[str, Any]:
    used = answer.usage
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {"cached_tokens": used.cached_tokens},
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.input_tokens + used.output_tokens,
    }


def messages(body: Any) -> list[Any]:
    return [item for item in body["input"] if item.get("type", "message") == "message"]


register(OpenAIResponsesWire())
