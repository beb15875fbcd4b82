"""Run evaluations with a display, and let Ctrl-C stop them gently.

The first Ctrl-C lets what is in flight finish, the second leaves at once, the third does not even clean up.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.cli.exits import EXIT_INTERRUPTED, EXIT_STOPPED
from proctor.cli.live.display_choice import Display, choose_display
from proctor.cli.live.progress import DisplayedRun
from proctor.cli.views.escape import echo
from proctor.cli.views.resolved import at_once_text, sampling_text, workers_text
from proctor.config.schema import Presentation
from proctor.endpoints.endpoint import SharedEndpoint
from proctor.evaluation.evaluate import Control, Prepared
from proctor.evaluation.resolved import resolve_settings
from proctor.evaluation.reuse import ReusePlan
from proctor.evaluation.suite import EvaluationOutcome, SuiteMember, run_all
from proctor.listeners.resolve import close_all, listeners_for
from proctor.optional_contracts import HasFinalMessage
from proctor.support.logs import log_printed
from proctor.support.loop import raise_file_limit, run_in_loop, tune_garbage_collector
from proctor.support.output_capture import OutputCapture


class EvaluationRequest(msgspec.Struct, frozen=True):
    """An evaluation that is ready to run, and the run it resumes, if any."""

    prepared: Prepared
    resume: str | None = None
    reuse: ReusePlan | None = None
    """What it takes from an earlier run."""
    service: SharedEndpoint | None = None
    """Its model, if it is not the one that its endpoint names."""


def run_with_display(
    asked: Sequence[EvaluationRequest], shown: Presentation
) -> tuple[list[EvaluationOutcome], bool]:
    """The results, and whether the user pressed Ctrl-C."""
    raise_file_limit()
    tune_garbage_collector()
    controls = [Control() for _ in asked]
    interrupts = Interrupts(controls)
    printed = PrintedLines()

    async def main() -> list[EvaluationOutcome]:
        interrupts.listen()
        display = printed.display = choose_display(
            [
                DisplayedRun(display_settings(each.prepared), control)
                for each, control in zip(asked, controls, strict=True)
            ],
            disabled=shown.disable_tui,
            fullscreen=shown.fullscreen,
            stream=printed.capture.terminal,
        )
        watchers = [listeners_for(each.prepared.config, each.prepared.endpoint, shown) for each in asked]
        interrupts.display = display
        members = [
            SuiteMember(
                prepared=each.prepared,
                listeners=[display.listener(index), *watchers[index]],
                control=controls[index],
                resume=each.resume,
                accept_changed=shown.accept_changed,
                reuse=each.reuse,
                service=each.service,
            )
            for index, each in enumerate(asked)
        ]
        try:
            async with display:
                return await run_all(members)
        finally:
            for listeners in watchers:
                await close_all(listeners)
                for each in listeners:
                    if isinstance(each, HasFinalMessage) and each.final_message:
                        echo(each.final_message, err=True)

    try:
        with printed.capture:
            return run_in_loop(main()), interrupts.by_hand
    except asyncio.CancelledError:  # left before the first rollout
        sys.exit(EXIT_INTERRUPTED if interrupts.by_hand else EXIT_STOPPED)


class PrintedLines:
    """Sends what is printed during runs to their logs, and to the display or the terminal."""

    def __init__(self) -> None:
        self.capture = OutputCapture(self._take_line, self._take_chunk)
        self.display: Display | None = None

    def _take_line(self, text: str) -> None:
        log_printed(text)
        if self.display is not None and self.display.collects_output:
            self.display.take_output(text)

    def _take_chunk(self, chunk: bytes) -> None:
        if self.display is None or not self.display.collects_output:
            self.capture.pass_through(chunk)


class Interrupts:
    """What Ctrl-C does, and SIGTERM likewise."""

    def __init__(self, controls: Sequence[Control]) -> None:
        self.controls = controls
        self.count = 0
        self.by_hand = False
        """The user pressed Ctrl-C, as opposed to a machine that shuts down."""
        self.display: Any = None
        self.main: asyncio.Task[Any] | None = None

    def listen(self) -> None:
        self.main = asyncio.current_task()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.handle_signal, True)
        loop.add_signal_handler(signal.SIGTERM, self.handle_signal, False)

    def handle_signal(self, by_hand: bool) -> None:
        self.count += 1
        self.by_hand = self.by_hand or by_hand
        playing = [control for control in self.controls if control.playing is not None]
        if self.count == 1:
            for control in self.controls:
                control.stop()
        elif self.count == 2 and playing:
            for control in playing:
                control.leave()
        elif self.count == 2 and self.main is not None:
            self.main.cancel()
        else:
            if self.display is not None:
                self.display.close()
            os._exit(EXIT_INTERRUPTED)


def display_settings(prepared: Prepared) -> list[tuple[str, str]]:
    config, endpoint = prepared.config, prepared.endpoint
    counted = prepared.count_tasks()
    used = resolve_settings(prepared, counted)
    wanted = "all" if config.num_examples == -1 else f"up to {config.num_examples}"
    tasks = wanted if counted is None else str(counted)
    tasks = prepared.selection(counted).partition(":")[0] if config.config_hash else tasks
    arguments = msgspec.json.encode(config.env_args, enc_hook=str).decode()
    rows = [
        ("environment", prepared.name),
        ("agent", config.agent or ""),
        ("runtime", config.runtime or ""),
        ("model", endpoint.model),
        ("label", config.label),
        ("endpoint", endpoint.address or endpoint.client_type),
        ("tasks × rollouts", f"{tasks} × {config.rollouts_per_example}"),
        ("at once", at_once_text(used).removesuffix("s").removesuffix(" rollout")),
        ("workers", workers_text(config, used)),
        ("sampling", sampling_text(prepared, used)),
        ("recipe", config.config_hash),
        ("arguments", arguments if config.env_args and not config.config_hash else ""),
    ]
    return [(label, value) for label, value in rows if value]
