"""A run that says which rollouts are finished the moment they are kept, for the tests that kill it.

    python tests/reporting_run.py FOLDER SCRIPT TASKS ROLLOUTS AT_ONCE

It goes on with whatever an earlier one left in the folder. One line for each finished rollout: task, number,
outcome, and when it began.
"""

from __future__ import annotations

import asyncio
import os
import sys

from proctor.evaluation.evaluate import LATEST, prepare, run
from proctor.events import Event, RolloutsFinished


def report(event: Event) -> None:
    if isinstance(event, RolloutsFinished):
        lines = (
            f"{rollout.task.id} {rollout.number} {rollout.outcome} {rollout.timing.setup.start!r}\n"
            for rollout in event.rollouts
        )
        os.write(1, "".join(lines).encode())


async def main(folder: str, script: str, tasks: str, rollouts: str, at_once: str) -> None:
    prepared = prepare(
        {
            "env_id": "echo",
            "model": "scripted",
            "api_base_url": script,
            "output_dir": folder,
            "num_examples": int(tasks),
            "rollouts_per_example": int(rollouts),
            "max_concurrent": int(at_once),
        },
        {},
    )
    os.write(1, b"ready\n")
    await run(prepared, [report], resume=LATEST)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
