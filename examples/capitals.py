"""Capitals: a first environment. One question per task, one reward function, one metric.

proctor eval run examples/capitals.py -m local -n 5 -r 3 -t 16
"""

from __future__ import annotations

from proctor import Rubric, SingleTurnEnv
from proctor.trace import Message, text_of

CAPITALS = {
    "France": "Paris",
    "Japan": "Tokyo",
    "Canada": "Ottawa",
    "Egypt": "Cairo",
    "Australia": "Canberra",
    "Germany": "Berlin",
    "Kenya": "Nairobi",
    "Italy": "Rome",
    "Turkey": "Ankara",
    "Peru": "Lima",
    "Norway": "Oslo",
    "Brazil": "Brasília",
}


def names_the_city(completion: list[Message], answer: str) -> float:
    return float(answer.lower() in text_of(completion[-1]).lower())


def words(completion: list[Message]) -> float:
    return float(len(text_of(completion[-1]).split()))


def load_environment() -> SingleTurnEnv:
    rows = [
        {"question": f"What is the capital city of {country}? Answer in English.", "answer": city}
        for country, city in CAPITALS.items()
    ]
    rubric = Rubric(names_the_city)
    rubric.add_metric(words)
    return SingleTurnEnv(rows, rubric=rubric, sampling_args={"max_tokens": 16})
