"""Shortest: rollouts of one task compared with each other. A group function sees them all at once.

proctor eval run examples/shortest.py -m local -n 2 -r 3 -t 32
"""

from __future__ import annotations

from proctor import Rubric, SingleTurnEnv
from proctor.trace import Message, text_of


def shorter_than_the_others(completions: list[list[Message]]) -> list[float]:
    """1 for the shortest answer of the group, 0 for the longest."""
    lengths = [len(text_of(completion[-1])) for completion in completions]
    longest, shortest = max(lengths), min(lengths)
    spread = (longest - shortest) or 1
    return [(longest - length) / spread for length in lengths]


def answers(completion: list[Message]) -> float:
    return float(bool(text_of(completion[-1]).strip()))


def load_environment() -> SingleTurnEnv:
    rows = [
        {"question": "Why is the sky blue? Be brief."},
        {"question": "What is a mortgage? Be brief."},
        {"question": "How do birds fly? Be brief."},
    ]
    rubric = Rubric(shorter_than_the_others, answers, weights=[0.5, 0.5])
    return SingleTurnEnv(rows, rubric=rubric, sampling_args={"max_tokens": 24})
