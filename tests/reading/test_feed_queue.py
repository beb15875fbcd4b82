from __future__ import annotations

import pytest

from proctor.api.feed import FeedEvent
from proctor.reading.feed_queue import MOST_WAITING, FeedQueue


@pytest.mark.anyio
async def test_a_follower_that_does_not_keep_up_is_asked_to_read_everything_again() -> None:
    queue = FeedQueue()
    for number in range(MOST_WAITING + 2):
        queue.send(FeedEvent(kind="run_deleted", at=float(number), run_id="x"))

    events = queue.events()
    seen = [await anext(events), await anext(events)]

    assert [event.kind for event in seen if event is not None] == ["resync", "run_deleted"]
