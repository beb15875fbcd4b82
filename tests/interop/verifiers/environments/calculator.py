"""Tools: functions of the author that the model calls, one of which fails."""

import verifiers as vf
from datasets import Dataset


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


async def divide(a: float, b: float) -> str:
    """Divide one number by another."""
    return str(a / b)


def mentions(completion, answer) -> float:
    return float(answer in (completion[-1]["content"] or ""))


def used_tools(completion) -> float:
    return float(sum(len(each.get("tool_calls") or []) for each in completion if each["role"] == "assistant"))


def load_environment() -> vf.Environment:
    rows = [
        {"question": "Use add on 2 and 3.", "answer": "5"},
        {"question": "Use divide on 1 and 0.", "answer": "cannot"},
        {"question": "Use nothing.", "answer": "fine"},
    ]
    rubric = vf.Rubric(funcs=[mentions], weights=[1.0])
    rubric.add_metric(used_tools)
    return vf.ToolEnv(
        dataset=Dataset.from_list(rows),
        tools=[add, divide],
        rubric=rubric,
        max_turns=3,
        stop_errors=[vf.ToolParseError],
    )
