"""Count letters: templates that ask on one line and score on the next.

proctor eval run examples/letters.py -m local --all -t 64
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from proctor import Environment, combine, contains, numeric

env = Environment("letters", version="1.0.0")


@env.tool
def spell(word: str) -> str:
    """Spell a word, one letter after the other.

    Args:
        word: The word to spell.
    """
    if not word.isalpha():
        raise ValueError(f"{word!r} is not one word")
    return " ".join(word)


@env.template()
async def count(word: str, letter: str = "r") -> AsyncGenerator[Any, str]:
    """How often a letter stands in a word; the agent may spell it first."""
    answer = yield f"How many times does the letter {letter!r} appear in {word!r}? End with the number."
    yield numeric(answer, word.count(letter))


@env.template()
async def longest(words: list[str]) -> AsyncGenerator[Any, str]:
    """Two questions in a row, scored together."""
    chosen = max(words, key=len)
    first = yield [
        {"role": "system", "content": "Answer in as few words as possible."},
        {"role": "user", "content": f"Which of these words is the longest: {', '.join(words)}?"},
    ]
    second = yield "How many letters does it have?"
    yield combine(
        contains(first, chosen, whole_words=True, name="word", weight=2),
        numeric(second, len(chosen), name="length"),
    )


tasks = [
    count(word="strawberry").with_slug("strawberry"),
    count(word="banana", letter="a").with_slug("banana"),
    longest(words=["pear", "apple", "plum"]).with_slug("fruit"),
]
