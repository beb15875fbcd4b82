"""What the model says to each task of this folder: answers that earn different rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.interop.verifiers.answering import Answers, Message, tool_call


def sums(_: list[Message]) -> Sequence[str | Message]:
    return ["The sum is 3", "It is\n\n5", "<think>seven?</think>The number is 7", "I do not know"]


def letters(_: list[Message]) -> Sequence[str | Message]:
    return ["ANSWER: B", "ANSWER: C", "B, I think"]


def facts(_: list[Message]) -> Sequence[str | Message]:
    return [
        "Paris",
        "Somewhere in France, please",
        {"role": "assistant", "content": "Roma", "reasoning_content": "The capital of Italy."},
        "ANSWER: Rome",
    ]


def calculator(messages: list[Message]) -> Sequence[str | Message]:
    if messages[-1]["role"] == "tool":
        return [f"It is {messages[-1]['content']}", "Some number"]
    first, _, second = messages[-1]["content"].partition(" times ")
    given = {"a": int(first), "b": int(second.rstrip("?"))}
    return [tool_call("multiply", given), tool_call("multiply", {"a": 2000, "b": 1}), "I would say 42."]


def agent(messages: list[Message]) -> Sequence[str | Message]:
    if messages[-1]["role"] == "tool":
        return [tool_call("submit", {"answer": messages[-1]["content"]})]
    asked = next(each["content"] for each in messages if " times " in each["content"])
    first, _, second = asked.partition(" times ")
    given = {"a": int(first), "b": int(second.rstrip("?"))}
    return [tool_call("multiply", given), tool_call("submit", {"answer": "41"}), "Let me think."]


def essays(messages: list[Message]) -> Sequence[str | Message]:
    if "GRADE" not in messages[-1]["content"]:
        return ["Three is a prime.", "A fine number."]
    return ["GRADE: C"] if "Three" in messages[-1]["content"] else ["Half of it. GRADE: P", "GRADE: I"]


def write(messages: list[Message]) -> Sequence[str | Message]:
    if messages[-1]["role"] == "tool":
        return ["Done."]
    commands = ("cp question.txt answer.txt", "echo bye > answer.txt", "cat question.txt")
    return [tool_call("bash", {"command": command}) for command in commands]


SCRIPTS: dict[str, Answers | Any] = {
    "arithmetic.py": sums,
    "quiz.py@letters": letters,
    "quiz.py@facts": facts,
    "tools.py@calculator": calculator,
    "tools.py@agent": agent,
    "judged.py": essays,
    "shell.py": write,
}
