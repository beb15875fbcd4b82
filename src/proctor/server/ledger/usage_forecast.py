"""How many calls, tokens and minutes a run will take: from earlier rollouts, else from the size of prompts.

Knows nothing of money or of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import msgspec

from proctor.config.schema import UNLIMITED, EvalConfig
from proctor.server.ledger.past_rollouts import PastRollout, PlannedRun, describe_past
from proctor.stats.prediction import PredictedTotal, predict_total, raise_total, scale_total

CHARACTERS_PER_TOKEN = 4
SHORT_REPLY_TOKENS = 16
LONG_REPLY_TOKENS = 1_024
"""Of a reply, if no limit was set."""
NOTHING_KNOWN = "This environment was not played yet, and the size of its prompts is unknown."
MINUTE = 60.0


class Volume(msgspec.Struct, frozen=True):
    """What a run takes besides money, and where that is known from."""

    basis: str
    calls: PredictedTotal | None = None
    input_tokens: PredictedTotal | None = None
    output_tokens: PredictedTotal | None = None
    minutes: PredictedTotal | None = None


class GuessedSizes(msgspec.Struct, frozen=True):
    """Tokens of a rollout with one call, if none was played yet."""

    prompt: int
    shortest: int
    longest: int
    basis: str


def predict_volume(
    planned: PlannedRun,
    facts: Mapping[str, Any],
    count: int | None,
    past: Sequence[PastRollout],
    by: str,
) -> Volume:
    if count is None:
        return Volume("The number of tasks is unknown: this version was not checked yet.")
    if past:
        return volume_from_past(planned, count, past, f"{describe_past(past, by)}.")
    sizes = guess_sizes(planned, facts)
    if sizes is None:
        return Volume(NOTHING_KNOWN)
    likely = sqrt(sizes.shortest * sizes.longest)
    return Volume(
        f"{sizes.basis} How long a call takes is unknown.",
        calls=PredictedTotal(count, count, None),
        input_tokens=PredictedTotal(count * sizes.prompt, count * sizes.prompt, None),
        output_tokens=PredictedTotal(count * likely, count * sizes.shortest, count * sizes.longest),
    )


def volume_from_past(planned: PlannedRun, count: int, past: Sequence[PastRollout], basis: str) -> Volume:
    counted = [each.calls for each in past if each.calls]
    seconds = predict_total([each.seconds for each in past], count)
    longest = max(each.seconds for each in past) if count else 0.0
    wall = raise_total(scale_total(seconds, 1 / count_at_once(planned.settings, count)), longest)
    return Volume(
        basis,
        calls=predict_total(counted, count) if counted else None,
        input_tokens=predict_total([each.usage.input_tokens for each in past], count),
        output_tokens=predict_total([each.usage.output_tokens for each in past], count),
        minutes=scale_total(wall, 1 / MINUTE),
    )


def count_at_once(settings: Mapping[str, Any], count: int) -> int:
    """Rollouts that are played at once."""
    most = settings.get("max_concurrent")
    if not isinstance(most, int):
        most = next(
            each.default for each in msgspec.structs.fields(EvalConfig) if each.name == "max_concurrent"
        )
    return max(1, min(most if most > 0 else UNLIMITED, count))


def guess_sizes(planned: PlannedRun, facts: Mapping[str, Any]) -> GuessedSizes | None:
    characters = facts.get("mean_prompt_characters")
    if not isinstance(characters, int | float):
        return None
    prompt = round(characters / CHARACTERS_PER_TOKEN)
    longest = planned.settings.get("max_tokens") or LONG_REPLY_TOKENS
    shortest = min(SHORT_REPLY_TOKENS, longest)
    basis = (
        f"This environment was not played yet; {prompt} tokens of prompt and one reply of {shortest} "
        f"to {longest} tokens per rollout. Tools and further turns are not included."
    )
    return GuessedSizes(prompt, shortest, longest, basis)
