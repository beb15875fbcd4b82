"""The way from one rollout to the next, in the list it is read in. Knows nothing of stores or HTTP."""

from __future__ import annotations

from proctor.api.rollout_list import RolloutFilter
from proctor.api.rollout_view import Neighbours
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.rollout_pages import find_slots


def find_neighbors(index: RolloutIndex, slot: int, query: RolloutFilter) -> Neighbours:
    """The rollouts before and after one in a list, and the nearest ones of other tasks.

    Of a rollout that is not in the list, its neighbors among all rollouts.
    """
    with index.lock:
        slots = find_slots(index, query).slots
        if slot not in slots:
            slots = index.in_task_order
        try:
            at = slots.index(slot)
        except ValueError:  # replaced since it was found
            return Neighbours()
        first = last = at
        while first > 0 and index.task[slots[first - 1]] == index.task[slot]:
            first -= 1
        while last + 1 < len(slots) and index.task[slots[last + 1]] == index.task[slot]:
            last += 1
        before = first - 1
        while before > 0 and index.task[slots[before - 1]] == index.task[slots[before]]:
            before -= 1

        def address(position: int) -> tuple[str, int] | None:
            if not 0 <= position < len(slots):
                return None
            return f"{index.keys[index.task[slots[position]]]:016x}", index.number[slots[position]]

        return Neighbours(
            previous_rollout=address(at - 1),
            next_rollout=address(at + 1),
            previous_task=address(before),
            next_task=address(last + 1),
            place=at,
            total=len(slots),
        )
