"""What past runs show about an environment's tasks: never solved, always solved, answered alike, misleading.

Reads results; every statement says how much data is behind it. Knows nothing of playing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.checkup.finding import Finding
from proctor.checkup.near_duplicates import LONGEST_TEXT, find_near_duplicates
from proctor.checkup.tasks import MAX_TASKS_EXAMINED, Content, join_some
from proctor.contracts import PASS_THRESHOLD
from proctor.rollout import RolloutKey
from proctor.stats.discrimination import measure_discrimination
from proctor.stats.paired import holm
from proctor.stats.samples import all_agree
from proctor.store.folder import UNREADABLE, read_metadata
from proctor.store.traces import read_raw_lines
from proctor.task import TaskId
from proctor.trace import last_assistant_text, text_of

LEAST_RUNS = 5
"""For discrimination: with fewer runs, nothing could stand out."""
LEAST_COMMON_TASKS = 5
LONG_ANSWER = 8
"""How many words equal answers of different models need to be no coincidence."""
ERROR_RATE = 0.05


class AnsweredLine(msgspec.Struct, frozen=True):
    """The part of a stored rollout that shows how a task fares."""

    example_id: TaskId
    rollout: int
    task_hash: str = ""
    reward: float | None = None
    prompt: tuple[dict[str, Any], ...] = ()
    completion: tuple[dict[str, Any], ...] = ()


class PlayedTask:
    """One task over all runs."""

    def __init__(self, task: TaskId, prompt: str) -> None:
        self.id = task
        self.prompt = prompt
        self.rewards: dict[str, list[float]] = {}
        """By run."""
        self.passed: set[bool] = set()
        self.answers: dict[str, tuple[int, set[str]]] = {}
        """By a hash of the answer: its number of words, and the models that gave it."""

    @property
    def rollouts(self) -> int:
        return sum(map(len, self.rewards.values()))

    @property
    def models(self) -> set[str]:
        return {model for _, models in self.answers.values() for model in models}


class PlayedTasks(msgspec.Struct):
    """The tasks of several runs, by content."""

    tasks: dict[str, PlayedTask] = {}
    runs: list[str] = []
    left_out: int = 0
    """Tasks beyond those that are examined."""


def read_played(folders: Sequence[Path]) -> PlayedTasks:
    played = PlayedTasks()
    for folder in folders:
        read_run_into(played, folder)
    return played


def read_run_into(played: PlayedTasks, folder: Path) -> None:
    metadata = read_metadata(folder)
    model, run = str(metadata.get("model") or "?"), str(folder.resolve())
    value = metadata.get("pass_threshold")
    threshold = value if isinstance(value, (int, float)) else PASS_THRESHOLD
    decode = msgspec.json.Decoder(AnsweredLine).decode
    played.runs.append(run)
    seen: set[RolloutKey] = set()
    beyond: set[str] = set()
    for raw in read_raw_lines(folder):
        with suppress(*UNREADABLE):
            line = decode(raw)
            key = (line.example_id, line.rollout)
            if line.reward is None or key in seen:
                continue
            seen.add(key)
            name = line.task_hash or repr(line.example_id)
            if name not in played.tasks and len(played.tasks) >= MAX_TASKS_EXAMINED:
                beyond.add(name)
                continue
            task = played.tasks.get(name)
            if task is None:
                task = played.tasks[name] = PlayedTask(line.example_id, join_prompt(line.prompt))
            record_rollout(task, line, run, model, line.reward >= threshold)
    played.left_out += len(beyond)


def record_rollout(task: PlayedTask, line: AnsweredLine, run: str, model: str, passed: bool) -> None:
    assert line.reward is not None
    task.rewards.setdefault(run, []).append(line.reward)
    task.passed.add(passed)
    words = (last_assistant_text(line.completion) or "").lower().split()
    digest = hashlib.sha256(" ".join(words).encode(errors="replace")).hexdigest() if words else ""
    task.answers.setdefault(digest, (len(words), set()))[1].add(model)


def join_prompt(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(text_of(message) for message in messages)[:LONGEST_TEXT]


# Findings


def find_played_problems(played: PlayedTasks, content: Content | None) -> Iterator[Finding]:
    """Everything that stands out in the tasks that the environment still has."""
    tasks, gone = keep_present(played.tasks, content)
    if gone:
        yield Finding(
            "N523",
            f"{count_tasks(gone)} in the runs, but not in the environment now: task {join_ids(gone)}",
            tasks=list_ids(gone),
        )
    if played.left_out:
        yield Finding(
            "N523", f"{played.left_out:,} tasks of the runs are beyond the {MAX_TASKS_EXAMINED:,} examined"
        )
    if not tasks:
        return
    yield from find_constant(tasks)
    yield from find_same_answers(tasks)
    yield from find_duplicates(tasks)
    yield from find_negative(tasks, played.runs)


def keep_present(
    tasks: Mapping[str, PlayedTask], content: Content | None
) -> tuple[list[PlayedTask], list[PlayedTask]]:
    """The tasks that the environment has, and those it has no more; all count if its tasks are unknown."""
    if content is None:
        return list(tasks.values()), []
    known = {name for each in content for name in each}
    present = [task for name, task in tasks.items() if name in known]
    return present, [task for name, task in tasks.items() if name not in known]


def find_constant(tasks: Sequence[PlayedTask]) -> Iterator[Finding]:
    failed = [task for task in tasks if task.passed == {False}]
    if failed:
        yield name_tasks("W511", "never solved", failed, f"; {bound_rate(failed, 'pass')}")
    constant = [task for task in tasks if task.passed == {True} and has_one_reward(task)]
    if constant:
        yield name_tasks(
            "N521",
            "given the same passing reward in every rollout",
            constant,
            f"; {bound_rate(constant, 'fail')}",
        )
    middle = [task for task in failed if task.rollouts > 1 and has_one_reward(task) and not is_zero(task)]
    if middle:
        yield name_tasks("N521", "given the same reward, neither passing nor 0, in every rollout", middle)


def has_one_reward(task: PlayedTask) -> bool:
    return all_agree([reward for rewards in task.rewards.values() for reward in rewards])


def is_zero(task: PlayedTask) -> bool:
    return all(reward == 0 for rewards in task.rewards.values() for reward in rewards)


def bound_rate(tasks: Sequence[PlayedTask], does: str) -> str:
    """What the task with the fewest rollouts may still do: the one-sided 95 % bound for a rate never seen."""
    fewest = min(task.rollouts for task in tasks)
    bound = 1 - ERROR_RATE ** (1 / fewest)
    times = "once" if fewest == 1 else f"{fewest} times"
    return f"played {times} or more, a task may still {does} up to {bound:.0%} of the time"


def find_same_answers(tasks: Sequence[PlayedTask]) -> Iterator[Finding]:
    """Tasks to which several models always gave one answer."""
    same = [
        task for task in tasks if len(task.answers) == 1 and "" not in task.answers and len(task.models) > 1
    ]
    wrong = [task for task in same if task.passed == {False}]
    long = [task for task in same if task not in wrong and answer_words(task) >= LONG_ANSWER]
    if wrong:
        yield name_tasks("W515", "given one and the same answer by all models, which fails", wrong)
    if long:
        yield name_tasks("W512", "answered by all models word for word the same", long)


def answer_words(task: PlayedTask) -> int:
    return next(iter(task.answers.values()))[0]


def find_duplicates(tasks: Sequence[PlayedTask]) -> Iterator[Finding]:
    pairs = find_near_duplicates([task.prompt for task in tasks])
    if not pairs:
        return
    shown = ", ".join(
        f"{tasks[one].id!r} and {tasks[other].id!r} ({likeness:.0%})" for one, other, likeness in pairs[:3]
    )
    more = f" and {len(pairs) - 3:,} more" if len(pairs) > 3 else ""
    indexes = sorted({index for one, other, _ in pairs for index in (one, other)})
    words = "1 pair of tasks is" if len(pairs) == 1 else f"{len(pairs):,} pairs of tasks are"
    yield Finding(
        "W513", f"{words} nearly the same: {shown}{more}", tasks=list_ids([tasks[each] for each in indexes])
    )


def find_negative(tasks: Sequence[PlayedTask], runs: Sequence[str]) -> Iterator[Finding]:
    common = [task for task in tasks if len(task.rewards) == len(runs)]
    if len(runs) < LEAST_RUNS or len(common) < LEAST_COMMON_TASKS:
        yield Finding(
            "N522",
            f"whether better models do better on a task needs {LEAST_RUNS} runs with {LEAST_COMMON_TASKS} "
            f"tasks in common; --with names {len(runs)} with {len(common):,}",
        )
        return
    table = [[sum(task.rewards[run]) / len(task.rewards[run]) for task in common] for run in runs]
    measured = [
        (task, each.correlation, each.p_negative)
        for task, each in zip(common, measure_discrimination(table), strict=True)
    ]
    varying = [(task, r, p) for task, r, p in measured if r is not None and p is not None]
    adjusted = holm([p for _, _, p in varying])
    negative = [task for (task, r, _), p in zip(varying, adjusted, strict=True) if r < 0 and p < ERROR_RATE]
    if negative:
        yield name_tasks(
            "W514", f"solved less by the runs that do better otherwise, of {len(runs)} runs", negative
        )
    unsure = sum(r < 0 for _, r, _ in varying) - len(negative)
    if unsure:
        yield Finding(
            "N522",
            f"{unsure:,} of {len(varying):,} tasks that vary correlate negatively with the rest, which "
            f"{len(runs)} runs may show by chance",
        )


def name_tasks(code: str, what: str, tasks: Sequence[PlayedTask], more: str = "") -> Finding:
    return Finding(code, f"{count_tasks(tasks)} {what}: task {join_ids(tasks)}{more}", tasks=list_ids(tasks))


def count_tasks(tasks: Sequence[PlayedTask]) -> str:
    return "1 task is" if len(tasks) == 1 else f"{len(tasks):,} tasks are"


def join_ids(tasks: Sequence[PlayedTask]) -> str:
    return join_some([repr(task.id) for task in tasks])


def list_ids(tasks: Sequence[PlayedTask]) -> tuple[TaskId, ...]:
    return tuple(task.id for task in tasks)
