"""Texts that are nearly the same: the share of three-word sequences that two have in common.

Exact, and fast because two similar texts must share one of their rarest sequences. What most texts share,
such as instructions that come with every task, does not count. Knows nothing of tasks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import ceil

SIMILAR = 0.8
"""Share of sequences in common, of all that either has."""
WORDS_IN_SEQUENCE = 3
COMMON = 0.5
"""A sequence in more than this share of the different texts belongs to none of them."""
LONGEST_TEXT = 20_000
"""Characters of a text that are compared."""
MOST_COMPARED = 200_000
"""Pairs that are compared; beyond that, the rest is left out."""

Sequences = frozenset[tuple[str, ...]]


def find_near_duplicates(texts: Sequence[str], similar: float = SIMILAR) -> list[tuple[int, int, float]]:
    """Pairs of places whose texts are similar but not equal, with how similar they are; the most similar
    first."""
    split = {text: split_sequences(text) for text in texts}
    counts = Counter(sequence for sequences in split.values() for sequence in sequences)
    shared = {sequence for sequence, count in counts.items() if count > max(2, COMMON * len(split))}
    own = [split[text] - shared for text in texts]
    found: list[tuple[int, int, float]] = []
    holders: dict[tuple[str, ...], list[int]] = {}
    compared = 0
    for index, sequences in enumerate(own):
        if not sequences:
            continue
        rarest = sorted(sequences, key=lambda sequence: (counts[sequence], sequence))
        prefix = rarest[: len(rarest) - ceil(similar * len(rarest)) + 1]
        for other in sorted({each for sequence in prefix for each in holders.get(sequence, ())}):
            compared += 1
            likeness = measure_likeness(sequences, own[other])
            if likeness >= similar and texts[index] != texts[other]:
                found.append((other, index, likeness))
        for sequence in prefix:
            holders.setdefault(sequence, []).append(index)
        if compared > MOST_COMPARED:
            break
    return sorted(found, key=lambda pair: -pair[2])


def split_sequences(text: str) -> Sequences:
    words = re.findall(r"\w+", text[:LONGEST_TEXT].lower())
    if len(words) < WORDS_IN_SEQUENCE:
        return frozenset((tuple(words),)) if words else frozenset()
    starts = range(len(words) - WORDS_IN_SEQUENCE + 1)
    return frozenset(tuple(words[start : start + WORDS_IN_SEQUENCE]) for start in starts)


def measure_likeness(one: Sequences, other: Sequences) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common)
