"""Two rollouts side by side: which events correspond, and where they first differ.

Knows nothing of stores or HTTP.
"""

from __future__ import annotations

from proctor.api.rollout_view import DiffPair, RolloutDiff, RolloutView
from proctor.store.alignment import MessagePair, compare_rollouts
from proctor.store.replay import ReplayMessage, RolloutReplay


def build_diff(a: RolloutReplay, b: RolloutReplay, view_a: RolloutView, view_b: RolloutView) -> RolloutDiff:
    compared = compare_rollouts(a, b)
    places_a, places_b = event_indexes(a), event_indexes(b)
    pairs = [build_pair(pair, places_a, places_b) for pair in compared.pairs]
    first = next((place for place, pair in enumerate(pairs) if pair.differences), None)
    return RolloutDiff(a=view_a, b=view_b, pairs=pairs, first=first)


def event_indexes(replay: RolloutReplay) -> dict[int, int]:
    """Where each message of the conversation is in the timeline."""
    return {
        event.index: place for place, event in enumerate(replay.events) if isinstance(event, ReplayMessage)
    }


def build_pair(pair: MessagePair, places_a: dict[int, int], places_b: dict[int, int]) -> DiffPair:
    return DiffPair(
        a=None if pair.a is None else places_a[pair.a.index],
        b=None if pair.b is None else places_b[pair.b.index],
        differences=list(dict.fromkeys(difference.kind for difference in pair.differences)),
    )
