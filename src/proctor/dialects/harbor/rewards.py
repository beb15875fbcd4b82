"""Rewards as Harbor's tests write them: `reward.json`, or else `reward.txt`. Knows nothing of containers."""

from __future__ import annotations

import json
import math
from typing import Any

from proctor.errors import GraderError
from proctor.rollout import Score

REWARD = "reward"


def read_score(json_text: str | None, plain_text: str | None, output: str) -> Score:
    """The score; GraderError, with what the tests printed, if there is none."""
    if json_text is not None:
        return score_of(parse_json(json_text))
    if plain_text is not None:
        return Score(parse_number(plain_text))
    printed = f"; it printed: {output.strip()[-1000:]}" if output.strip() else ""
    raise GraderError(f"tests/test.sh wrote neither reward.json nor reward.txt in /logs/verifier{printed}")


def score_of(rewards: dict[str, float]) -> Score:
    """The value called `reward`, or the only one; several others count alike."""
    reward = rewards.get(REWARD, sum(rewards.values()) / len(rewards))
    return Score(reward, {name: value for name, value in rewards.items() if name != REWARD})


def parse_json(text: str) -> dict[str, float]:
    try:
        given: Any = json.loads(text)
    except ValueError as error:
        raise GraderError(f"/logs/verifier/reward.json is not JSON: {error}") from error
    values = given if isinstance(given, dict) else {REWARD: given}
    if not values:
        raise GraderError("/logs/verifier/reward.json holds no reward")
    for name, value in values.items():
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise GraderError(f"{name} in /logs/verifier/reward.json is {value!r}, which is not a number")
    return {str(name): float(value) for name, value in values.items()}


def parse_number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise GraderError(f"/logs/verifier/reward.txt holds {text.strip()[:100]!r}, which is not a number")
    return value
