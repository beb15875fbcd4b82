"""The echo environment: rewards a model that repeats its prompt. For tests and demos."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.env.dataset import Row
from proctor.env.multi_turn import SingleTurnEnv
from proctor.env.rubric import Rubric
from proctor.trace import Message, text_of


def repeats(completion: list[Message], answer: str) -> float:
    return float(bool(completion) and text_of(completion[-1]).strip() == answer)


class EchoEnvironment(SingleTurnEnv):
    """Each text is a task; the right answer is the text itself."""

    def __init__(self, *texts: str) -> None:
        rows = [{"question": text, "answer": text} for text in texts]
        super().__init__(rows, rubric=Rubric(repeats), name="echo")


def load_environment(tasks: int = 100, lazy: bool = False) -> SingleTurnEnv:
    """`tasks` sentences to repeat; `lazy` generates them one by one, hiding how many there are."""
    if lazy:
        return SingleTurnEnv(lambda: rows(tasks), rubric=Rubric(repeats), name="echo")
    return SingleTurnEnv(lambda: list(rows(tasks)), rubric=Rubric(repeats), name="echo")


def rows(count: int) -> Iterator[Row]:
    return ({"question": f"say {number}", "answer": f"say {number}"} for number in range(count))
