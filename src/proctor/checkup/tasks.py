"""Are the tasks sound: distinct, the same every time, and not giving their answers away?

Knows nothing of playing them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from proctor.checkup.finding import Finding
from proctor.env.gold import answer_text
from proctor.task import Task
from proctor.trace import text_of

MAX_TASKS_EXAMINED = 2000
"""How many tasks of an endless dataset are examined."""
MAX_NAMES_LISTED = 3
"""So many examples are named in a finding."""
MAX_ANSWERS_COMPARED = 20
"""How many other tasks' answers a prompt is compared with."""

Content = list[tuple[str, str]]
"""Of each task its id, as it is written, and its hash."""


def task_contents(tasks: Sequence[Task]) -> Content:
    return [(repr(task.id), task.hash) for task in tasks]


def find_task_problems(tasks: Sequence[Task]) -> Iterator[Finding]:
    if not tasks:
        yield Finding("E202", "the environment has no tasks")
        return
    if twice := find_repeated([repr(task.id) for task in tasks]):
        yield Finding("E203", f"several tasks have the id {join_some(twice)}")
    if silent := [repr(task.id) for task in tasks if not has_question(task)]:
        yield Finding(
            "E205", f"{describe_share(silent, tasks)} no text in the prompt: task {join_some(silent)}"
        )
    if same := find_repeated([task.hash for task in tasks]):
        first = next(repr(task.id) for task in tasks if task.hash == same[0])
        yield Finding("W212", f"{len(same)} tasks occur more than once, such as task {first}")
    if leaking := [repr(task.id) for task in tasks if leaks_answer(task, tasks)]:
        yield Finding(
            "W211", f"{describe_share(leaking, tasks)} the answer in the prompt: task {join_some(leaking)}"
        )


def find_content_change(before: Content, after: Content, when: str) -> Finding | None:
    """What changed between two loads, if anything did."""
    if before == after:
        return None
    if len(before) != len(after):
        return Finding("E204", f"{when} there are {len(after)} tasks instead of {len(before)}")
    index = next(number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1])
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    return Finding(
        "E204",
        f"{when} {changed} of {len(before)} tasks are others, the first at place {index} "
        f"(task {before[index][0]}); draw with a seed, and let no order depend on a set",
    )


def has_question(task: Task) -> bool:
    """Whether the prompt asks something: text, or another part, such as an image. What a template
    asks is not known before it is started."""
    if task.template:
        return True
    spoken = [message for message in task.prompt if message.get("role") != "system"]
    return any(text_of(message).strip() or has_other_parts(message) for message in spoken)


def has_other_parts(message: dict[str, object]) -> bool:
    parts = message.get("content")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and part.get("type") != "text" for part in parts
    )


def leaks_answer(task: Task, tasks: Sequence[Task]) -> bool:
    """Whether the prompt holds the right answer, and not just all the answers there are to choose from."""
    answer = answer_text(task.answer).strip()
    prompt = "\n".join(text_of(message) for message in task.prompt)
    if not answer or not contains_words(prompt, answer):
        return False
    others = {answer_text(other.answer).strip() for other in tasks[:MAX_ANSWERS_COMPARED]} - {answer, ""}
    return not any(contains_words(prompt, other) for other in others)


def contains_words(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def find_repeated(values: Sequence[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def describe_share(some: Sequence[str], every: Sequence[Task]) -> str:
    return f"{len(some)} of {len(every)} tasks {'has' if len(some) == 1 else 'have'}"


def join_some(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMES_LISTED
    return ", ".join(names[:MAX_NAMES_LISTED]) + (f" and {more} more" if more > 0 else "")
