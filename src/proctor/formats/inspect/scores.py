"""Inspect's scores as numbers: what Inspect's own metrics would make of each value.

Knows nothing of samples or files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proctor.errors import ConfigError, did_you_mean
from proctor.formats.foreign_run import is_number
from proctor.rollout import is_score

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def as_number(value: Any) -> float | None:
    """A score's value as a number; None if Inspect's metrics could not use it either."""
    if isinstance(value, str):
        known = LETTERS.get(value, WORDS.get(value.lower()))
        return known if known is not None else parse_number(value)
    return float(value) if is_number(value) and is_score(value) else None


def parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if is_number(number) and is_score(number) else None


def flatten_scores(scores: Mapping[str, Any]) -> dict[str, float]:
    """Each score by its scorer's name; the parts of one that is a dictionary as `scorer.part`."""
    return dict(iterate_numbers(scores))


def iterate_numbers(scores: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else None
        parts = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for part, number in parts:
            found = as_number(number)
            if found is not None:
                yield f"{scorer}.{part}", found
        found = as_number(value)
        if found is not None:
            yield scorer, found


def choose_reward_name(headline: str, scorers: Sequence[str], wanted: str | None, names: set[str]) -> str:
    """Which score is the reward: the wanted one, else Inspect's headline, else the first scorer's."""
    if wanted is not None:
        if wanted not in names:
            raise ConfigError(f"No score {wanted!r} in this log{did_you_mean(wanted, names)}")
        return wanted
    candidates = [name for name in (headline, *scorers) if name in names]
    if candidates:
        return candidates[0]
    if len(names) == 1:
        return next(iter(names))
    if not names:
        return ""
    listed = ", ".join(sorted(names))
    raise ConfigError(f"This log has several scores and none that leads; choose one with --reward: {listed}.")
