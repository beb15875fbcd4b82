"""Two rollouts side by side: which events correspond, and where they first differ.

Knows nothing of stores or HTTP.
"""

from __future__ import annotations

from proctor.api.rollout_view import DiffPair, RolloutDiff, RolloutView
from proctor.store.alignment import MessagePair, compare_rollouts
from proctor.store.replay import ReplayMessage, RolloutReplay


def build_diff(a: RolloutReplay, b: RolloutReplay, view_a: RolloutView, view_b: RolloutView) -> RolloutDiff:
    compared = compare_rollouts(a, b)
    indexes_a, indexes_b = event_indexes(a), event_indexes(b)
    pairs = [build_pair(pair, indexes_a, indexes_b) for pair in compared.pairs]
    first = next((index for index, pair in enumerate(pairs) if pair.differences), None)
    return RolloutDiff(a=view_a, b=view_b, pairs=pairs, first=first)


def event_indexes(replay: RolloutReplay) -> dict[int, int]:
    """Where each message of the conversation is in the timeline."""
    return {
        event.index: index for index, event in enumerate(replay.events) if isinstance(event, ReplayMessage)
    }


def build_pair(pair: MessagePair, indexes_a: dict[int, int], indexes_b: dict[int, int]) -> DiffPair:
    return DiffPair(
        a=None if pair.a is None else indexes_a[pair.a.index],
        b=None if pair.b is None else indexes_b[pair.b.index],
        differences=list(dict.fromkeys(difference.kind for difference in pair.differences)),
    )
