r"""Well-known datasets as questions and answers, and what authors need to read their answers.

The datasets come from the Hugging Face Hub, by the package `datasets` (extra `hf`). Knows nothing of
environments.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from proctor.env.parsers import extract_boxed_answer as extract_boxed_answer
from proctor.env.parsers import extract_hash_answer as extract_hash_answer
from proctor.errors import ConfigError, did_you_mean

BOXED_SYSTEM_PROMPT = r"Reason step by step, then write your final answer inside \boxed{}."
THINK_BOXED_SYSTEM_PROMPT = (
    r"Reason step by step between <think> and </think>, then write your final answer inside \boxed{}."
)

Row = Mapping[str, Any]


class ExampleDataset(NamedTuple):
    """Where a dataset is on the Hub, and how a row of it becomes a question and an answer."""

    path: str
    configs: tuple[str | None, ...]
    """Several are concatenated."""
    split: str
    convert: Callable[[Row], dict[str, Any]]
    keep: Callable[[Row], bool] | None = None


def load_example_dataset(
    name: str = "gsm8k", split: str | None = None, n: int | None = None, seed: int = 0
) -> Any:
    """A dataset with `question` and `answer`: all of a split, or `n` rows chosen by the seed."""
    if name not in EXAMPLES:
        raise ConfigError(f"There is no example dataset {name!r}{did_you_mean(name, EXAMPLES)}")
    try:
        from datasets import concatenate_datasets, load_dataset
    except ImportError as error:
        raise ConfigError("Example datasets need the package datasets: pip install 'proctor[hf]'.") from error
    known = EXAMPLES[name]
    parts = [load_dataset(known.path, config, split=split or known.split) for config in known.configs]
    dataset = parts[0] if len(parts) == 1 else concatenate_datasets(parts)
    if known.keep is not None:
        dataset = dataset.filter(known.keep)
    if n is not None and n > 0:
        dataset = dataset.shuffle(seed=seed).select(range(n))
    return dataset.map(known.convert, remove_columns=dataset.column_names)


def strip_non_numeric(text: str) -> str:
    """Only the digits and points of a text."""
    return "".join(letter for letter in text if letter.isdigit() or letter == ".")


def copy_fields(question: str, answer: str = "answer") -> Callable[[Row], dict[str, Any]]:
    return lambda row: {"question": row[question], "answer": row[answer]}


def format_choices(question: str, options: list[str]) -> str:
    lines = (f"{letter}: {option}" for letter, option in zip(string.ascii_uppercase, options, strict=False))
    return f"Question: {question}\n\n" + "\n".join(lines)


def convert_mmlu(row: Row) -> dict[str, Any]:
    question = format_choices(row["question"], row["choices"])
    return {"question": question, "answer": string.ascii_uppercase[row["answer"]]}


def convert_mmlu_pro(row: Row) -> dict[str, Any]:
    return {"question": format_choices(row["question"], row["options"]), "answer": row["answer"]}


def convert_openbookqa(row: Row) -> dict[str, Any]:
    choices = row["choices"]
    lines = (f"{label}. {text}" for label, text in zip(choices["label"], choices["text"], strict=True))
    question = f"Question: {row['question_stem']}\n\nChoices:\n" + "\n".join(lines)
    return {"question": question, "answer": row["answerKey"]}


def convert_gpqa(row: Row) -> dict[str, Any]:
    """The choices in an order that depends on the question alone, so that every run has the same."""
    wrong = [row[f"Incorrect Answer {number}"] for number in (1, 2, 3)]
    options = [row["Correct Answer"], *wrong]
    order = random.Random(row["Question"]).sample(range(4), 4)
    question = format_choices(row["Question"], [options[index] for index in order])
    return {"question": question, "answer": string.ascii_uppercase[order.index(0)]}


def is_level(level: str) -> Callable[[Row], bool]:
    return lambda row: row["level"] == level


EXAMPLES: dict[str, ExampleDataset] = {
    "aime2024": ExampleDataset(
        "HuggingFaceH4/aime_2024",
        (None,),
        "train",
        lambda row: {"question": row["problem"], "answer": str(int(row["answer"]))},
    ),
    "aime2025": ExampleDataset(
        "opencompass/AIME2025",
        ("AIME2025-I", "AIME2025-II"),
        "test",
        lambda row: {"question": row["question"], "answer": strip_non_numeric(row["answer"])},
    ),
    "amc2023": ExampleDataset("knoveleng/AMC-23", (None,), "train", copy_fields("problem")),
    "gpqa_diamond": ExampleDataset("Idavidrein/gpqa", ("gpqa_diamond",), "train", convert_gpqa),
    "gpqa_main": ExampleDataset("Idavidrein/gpqa", ("gpqa_main",), "train", convert_gpqa),
    "gsm8k": ExampleDataset(
        "openai/gsm8k",
        ("main",),
        "test",
        lambda row: {"question": row["question"], "answer": extract_hash_answer(row["answer"])},
    ),
    "math": ExampleDataset(
        "chiayewken/competition_math",
        (None,),
        "train",
        lambda row: {"question": row["problem"], "answer": extract_boxed_answer(row["solution"])},
    ),
    "math500": ExampleDataset("HuggingFaceH4/MATH-500", (None,), "test", copy_fields("problem")),
    "mmlu": ExampleDataset("cais/mmlu", ("all",), "dev", convert_mmlu),
    "mmlu_pro": ExampleDataset("TIGER-Lab/MMLU-Pro", (None,), "validation", convert_mmlu_pro),
    "openbookqa": ExampleDataset("allenai/openbookqa", ("main",), "train", convert_openbookqa),
    "openrs": ExampleDataset("knoveleng/open-rs", (None,), "train", copy_fields("problem")),
    "openrs_easy": ExampleDataset(
        "knoveleng/open-rs", (None,), "train", copy_fields("problem"), is_level("Easy")
    ),
    "openrs_hard": ExampleDataset(
        "knoveleng/open-rs", (None,), "train", copy_fields("problem"), is_level("Hard")
    ),
}
