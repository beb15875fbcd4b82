"""Which settings of an evaluation make sense for a run on a server.

Knows nothing of servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.config.schema import EvalConfig
from proctor.config.sources import resolve
from proctor.errors import ConfigError, did_you_mean

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
        "name",
        "label",
        "config_hash",
    }
)
"""The others are about the machine that one sits at: its folders, its processes, its keys."""


def check_hosted(settings: Mapping[str, Any]) -> None:
    """Refuse settings that a server cannot follow, and values that mean nothing."""
    beyond = sorted(name for name in settings if name not in HOSTED_SETTINGS)
    if beyond:
        raise ConfigError(" ".join(map(describe_beyond, beyond)))
    resolve({**settings, "env_id": "hosted"}, {})


def describe_beyond(name: str) -> str:
    """Why a server does not take a setting, as a sentence."""
    if name in EvalConfig.__struct_fields__:
        return f"A hosted run does not take {name}; leave it out."
    return f"{name!r} is not a setting of a hosted run{did_you_mean(name, sorted(HOSTED_SETTINGS))}"
