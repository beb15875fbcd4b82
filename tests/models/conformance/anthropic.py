"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .wires import EVERY_FEATURE, SEAL, Answer, Call, joined, register

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
KINDS = {
    "auth": "authentication_error",
    "refused": "invalid_request_error",
    "too_long": "invalid_request_error",
    "not_found": "not_found_error",
    "rate_limit": "rate_limit_error",
    "overloaded": "overloaded_error",
}


class AnthropicWire:
    client_type = "anthropic_messages"
    features = EVERY_FEATURE
    base = ""
    path = "/v1/messages"
    check_path = "/v1/models"
    too_long = "prompt is too long: 210043 tokens > 200000 maximum"

    def key_headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key}

    def reply(self, answer: Answer) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if answer.reasoning:
            content.append({"type": "thinking", "thinking": answer.reasoning, "signature": SEAL})
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
            for call in answer.calls
        ]
        return {
            "id": "reply-1",
            "type": "message",
            "role": "assistant",
            "model": "served",
            "content": content,
            "stop_reason": STOP_REASONS[answer.finish_reason],
            "stop_sequence": None,
            "usage": usage(answer),
        }

    def error(self, status: int, message: str, kind: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": KINDS[kind], "message": message}, "request_id": "req_1"}

    def system(self, body: Any) -> str | None:
        return joined(body.get("system")) or None

    def turns(self, body: Any) -> list[tuple[str, str]]:
        roles = [turn["role"] for turn in body["messages"]]
        assert roles[0] == "user"
        assert all(one != next_one for one, next_one in pairwise(roles))
        said = [(turn["role"], joined(blocks(turn))) for turn in body["messages"]]
        return [(role, text) for role, text in said if text]

    def tools(self, body: Any) -> list[str]:
        assert all("input_schema" in tool for tool in body.get("tools", []))
        return [tool["name"] for tool in body.get("tools", [])]

    def tool_calls(self, body: Any) -> list[Call]:
        return [
            Call(block["id"], block["name"], json.dumps(block["input"], separators=(",", ":")))
            for turn in body["messages"]
            for block in blocks(turn)
            if block["type"] == "tool_use"
        ]

    def tool_results(self, body: Any) -> dict[str, str]:
        turns = body["messages"]
        results: dict[str, str] = {}
        for before, turn in pairwise(turns):
            called = [block["id"] for block in blocks(before) if block["type"] == "tool_use"]
            if called:
                answering = blocks(turn)[: len(called)]
                assert {block["type"] for block in answering} == {"tool_result"}
                results |= {block["tool_use_id"]: joined(block["content"]) for block in answering}
        return results

    def images(self, body: Any) -> list[tuple[str, str]]:
        return [
            (source["media_type"], source["data"]) if source["type"] == "base64" else ("url", source["url"])
            for source in sources(body)
        ]

    def seals(self, body: Any) -> list[str]:
        return [
            block["signature"] for turn in body["messages"] for block in blocks(turn) if "signature" in block
        ]

    def max_tokens(self, body: Any) -> int | None:
        limit: int | None = body.get("max_tokens")
        return limit

    def effort(self, body: Any) -> str | None:
        word: str | None = body.get("output_config", {}).get("effort")
        return word

    def schema(self, body: Any) -> Any:
        wanted = body.get("output_config", {}).get("format", {"type": "json_schema"})
        assert wanted["type"] == "json_schema", "no other type is known"
        return wanted.get("schema")


def usage(answer: Answer) -> dict[str, Any]:
    used = answer.usage
    fresh = used.input_tokens - used.cached_tokens
    written = fresh // 2
    return {
        "input_tokens": fresh - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": used.cached_tokens,
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"thinking_tokens": used.reasoning_tokens},
        "service_tier": "standard",
    }


def blocks(turn: Any) -> list[Any]:
    content = turn["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def sources(body: Any) -> Iterator[Any]:
    for turn in body["messages"]:
        for block in blocks(turn):
            inner = block["content"] if block["type"] == "tool_result" else [block]
            yield from (
                part["source"] for part in inner if isinstance(part, dict) and part["type"] == "image"
            )


register(AnthropicWire())
