"""Which settings of an evaluation make sense for a run on a server.

Knows nothing of servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import msgspec

from proctor.config.schema import EvalConfig
from proctor.config.sources import describe_value_problem
from proctor.errors import did_you_mean

HOSTED_SETTINGS = frozenset(
    {
        "env_args",
        "extra_env_kwargs",
        "num_examples",
        "rollouts_per_example",
        "task_ids",
        "shuffle",
        "seed",
        "agent",
        "agent_args",
        "max_steps",
        "max_tokens",
        "temperature",
        "sampling_args",
        "max_concurrent",
        "max_concurrent_generation",
        "max_concurrent_scoring",
        "max_retries",
        "no_interleave_scoring",
        "independent_scoring",
        "start_timeout",
        "timeout",
        "scoring_timeout",
        "request_timeout",
        "state_columns",
        "headers",
        "headers_from_state",
        "api_base_url",
        "api_key_var",
        "api_client_type",
        "min_coverage",
        "pass_threshold",
        "until_halfwidth",
        "until_decided",
        "name",
        "label",
        "config_hash",
    }
)
"""The others are about the machine that one sits at: its folders, its processes, its keys."""

EXPECTED = re.compile(r"Expected `(\w+)")
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": "a list",
    "object": "an object",
}
"""How msgspec calls a type, and how people do."""


def find_hosted_problems(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every setting that a server cannot follow, or whose value means nothing, with a sentence about it."""
    hints = get_type_hints(EvalConfig, include_extras=True)
    for name, given in settings.items():
        if name not in HOSTED_SETTINGS:
            yield name, describe_beyond(name)
            continue
        try:
            value = msgspec.convert(given, hints[name])
        except msgspec.ValidationError as error:
            yield name, describe_wrong_type(name, str(error))
            continue
        text = None if value is None else describe_value_problem(name, value)
        if text is not None:
            yield name, f"{name} {text}"


def describe_wrong_type(name: str, message: str) -> str:
    """What a setting must be, as a sentence; a part of its value is named as msgspec does."""
    expected = EXPECTED.match(message)
    kind = None if expected is None or "$" in message else KINDS.get(expected[1])
    return f"{name}: {message[:1].lower()}{message[1:]}." if kind is None else f"{name} must be {kind}."


def describe_beyond(name: str) -> str:
    """Why a server does not take a setting, as a sentence."""
    if name in EvalConfig.__struct_fields__:
        return f"A hosted run does not take {name}; leave it out."
    return f"{name!r} is not a setting of a hosted run{did_you_mean(name, sorted(HOSTED_SETTINGS))}"
