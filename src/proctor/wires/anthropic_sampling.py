"""Sampling parameters under the names of Anthropic's API. Knows nothing of conversations or answers.

A `response_format` without a schema (`json_object`) has no counterpart here: it passes unchanged, and the
provider refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

DEFAULT_MAX_TOKENS = 4096

TOOL_CHOICES = {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}}

THINKING_TOKENS = {
    "minimal": 1024,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 32768,
    "max": 32768,
}
"""Tokens per effort: the budget of older models, and the room below the limit for all models."""

LEAST_BUDGET = 1024
"""The provider refuses a smaller budget."""

FIRST_ADAPTIVE = (4, 6)
"""The first version that takes an effort by name. Earlier versions take a budget."""

VERSION = re.compile(r"claude(?:-[a-z]+)*-(\d+)(?:[-.](\d{1,2})(?!\d))?")


def encode_sampling(sampling: Mapping[str, Any], model: str) -> tuple[int, dict[str, Any]]:
    """The limit of tokens, which this API requires, and the other parameters."""
    own = dict(sampling)
    limit = own.pop("max_tokens", None)
    effort = own.pop("reasoning_effort", None)
    if stop := own.pop("stop", None):
        own["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if "tool_choice" in own:
        own["tool_choice"] = encode_tool_choice(own["tool_choice"])
    output: dict[str, Any] = {}
    if (wanted := format_settings(own.get("response_format"))) is not None:
        own.pop("response_format", None)
        output |= wanted
    if effort is not None:
        # A caller who sets `thinking` itself has chosen how to think: then the effort is passed as a name.
        budget = None if "thinking" in own else budget_for(effort, model, limit)
        own.setdefault("thinking", thinking_for(effort, budget))
        output |= effort_settings(effort) if budget is None else {}
    if output:
        own["output_config"] = {**output, **(own.get("output_config") or {})}
    return limit or DEFAULT_MAX_TOKENS + thinking_room(own, effort), own


def format_settings(wanted: Any) -> dict[str, Any] | None:
    """A response format as `output_config` has it; None if there is no counterpart."""
    match wanted:
        case None | {"type": "text"}:
            return {}
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return {"format": {"type": "json_schema", "schema": schema}}
    return None


def budget_for(effort: str, model: str, limit: int | None) -> int | None:
    """The thinking budget of a model that takes one; half of the limit is left for the answer."""
    budget = THINKING_TOKENS.get(effort)
    if budget is None or not needs_budget(model):
        return None
    return max(LEAST_BUDGET, min(budget, limit // 2)) if limit else budget


def thinking_for(effort: str, budget: int | None) -> dict[str, Any]:
    if effort == "none":
        return {"type": "disabled"}
    if budget is not None:
        return {"type": "enabled", "budget_tokens": budget}
    return {"type": "adaptive", "display": "summarized"}  # later models hide their thoughts by default


def effort_settings(effort: str) -> dict[str, Any]:
    if effort == "none":
        return {}
    return {"effort": "low" if effort == "minimal" else effort}


def needs_budget(model: str) -> bool:
    """Whether the name is that of an older Claude; all other names count as later ones."""
    found = VERSION.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) < FIRST_ADAPTIVE


def thinking_room(own: Mapping[str, Any], effort: str | None) -> int:
    """Tokens for thinking, which count towards the limit."""
    thinking = own.get("thinking")
    budget = (thinking.get("budget_tokens") or 0) if isinstance(thinking, Mapping) else 0
    return budget or THINKING_TOKENS.get(effort or "", 0)


def encode_tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return TOOL_CHOICES.get(choice, choice)
    if isinstance(choice, Mapping) and "function" in choice:
        return {"type": "tool", "name": choice["function"]["name"]}
    return choice
