"""A worker process: loads the environment for itself, plays what it is sent, and says what became of it.

Started as `python -m proctor.workers.process FD`. Ends when the run that started it is gone, whatever the
reason. What the environment prints goes to the worker's log file.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import traceback

from proctor.agents.chosen import agent_of
from proctor.engine.player import Player
from proctor.engine.seat import Table
from proctor.errors import ConfigError, ProctorError, RolloutError
from proctor.events import Event
from proctor.host import packages
from proctor.loop import calm_collector, raise_file_limit, run_in_loop
from proctor.preparation import configure, size_for
from proctor.report import line_of
from proctor.services.service import open_model
from proctor.store.rows import encode_row
from proctor.workers.wire import (
    Alive,
    Frame,
    Happened,
    Play,
    Played,
    Ready,
    Refused,
    Said,
    Share,
    Start,
    Stop,
    framed,
    framed_played,
    read_frame,
    without_content,
)

log = logging.getLogger("proctor")

ALIVE_SECONDS = 5.0
TOGETHER_SECONDS = 0.02
"""Events of so long a time travel in one frame."""
CLOSING_SECONDS = 20.0


class Worker:
    """This process's side of the conversation."""

    def __init__(self, start: Start, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.tools = start.tools
        self.environment = packages.load(start.found, start.config.env_args)
        configure(self.environment, start.config)
        size_for(self.environment, start.config, start.rules.at_once)
        self.model = open_model(start.endpoint)
        table = Table(
            self.model,
            sampling=start.config.sampling(),
            headers_from_state=start.config.headers_from_state,
            emit=self.emit,
            agent=agent_of(start.config) if self.environment.traits.wants_agent else None,
        )
        table.answered = start.answered
        self.player = Player(self.environment, table, start.rules, self.emit)
        self.playing: set[asyncio.Task[None]] = set()
        self._events: list[Event] = []

    async def obey(self, reader: asyncio.StreamReader) -> None:
        """Do as told until nobody is there to tell."""
        alive = asyncio.create_task(self._show_life())
        try:
            while (frame := await read_frame(reader)) is not None:
                if isinstance(frame, Play):
                    task = asyncio.create_task(self.play(frame))
                    self.playing.add(task)
                    task.add_done_callback(self.playing.discard)
                elif isinstance(frame, Share):
                    self.tools = frame.tools
                elif isinstance(frame, Stop):
                    self.player.stop()
        finally:
            alive.cancel()

    async def play(self, frame: Play) -> None:
        try:
            rollouts = await self.player.play(frame.unit)
            rows = [encode_row(rollout, self.tools) for rollout in rollouts]
        except Exception as error:
            traceback.print_exc()
            self.send(Refused(f"a worker broke: {type(error).__name__}: {error}", False))
            return
        if self.player.trouble is not None:
            self.send(refusal(self.player.trouble))
        self._tell()
        lines = [line_of(rollout) for rollout in rollouts]
        self.writer.write(framed_played(Played(frame.number, rollouts, rows, lines)))
        await self.writer.drain()

    def emit(self, event: Event) -> None:
        if not self._events:
            asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._tell)
        self._events.append(without_content(event))

    def _tell(self) -> None:
        if self._events:
            events, self._events = self._events, []
            self.send(Happened(events))

    def send(self, frame: Frame) -> None:
        self.writer.write(framed(frame))

    async def _show_life(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_SECONDS)
            self.send(Alive())

    async def close(self) -> None:
        """Let sessions close before the process ends; what they hold may outlive it."""
        for task in self.playing:
            task.cancel()
        if self.playing:
            await asyncio.wait(self.playing)
        await self.environment.close()
        await self.model.close()


async def serve(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    start = await read_frame(reader)
    if start is None:
        return
    tell_log(writer)
    try:
        worker = Worker(start, writer)
        await worker.environment.check()
    except (ProctorError, RolloutError) as error:
        writer.write(framed(refusal(error)))
        await writer.drain()
        return
    worker.send(Ready())
    await worker.obey(reader)
    async with asyncio.timeout(CLOSING_SECONDS):
        await worker.close()


def refusal(error: ProctorError) -> Refused:
    return Refused(str(error), isinstance(error, (ConfigError, RolloutError)))


def tell_log(writer: asyncio.StreamWriter) -> None:
    """What is logged here is said by the run."""

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            writer.write(framed(Said(record.levelno, record.getMessage())))

    log.addHandler(Telling())
    log.setLevel(logging.INFO)


def main() -> None:
    raise_file_limit()
    calm_collector()
    connection = socket.socket(fileno=int(sys.argv[1]))
    code = 0
    try:
        run_in_loop(serve(connection))
    except TimeoutError:
        code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that are stuck in somebody's code keep nobody from leaving


if __name__ == "__main__":
    main()
