"""What the model answers in each environment: right, wrong and malformed, a different one each time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.interop.verifiers.answering import Message, tool_call

if TYPE_CHECKING:
    from tests.interop.verifiers.answering import Answers


def question(messages: list[Message]) -> str:
    return str(next(each["content"] for each in reversed(messages) if each["role"] == "user"))


def arithmetic(messages: list[Message]) -> Sequence[str]:
    first, second = map(int, re.findall(r"\d+", question(messages)))
    return (
        f"<think>easy</think>\n<answer>{first + second}</answer>",
        f"<answer>{first + second}</answer>",
        f"<think>a</think><think>b</think><answer>{first}</answer><answer>{first + second}</answer>",
        f"It is {first + second}.",
    )


def guessing(messages: list[Message]) -> Sequence[str]:
    turn = sum(each["role"] == "assistant" for each in messages)
    return (str(3 + turn), str(6 - turn), "no idea")


def calculator(messages: list[Message]) -> Sequence[str | Message]:
    if messages[-1]["role"] == "tool":
        result = messages[-1]["content"]
        return (f"It is {result}", "It cannot be done")
    asked = question(messages)
    if "add" in asked:
        return tool_call("add", {"a": 2, "b": 3}), "5, I think"
    if "divide" in asked:
        return tool_call("divide", {"a": 1, "b": 0}), tool_call("divide", {"a": 1, "b": 2})
    return ("fine", tool_call("unknown", {}))


def notebook(messages: list[Message]) -> Sequence[str | Message]:
    if messages[-1]["role"] == "tool":
        return ("Done.",)
    word = question(messages).rstrip(".").rpartition(" ")[2]
    return tool_call("write_note", {"text": word}), tool_call("write_note", {"text": "else"}), "No."


def doors(messages: list[Message]) -> Sequence[str]:
    return ("0", "2", "1", "stop") if len(messages) == 1 else ("1", "2")


def mixed(messages: list[Message]) -> Sequence[str]:
    word = question(messages).rpartition(" ")[2]
    return word.upper(), word.lower(), word


def diverse(messages: list[Message]) -> Sequence[str]:
    return ("pear", "pear", "pomegranate") if "fruit" in question(messages) else ("Rome", "Paris", "Rome")


def judged(messages: list[Message]) -> Sequence[str]:
    text = question(messages)
    blocks = re.findall(r"(?:```|<\w+>)\n(.*?)\n(?:```|</\w+>)", text, re.DOTALL)
    if blocks:  # the judge's prompt: question, right answer, response
        return ("yes" if blocks[1] in blocks[2] else "no",)
    return ("Paris", "It is Tokyo, I believe", "Rome or Paris")


def thinking(messages: list[Message]) -> Sequence[str]:
    number = int(re.findall(r"\d+", question(messages))[0])
    return (
        f"<think>hm</think> \\boxed{{{number / 2}}}",
        f"\\boxed{{\\frac{{{number}}}{{2}}}}",
        f"<think>hm</think> {number / 2}",
        "\\boxed{7}",
    )


SCRIPTS: dict[str, Answers] = {
    each.__name__: each
    for each in (arithmetic, guessing, calculator, notebook, doors, mixed, diverse, judged, thinking)
}
