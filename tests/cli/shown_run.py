"""A run on a terminal for the tests to look at; they say in JSON what happens in it.

Ctrl-C once lets what is in flight finish, twice leaves at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from proctor.cli.displays import choose_display
from proctor.contracts import Request
from proctor.env.dataset import Row
from proctor.env.echo import repeats
from proctor.env.multi_turn import SingleTurnEnv
from proctor.env.rubric import Rubric
from proctor.evaluation import Control, prepare, run
from proctor.models.scripted import Scripted, Step
from proctor.services.service import Service
from proctor.trace import Reply

QUESTION = "say it"


class Scene(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What happens: one step for each task."""

    steps: list[Step]
    lazy: bool = False
    retries: int = 0
    prints: Mapping[str, str] = {}
    """Printed by the environment when the model gives this answer."""
    warns: Mapping[str, str] = {}
    """Logged as a warning when the model gives this answer."""
    disabled: bool = False
    fullscreen: bool = False
    done: str = ""
    """A file made when the run is over."""


class Chatty(Scripted):
    """Prints and warns as it answers."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.steps)
        self.scene = scene

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        if reply.text in self.scene.prints:
            sys.stdout.write(self.scene.prints[reply.text])
        if reply.text in self.scene.warns:
            logging.getLogger("proctor").warning("%s", self.scene.warns[reply.text])
        return reply


class Interrupts:
    def __init__(self, control: Control) -> None:
        self.control = control
        self.task = asyncio.current_task()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.happened)

    def happened(self) -> None:
        if self.control.stopping and self.task is not None:
            self.task.cancel()
        self.control.stop()


async def main(scene: Scene) -> None:
    rows: list[Row] = [{"question": QUESTION, "answer": QUESTION}] * len(scene.steps)
    environment = SingleTurnEnv(
        lambda: iter(rows) if scene.lazy else rows, rubric=Rubric(repeats), name="echo"
    )
    given = {"env_id": "echo", "model": "scripted", "num_examples": -1, "rollouts_per_example": 1}
    prepared = prepare({**given, "max_retries": scene.retries}, os.environ)
    prepared = msgspec.structs.replace(prepared, environment=environment)
    control = Control()
    Interrupts(control)
    settings = [
        ("environment", "echo"),
        ("model", "scripted [bold]model[/bold]"),
        ("endpoint", "http://127.0.0.1:8000/v1"),
        ("tasks × rollouts", f"{len(rows)} × 1"),
        ("at once", "32"),
        ("sampling", "temperature 0.7, max_tokens 1024"),
    ]
    display = choose_display(settings, control, disabled=scene.disabled, fullscreen=scene.fullscreen)
    async with display:
        await run(prepared, [display], control=control, service=Service(Chatty(scene)))
        if scene.done:
            Path(scene.done).touch()


if __name__ == "__main__":
    os.close(os.open(os.ttyname(2), os.O_RDWR))  # the first terminal a new session opens sends it Ctrl-C
    sys.stdout.write("before\n")
    sys.stdout.flush()
    try:
        asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Scene)))
    except asyncio.CancelledError:
        sys.stdout.write("left\n")
    sys.stdout.write("after\n")
