"""Which parameters of a request reach a provider under the server's own key.

Some parameters cost more than the price list says (priority tiers, searches, containers), reach what others
stored under the same key (earlier responses, files, conversations), or keep working after the answer
(background). So only the parameters listed here pass, per wire; any other is refused by name, never dropped.
Tools that the provider would run itself are left out instead, as in a translation between wires: programs
offer them by default. Knows nothing of money or HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from proctor.wires.content import Part
from proctor.wires.errors import GatewayRefusedError, Refusal

Rule = Callable[[Any], bool]
"""Whether a value may pass. None always may: it equals leaving the parameter out."""


def one_of(*allowed: object) -> Rule:
    return lambda value: not isinstance(value, (list, dict)) and value in allowed


def anything(_: Any) -> bool:
    return True


def nothing(_: Any) -> bool:
    return False


def only_text(value: Any) -> bool:
    return bool(value == ["text"])


def only_clears(value: Any) -> bool:
    """Edits that drop old parts of a conversation; compacting it would add an unmetered answer."""
    edits = value.get("edits", []) if isinstance(value, dict) else None
    return isinstance(edits, list) and all(str(kind_of(edit)).startswith("clear_") for edit in edits)


def kind_of(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None


def free(names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), anything)


SAMPLING = free(
    # Of servers for open models: vLLM, SGLang, llama.cpp, and providers that run them.
    "top_k top_a min_p typical_p repetition_penalty repeat_penalty repeat_last_n length_penalty min_tokens "
    "stop_token_ids include_stop_str_in_output ignore_eos skip_special_tokens spaces_between_special_tokens "
    "truncate_prompt_tokens prompt_logprobs allowed_token_ids bad_words echo add_generation_prompt "
    "continue_final_message add_special_tokens documents chat_template_kwargs guided_json guided_regex "
    "guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern structured_outputs "
    "structural_tag return_tokens_as_token_ids return_token_ids cache_salt regex ebnf grammar json_schema "
    "cache_prompt samplers mirostat mirostat_tau mirostat_eta xtc_probability xtc_threshold dry_multiplier "
    "dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers dynatemp_range dynatemp_exponent "
    "include_reasoning separate_reasoning enable_thinking thinking_budget"
)
OPENAI = {
    **free(
        "model stream stream_options temperature top_p tools tool_choice parallel_tool_calls metadata user "
        "safety_identifier prompt_cache_key prompt_cache_retention top_logprobs presence_penalty "
        "frequency_penalty reasoning verbosity"
    ),
    "service_tier": one_of("auto", "default", "flex"),
    "store": one_of(False),
}
CHAT = {
    **SAMPLING,
    **OPENAI,
    **free(
        "messages max_tokens max_completion_tokens n stop seed logit_bias logprobs response_format "
        "reasoning_effort functions function_call thinking usage"
    ),
    "modalities": only_text,
}
RESPONSES = {
    **SAMPLING,
    **OPENAI,
    **free("input instructions max_output_tokens max_tool_calls text include truncation client_metadata"),
    "background": one_of(False),
    "previous_response_id": nothing,
    "conversation": nothing,
    "prompt": nothing,
}
MESSAGES = {
    **free(
        "model messages max_tokens system stream temperature top_p top_k stop_sequences tools tool_choice "
        "thinking metadata output_config output_format cache_control"
    ),
    "service_tier": one_of("auto", "standard_only"),
    "speed": one_of("standard"),
    "context_management": only_clears,
    "container": nothing,
    "mcp_servers": nothing,
}
ALLOWED: Mapping[str, Mapping[str, Rule]] = {
    "/chat/completions": CHAT,
    "/responses": RESPONSES,
    "/messages": MESSAGES,
}
"""By the wire's path."""

CALLERS_TOOLS = frozenset(
    {
        None,
        "function",
        "custom",
        "namespace",
        "local_shell",
        "apply_patch",
        "computer_use_preview",
        "computer",
    }
)
"""Kinds of tools that the program runs itself."""
CALLERS_TOOL_FAMILIES = ("bash_", "text_editor_", "computer_", "memory_")
"""How the kinds that end in a date begin."""
STORED_MARK = re.compile(rb'"(?:file_id|item_reference|container_upload)"')
"""Found in every encoded request that refers to stored files or items."""


def check_parameters(path: str, body: Part) -> None:
    allowed = ALLOWED[path]
    for name, value in body.items():
        rule = allowed.get(name)
        if rule is anything:
            continue
        if rule is None or not (value is None or rule(value)):
            raise GatewayRefusedError(
                Refusal(400, "unsupported_parameter", describe_unsupported(name, value, rule))
            )


def describe_unsupported(name: str, value: Any, rule: Rule | None) -> str:
    if rule is None or rule is nothing:
        return f"{name[:100]!r} is not supported by this server; leave it out."
    given = msgspec.json.encode(value)[:100].decode(errors="replace")
    return f"{name} cannot be {given} on this server; leave it out."


def leave_out_providers_tools(body: Part) -> None:
    """Remove the tools that the provider would run, and bill, itself."""
    tools = body.get("tools")
    if not isinstance(tools, list):
        return
    kept = [tool for tool in tools if is_callers(tool)]
    if len(kept) == len(tools):
        return
    if kept:
        body["tools"] = kept
    else:
        del body["tools"]
        body.pop("tool_choice", None)


def is_callers(tool: Any) -> bool:
    kind = kind_of(tool)
    if kind == "namespace":
        inner = tool.get("tools")
        return isinstance(inner, list) and all(is_callers(each) for each in inner)
    if kind == "shell":
        return bool(kind_of(tool.get("environment")) == "local")
    if kind == "tool_search":
        return bool(tool.get("execution") == "client")
    return not isinstance(kind, (list, dict)) and (
        kind in CALLERS_TOOLS or str(kind).startswith(CALLERS_TOOL_FAMILIES)
    )


# The content of messages


def check_stored(body: Part, encoded: bytes) -> None:
    """Refuse parts that refer to a file or an item stored at the provider."""
    is_marked = STORED_MARK.search(encoded) is not None
    if names_item(body) or (is_marked and any(is_stored(part) for part in parts_in(body))):
        raise GatewayRefusedError(
            Refusal(
                400,
                "unsupported_parameter",
                "The request refers to a file or an item stored at the provider, to which this server "
                "gives no access; send its content instead.",
            )
        )


def names_item(body: Part) -> bool:
    """Whether an item, or a message's audio, is referred to by its id alone, which needs no type."""
    items, messages = body.get("input"), body.get("messages")
    if isinstance(items, list) and any(names_alone(item) for item in items):
        return True
    return isinstance(messages, list) and any(
        isinstance(message, dict) and message.get("audio") is not None for message in messages
    )


def names_alone(item: Any) -> bool:
    return (
        isinstance(item, dict) and item.get("id") is not None and not (item.get("type") or item.get("role"))
    )


def is_stored(part: Part) -> bool:
    return kind_of(part) in ("item_reference", "container_upload") or names_file(part)


def names_file(part: Part) -> bool:
    inner = (part, part.get("file"), part.get("source"), part.get("image_url"))
    return any(isinstance(each, dict) and each.get("file_id") is not None for each in inner)


def parts_in(body: Part) -> Iterator[Part]:
    """Every message, item and part of a request, including those in documents and in results of tools."""
    waiting = [body.get(name) for name in ("messages", "input", "system")]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting += [found.get("content"), found.get("output"), found.get("source")]
        elif isinstance(found, list):
            waiting += found
