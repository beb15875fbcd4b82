"""Google's generateContent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .wires import EVERY_FEATURE, SEAL, Answer, Call, register

FINISH_REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
}
STATUSES = {
    "auth": "UNAUTHENTICATED",
    "refused": "INVALID_ARGUMENT",
    "too_long": "INVALID_ARGUMENT",
    "not_found": "NOT_FOUND",
    "rate_limit": "RESOURCE_EXHAUSTED",
    "overloaded": "UNAVAILABLE",
}
SPEAKERS = {"user": "user", "model": "assistant"}


class GeminiWire:
    client_type = "gemini"
    features = EVERY_FEATURE
    base = "/v1beta"
    path = "/v1beta/models/tiny:generateContent"
    check_path = "/v1beta/models"
    too_long = "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."

    def key_headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def reply(self, answer: Answer) -> dict[str, Any]:
        spoken: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
        spoken += [
            {"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}}
            for call in answer.calls
        ]
        thoughts: list[dict[str, Any]] = []
        if answer.reasoning:
            thoughts = [{"text": answer.reasoning, "thought": True}]
            spoken[-1]["thoughtSignature"] = SEAL
        candidate: dict[str, Any] = {"finishReason": FINISH_REASONS[answer.finish_reason], "index": 0}
        if spoken:
            candidate["content"] = {"role": "model", "parts": thoughts + spoken}
        return {
            "candidates": [candidate],
            "usageMetadata": usage(answer),
            "modelVersion": "served",
            "responseId": "reply-1",
        }

    def error(self, status: int, message: str, kind: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": STATUSES[kind]}}

    def system(self, body: Any) -> str | None:
        parts = body.get("systemInstruction", {}).get("parts", [])
        return "\n\n".join(part["text"] for part in parts) or None

    def turns(self, body: Any) -> list[tuple[str, str]]:
        assert all(one["role"] != other["role"] for one, other in pairwise(body["contents"]))
        assert all(content["parts"] for content in body["contents"])
        said = [(SPEAKERS[content["role"]], spoken(content)) for content in body["contents"]]
        return [(role, text) for role, text in said if text]

    def tools(self, body: Any) -> list[str]:
        declared = [each for tool in body.get("tools", []) for each in tool["functionDeclarations"]]
        assert all(each.get("parametersJsonSchema", {"properties": 1})["properties"] for each in declared)
        return [each["name"] for each in declared]

    def tool_calls(self, body: Any) -> list[Call]:
        return [
            Call(call["id"], call["name"], json.dumps(call["args"], separators=(",", ":")))
            for call in (part["functionCall"] for part in parts(body) if "functionCall" in part)
        ]

    def tool_results(self, body: Any) -> dict[str, str]:
        results: dict[str, str] = {}
        for before, content in pairwise(body["contents"]):
            calls = [part["functionCall"] for part in before["parts"] if "functionCall" in part]
            answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
            assert [(call["id"], call["name"]) for call in calls] == [
                (answer["id"], answer["name"]) for answer in answers
            ]
            results |= {answer["id"]: answer["response"]["output"] for answer in answers}
        return results

    def images(self, body: Any) -> list[tuple[str, str]]:
        inline = [part["inlineData"] for part in parts(body) if "inlineData" in part]
        linked = [part["fileData"] for part in parts(body) if "fileData" in part]
        return [(data["mimeType"], data["data"]) for data in inline] + [
            ("url", data["fileUri"]) for data in linked
        ]

    def seals(self, body: Any) -> list[str]:
        return [part["thoughtSignature"] for part in parts(body) if "thoughtSignature" in part]

    def max_tokens(self, body: Any) -> int | None:
        limit: int | None = body.get("generationConfig", {}).get("maxOutputTokens")
        return limit

    def effort(self, body: Any) -> str | None:
        word: str | None = body.get("generationConfig", {}).get("thinkingConfig", {}).get("thinkingLevel")
        return word

    def schema(self, body: Any) -> Any:
        config = body.get("generationConfig", {})
        schema = config.get("responseJsonSchema")
        assert schema is None or config["responseMimeType"] == "application/json"
        return schema


def usage(answer: Answer) -> dict[str, Any]:
    used = answer.usage
    return {
        "promptTokenCount": used.input_tokens,
        "cachedContentTokenCount": used.cached_tokens,
        "candidatesTokenCount": used.output_tokens - used.reasoning_tokens,
        "thoughtsTokenCount": used.reasoning_tokens,
        "totalTokenCount": used.input_tokens + used.output_tokens,
    }


def spoken(content: Any) -> str:
    return "".join(part["text"] for part in content["parts"] if "text" in part and not part.get("thought"))


def parts(body: Any) -> Iterator[Any]:
    for content in body["contents"]:
        yield from content["parts"]


register(GeminiWire())
