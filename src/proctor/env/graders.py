"""Graders that compose: each returns a Subscore, and `combine` turns several into a Score.

    yield combine(exact(answer, "Paris", weight=2), contains(answer, "Seine"))

They look at text and numbers only. Knows nothing of models, sessions or templates.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from proctor.env.numbers import numbers_in, read_number
from proctor.env.rewards import short_repr
from proctor.errors import GraderError
from proctor.rollout import Score, Subscore, require_finite_number
from proctor.workspaces.shell import shell

__all__ = [
    "all_of",
    "any_of",
    "combine",
    "contains",
    "contains_all",
    "contains_any",
    "exact",
    "f1",
    "numeric",
    "part",
    "shell",
]

Texts = str | Sequence[str]

# Text


def exact(
    answer: str,
    expected: Texts,
    *,
    ignore_case: bool = True,
    ignore_space: bool = True,
    ignore_punctuation: bool = False,
    name: str = "exact",
    weight: float = 1.0,
) -> Subscore:
    """1.0 if the answer is the expected text, or one of several."""

    def simple(text: str) -> str:
        return normalize_text(text, ignore_case, ignore_space, ignore_punctuation)

    right = simple(answer) in {simple(each) for each in as_texts(expected)}
    note = "" if right else f"expected {short_repr(expected)}, got {short_repr(answer)}"
    return Subscore(name, float(right), weight, note)


def contains(
    answer: str,
    wanted: str,
    *,
    ignore_case: bool = True,
    whole_words: bool = False,
    name: str = "contains",
    weight: float = 1.0,
) -> Subscore:
    """1.0 if the answer contains the text."""
    return contains_all(
        answer, [wanted], ignore_case=ignore_case, whole_words=whole_words, name=name, weight=weight
    )


def contains_any(
    answer: str,
    wanted: Iterable[str],
    *,
    ignore_case: bool = True,
    whole_words: bool = False,
    name: str = "contains_any",
    weight: float = 1.0,
) -> Subscore:
    """1.0 if the answer contains one of the texts."""
    texts = as_texts(wanted)
    found = [text for text in texts if is_contained(text, answer, ignore_case, whole_words)]
    note = f"found {short_repr(found[0])}" if found else f"found none of {short_repr(texts)}"
    return Subscore(name, float(bool(found)), weight, note)


def contains_all(
    answer: str,
    wanted: Iterable[str],
    *,
    ignore_case: bool = True,
    whole_words: bool = False,
    name: str = "contains_all",
    weight: float = 1.0,
) -> Subscore:
    """1.0 if the answer contains all of the texts."""
    missing = [text for text in as_texts(wanted) if not is_contained(text, answer, ignore_case, whole_words)]
    return Subscore(name, float(not missing), weight, f"missing: {short_repr(missing)}" if missing else "")


def f1(answer: str, expected: Texts, *, name: str = "f1", weight: float = 1.0) -> Subscore:
    """Overlap of the answer's words with the expected ones, 0 to 1; the best if several are expected."""
    value = max(token_f1(count_words(answer), count_words(each)) for each in as_texts(expected))
    return Subscore(name, value, weight)


# Numbers


def numeric(
    answer: str,
    expected: float | str,
    *,
    tolerance: float = 1e-9,
    relative: float = 1e-9,
    pick: Literal["last", "first", "only"] = "last",
    name: str = "numeric",
    weight: float = 1.0,
) -> Subscore:
    """1.0 if the number in the answer is the expected one, within `tolerance` or `relative` to it.

    Of several numbers the last counts, or the first; with "only" there must be no other. `12%` is 0.12, in
    the answer as in `expected`.
    """
    wanted = read_number(expected) if isinstance(expected, str) else float(expected)
    if wanted is None:
        raise GraderError(f"numeric() expects {expected!r}, which is not a number")
    found = numbers_in(answer)
    if not found or (pick == "only" and len(found) > 1):
        counted = f"there are {len(found)} numbers" if found else "there is no number"
        return Subscore(name, 0.0, weight, f"{counted} in {short_repr(answer)}")
    number = found[0] if pick == "first" else found[-1]
    right = abs(number - wanted) <= max(tolerance, relative * abs(wanted))
    return Subscore(name, float(right), weight, "" if right else f"expected {wanted:g}, read {number:g}")


# Together


def combine(*parts: Subscore) -> Score:
    """Combine the parts into one reward. Weights are shares of the positive ones; negative ones subtract.

    Penalties take a reward no lower than 0. Every part is kept, and is a metric too.
    """
    checked = validate_parts(parts)
    total = positive_weight(checked)
    shares = tuple(msgspec.structs.replace(each, weight=each.weight / total) for each in checked)
    return Score(weighted_reward(checked), {each.name: each.value for each in shares}, shares)


def part(name: str, *parts: Subscore, weight: float = 1.0) -> Subscore:
    """A branch of the tree: several parts as one, under a name."""
    score = combine(*parts)
    return Subscore(name, score.reward, weight, parts=score.subscores)


def any_of(*parts: Subscore, name: str = "any", weight: float = 1.0) -> Subscore:
    """As good as the best of its parts; their weights do not matter."""
    checked = validate_parts(parts)
    return Subscore(name, max(each.value for each in checked), weight, parts=checked)


def all_of(*parts: Subscore, name: str = "all", weight: float = 1.0) -> Subscore:
    """As good as the worst of its parts; their weights do not matter."""
    checked = validate_parts(parts)
    return Subscore(name, min(each.value for each in checked), weight, parts=checked)


def weighted_reward(parts: Sequence[Subscore]) -> float:
    total = positive_weight(parts)
    earned = sum(each.weight * each.value for each in parts if each.weight > 0) / total
    taken = sum(-each.weight * each.value for each in parts if each.weight < 0) / total
    return max(earned - taken, min(earned, 0.0))


def positive_weight(parts: Sequence[Subscore]) -> float:
    total = sum(each.weight for each in parts if each.weight > 0)
    if total <= 0:
        raise GraderError("no part has a positive weight, so there is nothing to earn")
    return total


def validate_parts(parts: Sequence[Subscore]) -> tuple[Subscore, ...]:
    """The parts under distinct names; GraderError if one is not a subscore, or not a number."""
    if not parts:
        raise GraderError("there is nothing to combine; give at least one grader's result")
    seen: Counter[str] = Counter()
    named = []
    for each in parts:
        given: object = each
        if not isinstance(given, Subscore):
            hint = "; await it first" if hasattr(given, "__await__") else ""
            raise GraderError(f"{short_repr(given)} is not the result of a grader{hint}")
        require_finite_number(each.value, f"grader {each.name!r}")
        require_finite_number(each.weight, f"the weight of {each.name!r}")
        seen[each.name] += 1
        again = seen[each.name]
        named.append(each if again == 1 else msgspec.structs.replace(each, name=f"{each.name}_{again}"))
    return tuple(named)


# Words


def normalize_text(text: str, ignore_case: bool, ignore_space: bool, ignore_punctuation: bool) -> str:
    text = unicodedata.normalize("NFKC", text)
    if ignore_punctuation:
        text = "".join(letter for letter in text if not unicodedata.category(letter).startswith("P"))
    if ignore_space:
        text = " ".join(text.split())
    return text.casefold() if ignore_case else text


def is_contained(wanted: str, answer: str, ignore_case: bool, whole_words: bool) -> bool:
    wanted, answer = (normalize_text(text, ignore_case, True, False) for text in (wanted, answer))
    if not whole_words:
        return wanted in answer
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", answer) is not None


def count_words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", normalize_text(text, True, True, False)))


def token_f1(answer: Counter[str], expected: Counter[str]) -> float:
    if not answer or not expected:
        return float(answer == expected)
    shared = (answer & expected).total()
    return 2.0 * shared / (answer.total() + expected.total())


def as_texts(texts: str | Iterable[str]) -> list[str]:
    listed = [texts] if isinstance(texts, str) else list(texts)
    if not listed:
        raise GraderError("a grader was given no text to compare with")
    return listed
