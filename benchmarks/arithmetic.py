"""The environment that is measured: one question, one answer, two ordinary reward functions."""

from __future__ import annotations

from proctor import Rubric, SingleTurnEnv


def correct(completion: list[dict[str, str]], answer: str) -> float:
    return float(answer in completion[-1]["content"])


def brevity(completion: list[dict[str, str]]) -> float:
    return float(len(completion[-1]["content"]) < 40)


def load_environment(tasks: int = 1_000_000) -> SingleTurnEnv:
    rows = ({"question": f"What is 2+2? (#{number})", "answer": "4"} for number in range(tasks))
    return SingleTurnEnv(rows, rubric=Rubric(correct, brevity, weights=[1.0, 0.1]))
