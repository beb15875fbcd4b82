"""A group reward: the rollouts of a task are compared with each other."""

import verifiers as vf
from datasets import Dataset


def distinct(completions) -> list[float]:
    texts = [completion[-1]["content"] for completion in completions]
    return [1.0 / texts.count(text) for text in texts]


def short(completion) -> float:
    return float(len(completion[-1]["content"]) < 6)


def load_environment() -> vf.Environment:
    rows = [{"question": f"Name a {thing}.", "answer": ""} for thing in ("fruit", "city")]
    rubric = vf.Rubric(funcs=[distinct, short], weights=[1.0, 0.25])
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=rubric)
