"""An index of a run's rollouts in memory: columns of small values, which grow as rows arrive.

Each row gets a slot, in order of arrival. Of two rows of one rollout the first that is settled counts, as
when a run is resumed; the slot of the other is dropped. A hundred thousand rollouts take about 30 MB.
Functions over an index hold its lock, because rows are added in another thread. Knows nothing of stores.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from threading import RLock
from typing import Any, TypeAlias, get_args

from proctor.api.rollout_list import RolloutEntry
from proctor.contracts import PASS_THRESHOLD
from proctor.reading.entries import KEY_DIGITS, EntryRecord, task_key
from proctor.report.limits import MOST_NAMES
from proctor.rollout import Outcome, is_settled
from proctor.task import TaskId

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
SEPARATOR = "\x1f"
"""Between a rollout's texts; entries have one-line texts without it."""
NUMBER_BITS = 31
HASH = re.compile(f"[0-9a-f]{{{KEY_DIGITS}}}")


class Words:
    """Texts that many entries share, by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.numbers: dict[str, int] = {}
        self.column = array("I")

    def append(self, text: str) -> None:
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = len(self.texts)
            self.texts.append(text)
        self.column.append(number)

    def of(self, slot: int) -> str:
        return self.texts[self.column[slot]]

    def find(self, texts: Iterable[str]) -> set[int]:
        return {self.numbers[text] for text in texts if text in self.numbers}


class MetricColumns:
    """The metrics of all entries: their names once per set of names, their values in one array. Of more names
    than a report tells apart, the first."""

    def __init__(self) -> None:
        self.shapes: list[tuple[str, ...]] = []
        self._numbers: dict[tuple[str, ...], int] = {}
        self._names: dict[str, None] = {}
        self.shape = array("I")
        self.start = array("Q")
        self.values = array("d")

    def append(self, metrics: dict[str, float]) -> None:
        for name in metrics:
            if len(self._names) < MOST_NAMES:
                self._names[name] = None
        names = tuple(name for name in metrics if name in self._names)
        number = self._numbers.get(names)
        if number is None:
            number = self._numbers[names] = len(self.shapes)
            self.shapes.append(names)
        self.shape.append(number)
        self.start.append(len(self.values))
        self.values.extend(metrics[name] for name in names)

    def of(self, slot: int) -> dict[str, float]:
        names, start = self.shapes[self.shape[slot]], self.start[slot]
        return dict(zip(names, self.values[start : start + len(names)], strict=True))

    def column(self, name: str) -> array[float]:
        """One metric of every slot; NaN where it has none."""
        at = [names.index(name) if name in names else -1 for names in self.shapes]
        values = self.values
        return array(
            "d",
            [
                values[start + at[shape]] if at[shape] >= 0 else math.nan
                for shape, start in zip(self.shape, self.start, strict=True)
            ],
        )

    @property
    def names(self) -> list[str]:
        return list(self._names)


class HiddenCosts:
    """The costs of rollouts, however many there are, for those who must not see them."""

    def __getitem__(self, slot: int) -> float:
        return math.nan


Costs: TypeAlias = "array[float] | HiddenCosts"


class RolloutIndex:
    """The entries of one run."""

    def __init__(self, pass_threshold: float = PASS_THRESHOLD) -> None:
        self.pass_threshold = pass_threshold
        self.lock = RLock()
        self.version = 0
        """Grows with every change."""
        self.complete = True
        """False while rows that are there already are still being read."""
        self.tasks: list[TaskId] = []
        self.keys = array("Q")
        self.hashes = array("Q")
        """Of the contents of tasks, for comparing them; 0 where there is none."""
        self.task = array("I")
        self.number = array("I")
        self.alive = bytearray()
        self.outcome = array("B")
        self.reward = array("d")
        self.seconds = array("d")
        self.started_at = array("d")
        self.cost: Costs = array("d")
        self.input_tokens = array("q")
        self.output_tokens = array("q")
        self.turns = array("I")
        self.attempts = array("I")
        self.error_kind, self.phase, self.location = Words(), Words(), Words()
        self.stop_condition, self.env = Words(), Words()
        self.metrics = MetricColumns()
        self.text = bytearray()
        self.text_end = array("Q")
        self.count = 0
        """Of the slots that count."""
        self._task_numbers: dict[TaskId, int] = {}
        self._slots: dict[int, int] = {}
        self._next_numbers: dict[int, int] = {}
        self._cached: dict[Any, Any] = {}

    # Growing

    def add(self, record: EntryRecord, *, replaces: bool = False) -> int | None:
        """The slot of a new row; None for a row of a rollout that another row stands for, unless the new one
        is known to replace it."""
        with self.lock:
            task = self._number_of_task(record.task, record.task_hash)
            name = task << NUMBER_BITS | record.number
            known = self._slots.get(name)
            if known is not None:
                if not replaces and (self.is_settled(known) or not record.settled):
                    return None
                self.alive[known] = 0
                self.count -= 1
            slot = self._slots[name] = len(self.alive)
            self._append(task, record)
            self.count += 1
            self.version += 1
            self._cached.clear()
            return slot

    def next_number(self, task: TaskId) -> int:
        """A number for the next rollout of a task, for rows that do not say theirs."""
        with self.lock:
            found = self._task_numbers.get(task)
            if found is None:
                return 0
            number = self._next_numbers.get(found, 0)
            while found << NUMBER_BITS | number in self._slots:
                number += 1
            self._next_numbers[found] = number
            return number

    def _number_of_task(self, task: TaskId, content: str) -> int:
        number = self._task_numbers.get(task)
        if number is None:
            number = self._task_numbers[task] = len(self.tasks)
            self.tasks.append(task)
            self.keys.append(int(task_key(task), 16))
            self.hashes.append(number_of_hash(content))
        return number

    def _append(self, task: int, record: EntryRecord) -> None:
        self.task.append(task)
        self.number.append(record.number)
        self.alive.append(1)
        self.outcome.append(OUTCOMES.index(record.outcome))
        self.reward.append(math.nan if record.reward is None else record.reward)
        self.seconds.append(record.seconds)
        self.started_at.append(record.started_at)
        if isinstance(self.cost, array):
            self.cost.append(math.nan if record.cost_usd is None else record.cost_usd)
        self.input_tokens.append(record.input_tokens)
        self.output_tokens.append(record.output_tokens)
        self.turns.append(record.turns)
        self.attempts.append(record.attempts)
        self.error_kind.append(record.error_kind)
        self.phase.append(record.phase)
        self.location.append(record.location)
        self.stop_condition.append(record.stop_condition)
        self.env.append(record.env)
        self.metrics.append(record.metrics)
        self.text += f"{record.error}{SEPARATOR}{record.preview}".encode()
        self.text_end.append(len(self.text))

    def without_costs(self) -> RolloutIndex:
        """The same rollouts for those who must not see what they cost."""
        with self.lock:
            other: RolloutIndex = self.get_or_build("without costs", self._copy_without_costs)
            other.complete = self.complete
            return other

    def _copy_without_costs(self) -> RolloutIndex:
        other = copy(self)
        other.cost = HiddenCosts()
        other._cached = {}
        return other

    # Reading

    def __len__(self) -> int:
        return self.count

    def entry(self, slot: int) -> RolloutEntry:
        task = self.task[slot]
        error, preview = self.texts(slot)
        return RolloutEntry(
            task=self.tasks[task],
            key=f"{self.keys[task]:016x}",
            number=self.number[slot],
            outcome=OUTCOMES[self.outcome[slot]],
            settled=self.is_settled(slot),
            reward=none_if_nan(self.reward[slot]),
            metrics=self.metrics.of(slot),
            seconds=self.seconds[slot],
            input_tokens=self.input_tokens[slot],
            output_tokens=self.output_tokens[slot],
            turns=self.turns[slot],
            cost_usd=none_if_nan(self.cost[slot]),
            error_kind=self.error_kind.of(slot),
            error=error,
            stop_condition=self.stop_condition.of(slot),
            started_at=self.started_at[slot],
            env=self.env.of(slot),
            attempts=self.attempts[slot],
            preview=preview,
        )

    def entries(self, slots: Iterable[int]) -> list[RolloutEntry]:
        with self.lock:
            return [self.entry(slot) for slot in slots]

    def is_settled(self, slot: int) -> bool:
        return is_settled(OUTCOMES[self.outcome[slot]], none_if_nan(self.reward[slot]))

    def texts(self, slot: int) -> Sequence[str]:
        """The error's message and the preview."""
        start = self.text_end[slot - 1] if slot else 0
        return self.text[start : self.text_end[slot]].decode().split(SEPARATOR, 1)

    def find_task(self, key: str) -> int | None:
        """The number of the task that a key stands for."""
        with self.lock:
            try:
                return self.keys.index(int(key, 16)) if len(key) == 16 else None
            except ValueError:
                return None

    def find_slot(self, key: str, number: int) -> int | None:
        with self.lock:
            task = self.find_task(key)
            return None if task is None else self._slots.get(task << NUMBER_BITS | number)

    def slots(self) -> Iterator[int]:
        """Those that count, in order of arrival."""
        if self.count == len(self.alive):
            return iter(range(len(self.alive)))
        return (slot for slot, alive in enumerate(self.alive) if alive)

    # Orders, kept until the next row arrives

    def get_or_build(self, name: Any, build: Any) -> Any:
        """A value that holds until the next row arrives."""
        with self.lock:
            if name not in self._cached:
                self._cached[name] = build()
            return self._cached[name]

    @property
    def task_ranks(self) -> list[int]:
        """For each task its place in task order: numbered ones first, by number, then named ones by name."""
        return self.get_or_build("task ranks", self._rank_tasks)  # type: ignore[no-any-return]

    @property
    def in_task_order(self) -> list[int]:
        """The slots that count by task, then by number."""
        return self.get_or_build("task order", self._sort_by_task)  # type: ignore[no-any-return]

    def _rank_tasks(self) -> list[int]:
        tasks = self.tasks
        numbered = sorted(
            (number for number, task in enumerate(tasks) if isinstance(task, int)), key=tasks.__getitem__
        )
        named = sorted(
            (number for number, task in enumerate(tasks) if isinstance(task, str)), key=tasks.__getitem__
        )
        ranks = [0] * len(tasks)
        for rank, number in enumerate((*numbered, *named)):
            ranks[number] = rank
        return ranks

    def _sort_by_task(self) -> list[int]:
        ranks, task, number = self.task_ranks, self.task, self.number
        return sorted(self.slots(), key=lambda slot: ranks[task[slot]] << NUMBER_BITS | number[slot])


def number_of_hash(content: str) -> int:
    """A task's hash in eight bytes; hashes of other tools, which may be any text, are hashed again."""
    if not content:
        return 0
    return int(content if HASH.fullmatch(content) else task_key(content), 16)


def none_if_nan(value: float) -> float | None:
    return None if value != value else value
