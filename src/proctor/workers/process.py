"""A worker process: loads the environment for itself, plays what it is sent, and says what became of it.

Started with the number of the socket to the run. Ends when the run is gone, whatever the reason. What the
environment prints goes to the worker's log file.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
import time
import traceback

from proctor.agents.resolve import agent_of
from proctor.endpoints.endpoint import open_model
from proctor.engine.player import Player
from proctor.engine.seat import Table
from proctor.environments import load_environment, size_for
from proctor.errors import ConfigError, ProctorError, RolloutError
from proctor.events import Event
from proctor.gateway.gateway import Gateway
from proctor.store.rows import encode_row
from proctor.support.logs import log
from proctor.support.loop import calm_collector, leave, run_in_loop, set_up_child
from proctor.workers.wire import (
    Alive,
    Happened,
    Play,
    Played,
    Ready,
    Refused,
    Said,
    Sender,
    Share,
    Start,
    Stop,
    pack_rollouts,
    read_frame,
    unpack_unit,
    without_content,
)

ALIVE_SECONDS = 5.0
TOGETHER_SECONDS = 0.02
"""Events of so long a time travel in one frame."""
CLOSING_SECONDS = 20.0


class Worker:
    """This process's side of the conversation."""

    def __init__(self, start: Start, sender: Sender) -> None:
        self.send = sender.send
        self.tools = start.tools
        self.environment = load_environment(start.found, start.config)
        size_for(self.environment, start.config, start.rules.at_once)
        self.model = open_model(start.endpoint)
        self.doors = Gateway(self.model.name)
        table = Table(
            self.model,
            sampling=start.config.sampling(),
            headers_from_state=start.config.headers_from_state,
            emit=self.emit,
            agent=agent_of(start.config) if self.environment.traits.wants_agent else None,
            doors=self.doors,
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
        """Play a unit and say what became of it: whatever happens, somebody waits for an answer."""
        try:
            rollouts = await self.player.play(unpack_unit(frame))
            rows = [encode_row(rollout, self.tools) for rollout in rollouts]
        except asyncio.CancelledError:
            raise
        except ConfigError as error:
            self.send(refusal(error))
            return
        except BaseException as error:
            traceback.print_exc()
            self.send(Refused(f"a worker broke: {type(error).__name__}: {error}", False))
            return
        if self.player.trouble is not None:
            self.send(refusal(self.player.trouble))
        self._tell()
        self.send(Played(frame.number, pack_rollouts(rollouts), rows))

    def emit(self, event: Event) -> None:
        if not self._events:
            asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._tell)
        self._events.append(without_content(event))

    def _tell(self) -> None:
        if self._events:
            events, self._events = self._events, []
            self.send(Happened(events))

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
        await self.doors.close()
        await self.environment.close()
        await self.model.close()


async def serve(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    start = await read_frame(reader)
    if start is None:
        return
    sender = Sender(writer)
    log.addHandler(Telling(sender))
    log.setLevel(logging.INFO)
    try:
        worker = Worker(start, sender)
        await worker.environment.check()
    except (ProctorError, RolloutError) as error:
        sender.send(refusal(error))
        sender.flush()
        await writer.drain()
        return
    worker.send(Ready())
    await worker.obey(reader)
    async with asyncio.timeout(CLOSING_SECONDS):
        await worker.close()


def refusal(error: ProctorError) -> Refused:
    return Refused(str(error), isinstance(error, (ConfigError, RolloutError)))


class Telling(logging.Handler):
    """What is logged here, in whatever thread, is said by the run."""

    def __init__(self, sender: Sender) -> None:
        super().__init__()
        self._sender = sender
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            said = Said(record.levelno, self.format(record))
            self._loop.call_soon_threadsafe(self._sender.send, said)
        except Exception:
            self.handleError(record)


def leave_with(parent: int) -> None:
    """End when the run is gone, also while somebody's code blocks the event loop."""
    while os.getppid() == parent:
        time.sleep(ALIVE_SECONDS)
    time.sleep(CLOSING_SECONDS)
    os._exit(1)


def main() -> None:
    connection = set_up_child(int(sys.argv[1]))
    threading.Thread(target=leave_with, args=(os.getppid(),), daemon=True).start()
    calm_collector()
    code = 0
    try:
        run_in_loop(serve(connection))
    except TimeoutError:
        code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    leave(code)
