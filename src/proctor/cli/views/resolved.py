"""The settings that an evaluation really uses, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.cli.views.formatting import format_limit
from proctor.config.schema import HERE, EvalConfig
from proctor.evaluation.prepare import Prepared
from proctor.evaluation.resolved import ResolvedSettings, list_samplings


def sampling_text(prepared: Prepared, used: ResolvedSettings) -> str:
    """What is sent with every request, and who decided what you did not; empty for the model's defaults."""
    own = prepared.config.sampling()
    defaults = dict(list_samplings(prepared.environment))
    if used.member_sampling_args:
        return "; ".join(
            f"{member}: {sampling_pairs(args, own, defaults[member]) or 'model defaults'}"
            for member, args in used.member_sampling_args.items()
        )
    return sampling_pairs(used.sampling_args, own, next(iter(defaults.values())))


def sampling_pairs(
    args: Mapping[str, Any], own: Mapping[str, Any], from_environment: Mapping[str, Any]
) -> str:
    phrases = []
    for name, value in args.items():
        whose = "" if name in own else " (environment)" if name in from_environment else " (client's default)"
        phrases.append(f"{name} {value}{whose}")
    return ", ".join(phrases)


def at_once_text(used: ResolvedSettings) -> str:
    played, scored = used.max_concurrent_generation, used.max_concurrent_scoring
    rollouts = f"{format_limit(played)} {'rollout' if played == 1 else 'rollouts'}"
    return rollouts if played == scored else f"{rollouts} played, {format_limit(scored)} scored"


def workers_text(config: EvalConfig, used: ResolvedSettings) -> str:
    """How many workers play, and where; empty if none does."""
    if config.on != HERE:
        return f"{used.num_workers} on {config.on}"
    return str(used.num_workers) if used.num_workers > 1 else ""
