"""What an evaluation really uses: its sampling, its limits and its tasks, once everything is known.

A setting may come from the environment, the endpoint or the client as well as from the user. Knows nothing of
how it is displayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proctor.contracts import EnvironmentProtocol
from proctor.environment_members import Members
from proctor.evaluation.prepare import Prepared
from proctor.optional_contracts import get_sampling
from proctor.wires.anthropic_sampling import encode_sampling

MESSAGES_CLIENT = "anthropic_messages"
"""Its API requires `max_tokens`, so the client sends a default."""


class ResolvedSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was used, wherever the setting came from."""

    tasks: int | None
    """How many are evaluated; None while that is not known."""
    sampling_args: Mapping[str, Any]
    """Sent with every request of the evaluated model."""
    max_concurrent_generation: int
    max_concurrent_scoring: int
    num_workers: int
    member_sampling_args: Mapping[str, Mapping[str, Any]] = {}
    """By member, for the members of a group that differ."""
    package_defaults: Mapping[str, Any] = {}
    """Settings that the environment's package decided."""


def resolve_settings(prepared: Prepared, tasks: int | None) -> ResolvedSettings:
    own = {name: complete_sampling(prepared, given) for name, given in list_samplings(prepared.environment)}
    same = [args for args in own.values() if args == next(iter(own.values()))]
    rules, workers = prepared.rules(), prepared.workers()
    capacity = prepared.environment.traits.capacity
    most = rules.at_once if capacity is None else min(rules.at_once, capacity * workers)
    return ResolvedSettings(
        tasks=tasks,
        sampling_args=same[0] if len(same) == len(own) else prepared.config.sampling(),
        max_concurrent_generation=min(rules.generation_at_once or most, most),
        max_concurrent_scoring=min(rules.scoring_at_once or most, most),
        num_workers=workers,
        member_sampling_args={} if len(same) == len(own) else own,
        package_defaults={name: getattr(prepared.config, name) for name in prepared.package_defaults},
    )


def list_samplings(environment: EnvironmentProtocol, name: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """The sampling defaults of an environment, or of each of its members."""
    if not isinstance(environment, Members):
        return [(name, get_sampling(environment))]
    return [
        each
        for member, inner in environment.members.items()
        for each in list_samplings(inner, f"{name}/{member}" if name else member)
    ]


def complete_sampling(prepared: Prepared, from_environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment's defaults, your settings over them, and what the client adds where neither says it."""
    sampling = {**from_environment, **prepared.config.sampling()}
    if prepared.endpoint.client_type == MESSAGES_CLIENT and sampling.get("max_tokens") is None:
        limit, _ = encode_sampling(sampling, prepared.endpoint.model)
        sampling["max_tokens"] = limit
    return sampling
