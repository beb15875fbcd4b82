"""Runs on a terminal for the tests to look at; they say in JSON what happens in them.

Ctrl-C once lets what is in flight finish, twice leaves at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.cli.live.display_choice import choose_display
from proctor.cli.live.progress import DisplayedRun
from proctor.contracts import Listener, Request
from proctor.endpoints.endpoint import SharedEndpoint
from proctor.env.dataset import Row
from proctor.env.echo import repeats
from proctor.env.multi_turn import SingleTurnEnv
from proctor.env.rubric import Rubric
from proctor.evaluation.evaluate import Control, Prepared, prepare, run
from proctor.events import RunEnded
from proctor.models.scripted import Scripted, Step
from proctor.run import Run
from proctor.trace import Reply

QUESTION = "say it"


class Part(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of several runs."""

    name: str = "echo"
    model: str = "scripted"
    label: str = ""
    steps: list[Step] = []
    refused: str = ""
    """Why it fails before it begins."""


class Scene(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What happens: one step for each task."""

    steps: list[Step] = []
    parts: list[Part] = []
    """Several runs instead of one with these steps."""
    one_by_one: bool = False
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

    def __init__(self, scene: Scene, steps: Sequence[Step], place: int) -> None:
        super().__init__(steps)
        self.scene = scene
        self.place = place

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        if reply.text in self.scene.prints:
            sys.stdout.write(self.scene.prints[reply.text])
        if reply.text in self.scene.warns:
            warning = self.scene.warns[reply.text]
            logging.getLogger("proctor").warning("%s", warning, extra={"run_index": self.place})
        return reply


class Interrupts:
    def __init__(self, controls: Sequence[Control]) -> None:
        self.controls = controls
        self.task = asyncio.current_task()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.happened)

    def happened(self) -> None:
        if any(control.stopping for control in self.controls) and self.task is not None:
            self.task.cancel()
        for control in self.controls:
            control.stop()


def prepared_part(scene: Scene, part: Part) -> Prepared:
    rows: list[Row] = [{"question": QUESTION, "answer": QUESTION}] * len(part.steps)
    environment = SingleTurnEnv(
        lambda: iter(rows) if scene.lazy else rows, rubric=Rubric(repeats), name="echo"
    )
    given = {"env_id": "echo", "model": "scripted", "num_examples": -1, "rollouts_per_example": 1}
    prepared = prepare({**given, "max_retries": scene.retries}, os.environ)
    return msgspec.structs.replace(prepared, environment=environment)


def shown_part(part: Part) -> DisplayedRun:
    settings = [
        ("environment", part.name),
        ("model", part.model),
        ("label", part.label),
        ("endpoint", "http://127.0.0.1:8000/v1"),
        ("tasks × rollouts", f"{len(part.steps)} × 1"),
        ("at once", "32"),
        ("sampling", "temperature 0.7, max_tokens 1024"),
    ]
    return DisplayedRun(settings, Control())


async def play(scene: Scene, place: int, part: Part, shown: DisplayedRun, listener: Listener) -> None:
    if part.refused:
        status: Any = "failed"
        listener(RunEnded(Run(id="0", env_id=part.name, model=part.model, status=status, note=part.refused)))
        return
    model = Chatty(scene, part.steps, place)
    await run(prepared_part(scene, part), [listener], control=shown.control, service=SharedEndpoint(model))


async def main(scene: Scene) -> None:
    parts = scene.parts or [Part(model="scripted [bold]model[/bold]", steps=scene.steps)]
    runs = [shown_part(part) for part in parts]
    Interrupts([shown.control for shown in runs])
    display = choose_display(runs, disabled=scene.disabled, fullscreen=scene.fullscreen)
    async with display:
        plays = [
            play(scene, place, part, shown, display.listener(place))
            for place, (part, shown) in enumerate(zip(parts, runs, strict=True))
        ]
        if scene.one_by_one:
            for each in plays:
                await each
        else:
            await asyncio.gather(*plays)
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
