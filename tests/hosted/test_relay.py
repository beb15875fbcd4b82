"""What a follower is told of a hosted run besides its rollouts."""

from __future__ import annotations

from proctor.api.runs import Cause, RunEvent, RunInfo
from proctor.cli.live.hosted_follow import Relay
from proctor.evaluation.evaluate import Control
from proctor.events import Event, LogLine

RUN = RunInfo(
    id="run-1",
    kind="hosted",
    owner="ada",
    environment="ada/sums",
    model="m",
    status="running",
    created_at=0.0,
)


def test_an_attempt_that_crashed_is_mentioned_with_its_reason() -> None:
    heard: list[Event] = []

    def hear(event: Event) -> None:
        heard.append(event)

    relay = Relay(RUN, Control(), hear)
    why = Cause(code="crashed", message="The run's process was killed by signal 11.")

    relay(RunEvent(seq=1, at=1.0, kind="status", status="running"))
    relay(RunEvent(seq=2, at=2.0, kind="status", status="pending", cause=why))
    relay(RunEvent(seq=3, at=3.0, kind="status", status="pending"))

    lines = [event for event in heard if isinstance(event, LogLine)]
    assert [(line.level, line.text) for line in lines] == [
        (
            "WARNING",
            "The attempt ended: The run's process was killed by signal 11. It is started again.",
        ),
        ("INFO", "Waits for its turn."),
    ]
