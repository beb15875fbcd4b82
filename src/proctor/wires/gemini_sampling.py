"""Sampling parameters under Gemini's names. Knows nothing of conversations or answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GENERATION_FIELDS = frozenset(
    {
        "audioTimestamp",
        "candidateCount",
        "enableEnhancedCivicAnswers",
        "frequencyPenalty",
        "imageConfig",
        "logprobs",
        "maxOutputTokens",
        "mediaResolution",
        "presencePenalty",
        "responseJsonSchema",
        "responseLogprobs",
        "responseMimeType",
        "responseModalities",
        "responseSchema",
        "seed",
        "speechConfig",
        "stopSequences",
        "temperature",
        "thinkingConfig",
        "topK",
        "topP",
    }
)
"""The fields of `generationConfig`; every other parameter is sent beside it."""

OTHER_NAMES = {
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "n": "candidateCount",
    "stop": "stopSequences",
    "top_logprobs": "logprobs",
}
"""Parameters whose names differ from the chat API's in more than spelling."""

THINKING_TOKENS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
"""Tokens per effort, for models that take a budget; later ones take the effort's name."""

CALLING_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def encode_sampling(sampling: Mapping[str, Any], model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters inside `generationConfig`, and those beside it."""
    config: dict[str, Any] = thinking_settings(sampling.get("reasoning_effort"), model)
    beside: dict[str, Any] = {}
    for name, value in sampling.items():
        if value is None or name == "reasoning_effort":
            continue
        if name == "tool_choice":
            beside["toolConfig"] = {"functionCallingConfig": calling_settings(value)}
        elif (settings := generation_settings(name, value)) is None:
            beside[name] = value
        elif "thinkingConfig" in config and "thinkingConfig" in settings:
            config["thinkingConfig"].update(settings["thinkingConfig"])
        else:
            config.update(settings)
    return config, beside


def generation_settings(name: str, value: Any) -> dict[str, Any] | None:
    """A parameter as a field of `generationConfig`; None if it does not belong there."""
    spelled = OTHER_NAMES.get(name, camel_case(name))
    if name == "logprobs" and isinstance(value, bool):
        return {"responseLogprobs": value}
    if name == "stop" and isinstance(value, str):
        return {"stopSequences": [value]}
    if name == "response_format":
        return format_settings(value)
    if spelled == "generationConfig":
        return dict(value)
    return {spelled: value} if spelled in GENERATION_FIELDS else None


def thinking_settings(effort: str | None, model: str) -> dict[str, Any]:
    if effort is None:
        return {}
    if "gemini-2.5" in model and effort in THINKING_TOKENS:
        extent: dict[str, Any] = {"thinkingBudget": THINKING_TOKENS[effort]}
    else:
        extent = {"thinkingLevel": "minimal" if effort == "none" else effort}
    return {"thinkingConfig": {"includeThoughts": effort != "none", **extent}}


def format_settings(wanted: Mapping[str, Any]) -> dict[str, Any]:
    if wanted.get("type") == "text":
        return {}
    settings: dict[str, Any] = {"responseMimeType": "application/json"}
    if wanted.get("type") == "json_schema":
        settings["responseJsonSchema"] = wanted["json_schema"]["schema"]
    return settings


def calling_settings(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"mode": CALLING_MODES.get(choice, choice)}
    return {"mode": "ANY", "allowedFunctionNames": [choice["function"]["name"]]}


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
