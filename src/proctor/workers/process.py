"""A worker process: loads the environment for itself, plays units and reports the results.

On the run's machine it is started with the number of the socket to the run; `remote_process.py` starts it on
others. Ends when the run is gone, whatever the reason. What the environment prints goes to the worker's log
file.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from proctor.agents.resolve import resolve_agent
from proctor.endpoints.endpoint import open_model
from proctor.endpoints.reply_cache import open_cache
from proctor.engine.player import Player
from proctor.engine.seat import RunContext
from proctor.environments import load_environment, set_environment_concurrency
from proctor.errors import ConfigError, ProctorError, RolloutError
from proctor.events import Event
from proctor.gateway.gateway import RolloutGateway
from proctor.optional_contracts import set_optional_run_folder
from proctor.rollout import Rollout
from proctor.store.rows import encode_row
from proctor.support.logs import log
from proctor.support.loop import exit_now, run_in_loop, set_up_child, tune_garbage_collector
from proctor.support.output_capture import OutputCapture
from proctor.workers.frames import (
    DrainWorker,
    FrameWriter,
    PlayUnit,
    RunFile,
    ShareTools,
    StartWorker,
    UnitResult,
    WorkerEvents,
    WorkerHeartbeat,
    WorkerLogLine,
    WorkerPrinted,
    WorkerReady,
    WorkerRefused,
    pack_events,
    pack_rollouts,
    read_frame,
    strip_content,
    unpack_unit,
)
from proctor.workflow.artifacts import ARTIFACTS, name_folder

ALIVE_SECONDS = 5.0
TOGETHER_SECONDS = 0.02
"""Events of this long travel in one frame."""
CLOSING_SECONDS = 20.0


class RolloutWorker:
    """This process's side of the conversation."""

    def __init__(self, start: StartWorker, sender: FrameWriter) -> None:
        self.send = sender.send
        self.tools = start.tools
        self.sends_traces = start.sends_traces
        self.files_to_send = Path(start.folder) if start.sends_files else None
        self.environment = load_environment(start.found, start.config)
        set_environment_concurrency(self.environment, start.config, start.rules.at_once)
        set_optional_run_folder(self.environment, Path(start.folder))
        self.model = open_model(start.endpoint)
        self.gateway = RolloutGateway(self.model.name)
        self.cache = open_cache(start.config.cache, start.endpoint)
        context = RunContext(
            self.model,
            sampling=start.config.sampling(),
            headers_from_state=start.config.headers_from_state,
            emit=self.emit,
            agent=resolve_agent(start.config) if self.environment.traits.wants_agent else None,
            gateway=self.gateway,
            request_seconds=start.endpoint.request_seconds,
            replies=self.cache,
        )
        context.answered = start.answered
        self.player = Player(self.environment, context, start.rules, self.emit)
        self.playing: set[asyncio.Task[None]] = set()
        self._events: list[Event] = []

    async def serve_frames(self, reader: asyncio.StreamReader) -> None:
        """Serve frames until the run hangs up."""
        alive = asyncio.create_task(self._send_heartbeats())
        try:
            while (frame := await read_frame(reader)) is not None:
                if isinstance(frame, PlayUnit):
                    task = asyncio.create_task(self.play(frame))
                    self.playing.add(task)
                    task.add_done_callback(self.playing.discard)
                elif isinstance(frame, ShareTools):
                    self.tools = frame.tools
                elif isinstance(frame, DrainWorker):
                    self.player.stop()
        finally:
            alive.cancel()

    async def play(self, frame: PlayUnit) -> None:
        """Play a unit and report the result: whatever happens, the run waits for an answer."""
        try:
            rollouts = await self.player.play(unpack_unit(frame))
            rows = [encode_row(rollout, self.tools) for rollout in rollouts]
            if self.files_to_send is not None:
                self._send_files(self.files_to_send, rollouts)
        except asyncio.CancelledError:
            raise
        except ConfigError as error:
            self.send(build_refusal(error))
            return
        except BaseException as error:
            traceback.print_exc()
            self.send(WorkerRefused(f"a worker broke: {type(error).__name__}: {error}", False))
            return
        if self.player.trouble is not None:
            self.send(build_refusal(self.player.trouble))
        self._send_events()
        self.send(UnitResult(frame.number, self._pack(rollouts), rows))

    def _pack(self, rollouts: Sequence[Rollout]) -> bytes:
        """Rollouts for the run's listeners; also until the run has the tools, which the first trace shows."""
        shows_tools = not self.tools and any(call.tools for each in rollouts for call in each.trace.calls[:1])
        return pack_rollouts(rollouts) if self.sends_traces or shows_tools else b""

    def _send_files(self, folder: Path, rollouts: Sequence[Rollout]) -> None:
        """Send what these rollouts left for the run's folder, before they count as finished."""
        for rollout in rollouts:
            kept = folder / ARTIFACTS / name_folder(rollout.task.id, rollout.number)
            for file in sorted(path for path in kept.rglob("*") if path.is_file() and not path.is_symlink()):
                self.send(RunFile(file.relative_to(folder).as_posix(), file.read_bytes()))
            shutil.rmtree(kept, ignore_errors=True)

    def emit(self, event: Event) -> None:
        if not self._events:
            asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._send_events)
        self._events.append(strip_content(event))

    def _send_events(self) -> None:
        if self._events:
            events, self._events = self._events, []
            self.send(WorkerEvents(pack_events(events)))

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_SECONDS)
            self.send(WorkerHeartbeat())

    async def close(self) -> None:
        """Let sessions close before the process ends; what they hold may outlive it."""
        for task in self.playing:
            task.cancel()
        if self.playing:
            await asyncio.wait(self.playing)
        await self.gateway.close()
        if self.cache is not None:
            await asyncio.to_thread(self.cache.close)
        await self.environment.close()
        await self.model.close()


async def serve_socket(connection: socket.socket) -> None:
    await serve(*await asyncio.open_connection(sock=connection))


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    start = await read_frame(reader)
    if start is None:
        return
    sender = FrameWriter(writer)
    logging.getLogger().addHandler(WorkerLogHandler(sender))
    logging.getLogger().setLevel(start.log_level)
    log.setLevel(min(logging.INFO, start.log_level))
    with OutputCapture(partial(send_printed, sender, asyncio.get_running_loop())):
        await play_units(start, sender, reader, writer)


async def play_units(
    start: StartWorker, sender: FrameWriter, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Load the environment and play what the run sends, until it hangs up."""
    try:
        worker = RolloutWorker(start, sender)
        await worker.environment.check()
    except (ProctorError, RolloutError) as error:
        sender.send(build_refusal(error))
        sender.flush()
        await writer.drain()
        return
    worker.send(WorkerReady())
    await worker.serve_frames(reader)
    async with asyncio.timeout(CLOSING_SECONDS):
        await worker.close()


def build_refusal(error: ProctorError) -> WorkerRefused:
    return WorkerRefused(str(error), isinstance(error, (ConfigError, RolloutError)))


class WorkerLogHandler(logging.Handler):
    """Sends log lines of any thread to the run, which logs them."""

    def __init__(self, sender: FrameWriter) -> None:
        super().__init__()
        self._sender = sender
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            is_file_only = getattr(record, "file_only", False)
            line = WorkerLogLine(record.levelno, self.format(record), record.name, is_file_only)
            self._loop.call_soon_threadsafe(self._sender.send, line)
        except Exception:
            self.handleError(record)


def send_printed(sender: FrameWriter, loop: asyncio.AbstractEventLoop, text: str) -> None:
    """Send a printed line to the run; called from any thread."""
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(sender.send, WorkerPrinted(text))


def exit_after_parent(parent: int) -> None:
    """End when the run is gone, also while environment code blocks the event loop."""
    while os.getppid() == parent:
        time.sleep(ALIVE_SECONDS)
    time.sleep(CLOSING_SECONDS)
    os._exit(1)


def main() -> None:
    connection = set_up_child(int(sys.argv[1]))
    threading.Thread(target=exit_after_parent, args=(os.getppid(),), daemon=True).start()
    tune_garbage_collector()
    code = 0
    try:
        run_in_loop(serve_socket(connection))
    except TimeoutError:
        code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    exit_now(code)
