"""What reaches a provider with the server's key: listed parameters, written anew, and nothing stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.server.gateway.parameters import (
    ALLOWED,
    check_parameters,
    check_stored,
    leave_out_providers_tools,
)
from proctor.wires.errors import GatewayRefusedError
from tests.server.gateway.provider import Provider
from tests.server.gateway.test_gateway import ASKED, WIRES, in_run
from tests.server.serving import Served

CHAT, RESPONSES, MESSAGES = "/chat/completions", "/responses", "/messages"

PASS: list[tuple[str, dict[str, Any]]] = [
    # The OpenAI libraries
    (CHAT, {"stream": True, "stream_options": {"include_usage": True}, "parallel_tool_calls": False}),
    (CHAT, {"n": 2, "seed": 1, "stop": ["x"], "logit_bias": {}, "logprobs": True, "top_logprobs": 5}),
    (CHAT, {"response_format": {"type": "json_object"}, "reasoning_effort": "high", "verbosity": "low"}),
    (CHAT, {"metadata": {"a": "b"}, "user": "u", "safety_identifier": "s", "prompt_cache_key": "k"}),
    (CHAT, {"store": False, "service_tier": "default", "modalities": ["text"]}),
    (CHAT, {"store": None, "service_tier": None}),
    (CHAT, {"service_tier": "flex"}),
    (CHAT, {"functions": [], "function_call": "auto"}),
    # Servers of open models
    (CHAT, {"top_k": 20, "min_p": 0.1, "repetition_penalty": 1.1, "guided_json": {"type": "object"}}),
    (CHAT, {"chat_template_kwargs": {"enable_thinking": False}, "structured_outputs": {"regex": "a"}}),
    (CHAT, {"reasoning": {"effort": "low"}, "thinking": {"type": "disabled"}, "usage": {"include": True}}),
    # Codex
    (
        RESPONSES,
        {
            "instructions": "i",
            "input": [],
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "k",
            "text": {"verbosity": "low"},
            "client_metadata": {},
        },
    ),
    (RESPONSES, {"background": False, "previous_response_id": None, "conversation": None, "prompt": None}),
    (RESPONSES, {"max_output_tokens": 5, "truncation": "auto", "max_tool_calls": 2, "service_tier": "auto"}),
    # Claude Code
    (
        MESSAGES,
        {
            "max_tokens": 32000,
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
            "messages": [],
            "tools": [],
            "metadata": {"user_id": "u"},
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "stream": True,
        },
    ),
    (MESSAGES, {"top_k": 5, "stop_sequences": ["x"], "tool_choice": {"type": "any"}, "cache_control": {}}),
    (MESSAGES, {"service_tier": "standard_only", "speed": "standard", "container": None}),
]

REFUSED: list[tuple[str, str, Any]] = [
    # Another model than the one that was checked
    (CHAT, "Model", "expensive"),
    (CHAT, "models", ["expensive"]),
    (CHAT, "MODEL", "expensive"),
    (CHAT, "model ", "expensive"),
    (CHAT, "provider", {"order": ["dear"]}),
    (CHAT, "route", "fallback"),
    # What costs more than its tokens
    (CHAT, "service_tier", "priority"),
    (CHAT, "service_tier", ["default"]),
    (CHAT, "web_search_options", {}),
    (CHAT, "plugins", [{"id": "web"}]),
    (CHAT, "modalities", ["text", "audio"]),
    (CHAT, "audio", {"voice": "alloy"}),
    (CHAT, "prediction", {"type": "content", "content": "x"}),
    (CHAT, "best_of", 20),
    (CHAT, "n_predict", 10**6),
    (RESPONSES, "service_tier", "priority"),
    (RESPONSES, "context_management", [{"type": "compaction"}]),
    (MESSAGES, "service_tier", "priority"),
    (MESSAGES, "speed", "fast"),
    (MESSAGES, "inference_geo", "us"),
    (MESSAGES, "context_management", {"edits": [{"type": "compact_20260112"}]}),
    (MESSAGES, "context_management", [{"type": "clear_tool_uses"}]),
    # What is stored, or goes on afterwards
    (CHAT, "store", True),
    (CHAT, "store", 1),
    (RESPONSES, "store", True),
    (RESPONSES, "background", True),
    (RESPONSES, "background", "true"),
    (RESPONSES, "previous_response_id", "resp_1"),
    (RESPONSES, "conversation", "conv_1"),
    (RESPONSES, "prompt", {"id": "pmpt_1"}),
    (MESSAGES, "container", "container_1"),
    (MESSAGES, "mcp_servers", [{"url": "https://example.com"}]),
    # Whatever nobody has thought of
    (CHAT, "extra_body", {}),
    (RESPONSES, "whatever", None),
    (MESSAGES, "whatever", 1),
]


@pytest.mark.parametrize(("path", "body"), PASS)
def test_what_clients_send_passes(path: str, body: dict[str, Any]) -> None:
    check_parameters(path, {"model": "m", **body})


@pytest.mark.parametrize(("path", "name", "value"), REFUSED)
def test_what_costs_more_or_is_stored_is_refused_by_its_name(path: str, name: str, value: Any) -> None:
    with pytest.raises(GatewayRefusedError) as refused:
        check_parameters(path, {"model": "m", name: value})

    assert refused.value.refusal.status == 400
    assert name.strip() in refused.value.refusal.message


def test_every_wire_has_its_list() -> None:
    assert {path.removeprefix("/v1") for path, _, _ in WIRES} == set(ALLOWED)


@pytest.mark.parametrize(("path", "model", "body"), WIRES)
def test_a_parameter_that_is_not_listed_never_reaches_the_provider(
    served: Served, provider: Provider, path: str, model: str, body: dict[str, Any]
) -> None:
    ada = served.user("ada")

    for asked in (model, "chatty", "thinker", "poet"):
        for name in ("Model", "background" if path != "/v1/responses" else "conversation", "mcp_servers"):
            answer = ada("POST", path, {**body, "model": asked, name: "poet"})
            assert answer.status == 400, (path, asked, name)
            assert name in answer.body["error"]["message"]
            assert answer.headers["x-proctor-code"] == "unsupported_parameter"
    assert provider.bodies == []


def test_an_answer_in_the_background_is_not_begun(served: Served, provider: Provider) -> None:
    answer = served.user("ada")(
        "POST", "/v1/responses", {"model": "thinker", "input": "hi", "background": True}
    )

    assert answer.status == 400
    assert "background cannot be true" in answer.body["error"]["message"]
    assert provider.bodies == []


@pytest.mark.parametrize("native", ["chatty", "thinker"])
def test_of_a_name_that_stands_twice_the_checked_value_is_the_one_that_is_passed_on(
    served: Served, provider: Provider, native: str
) -> None:
    ada = served.user("ada")
    twice = b'{"model": "poet", "max_tokens": 5, "max_tokens": 6, "messages": [{"role": "user", '
    twice += b'"content": "a", "content": "b"}], "model": "%s"}' % native.encode()

    assert ada("POST", "/v1/chat/completions", data=twice).status == 200

    raw = provider.raw[-1]
    assert raw.count(b'"model"') == 1
    assert raw.count(b"max_") == 1
    assert b'"a"' not in raw
    assert provider.last["model"] == "big-1"
    assert [each["model"] for each in ada.get("/usage")["items"]] == [native]


def test_a_run_says_what_it_likes_to_its_own_endpoint(served: Served, provider: Provider) -> None:
    served.platform.upstreams._allowed_hosts = ("127.0.0.1",)
    served.user("ada")
    _, inside = in_run(served, "ada", model="mine", settings={"api_base_url": provider.url})

    inside.ok("POST", "/v1/chat/completions", {**ASKED, "model": "mine", "anything": [1]})

    assert provider.last["anything"] == [1]


# Tools


def test_tools_that_the_provider_would_run_are_left_out() -> None:
    function = {"type": "function", "name": "f"}
    body: dict[str, Any] = {
        "tools": [
            function,
            {"type": "web_search"},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "mcp", "server_url": "https://example.com"},
            {"type": "file_search", "vector_store_ids": ["vs_1"]},
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "shell", "environment": {"type": "container_auto"}},
            {"type": "namespace", "name": "g", "tools": [{"type": "image_generation"}]},
            {"type": ["function"]},
            {"type": "shell", "environment": {"type": "local"}},
            {"type": "bash_20250124", "name": "bash"},
            {"name": "no_type", "input_schema": {}},
        ]
    }

    leave_out_providers_tools(body)

    kinds = [tool.get("type") for tool in body["tools"]]
    assert kinds == ["function", "shell", "bash_20250124", None]


def test_without_any_tool_left_none_is_demanded(served: Served, provider: Provider) -> None:
    body = {"model": "thinker", "input": "hi", "tools": [{"type": "web_search"}], "tool_choice": "required"}

    served.user("ada").ok("POST", "/v1/responses", body)

    assert "tools" not in provider.last
    assert "tool_choice" not in provider.last


# What somebody stored


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}
            ]
        },
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t",
                            "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}],
                        }
                    ],
                }
            ]
        },
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}]},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"input": [{"id": "msg_1"}]},
        {"input": [{"id": "msg_1", "type": None}]},
        {"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "document",
                            "source": {
                                "type": "content",
                                "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}],
                            },
                        }
                    ],
                }
            ]
        },
        {"input": [{"type": "function_call_output", "output": [{"type": "input_file", "file_id": "f"}]}]},
    ],
)
def test_files_and_items_that_are_stored_at_the_provider_are_out_of_reach(body: dict[str, Any]) -> None:
    with pytest.raises(GatewayRefusedError, match="stored at the provider"):
        check_stored(body, json.dumps(body).encode())


def test_a_tool_may_speak_of_files_as_it_likes() -> None:
    use = {"type": "tool_use", "id": "t", "name": "open", "input": {"file_id": "mine"}}
    body = {
        "messages": [{"role": "assistant", "content": [use]}],
        "tools": [{"name": "open", "input_schema": {"properties": {"file_id": {"type": "string"}}}}],
    }

    check_stored(body, json.dumps(body).encode())


def test_an_item_with_an_id_and_a_content_of_its_own_passes() -> None:
    said = {"id": "msg_1", "role": "assistant", "content": "Four."}
    body = {"input": [said, {"id": "rs_1", "type": "reasoning", "summary": []}], "messages": [said]}

    check_stored(body, json.dumps(body).encode())


def test_escapes_hide_no_file(served: Served, provider: Provider) -> None:
    hidden = rb'{"model": "thinker", "input": [{"role": "user", "content": [{"type": "input_file", '
    hidden += rb'"file\u005fid": "file-1"}]}]}'

    answer = served.user("ada")("POST", "/v1/responses", data=hidden)

    assert answer.status == 400
    assert provider.bodies == []
