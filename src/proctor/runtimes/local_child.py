"""The process of a LocalRuntime: loads one environment and serves it until whoever started it is gone.

Started with the number of a socket, on which it is told what to load and says when it is ready.
"""

from __future__ import annotations

import asyncio
import faulthandler
import io
import json
import os
import socket
import sys
import threading
import time
import traceback
from typing import Any

from proctor.channel.listening import listening
from proctor.channel.server import Served
from proctor.env.templates import Environment
from proctor.errors import ConfigError, ProctorError
from proctor.host.served import environment_at
from proctor.loop import calm_collector, raise_file_limit, run_in_loop

LOOK_SECONDS = 5.0
CLOSING_SECONDS = 20.0


async def serve(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    wanted = json.loads(await reader.readline() or b"{}")
    if not wanted:
        return
    try:
        environment = load(wanted["source"], wanted["env"])
        await environment.check()
    except ProctorError as error:
        await say(writer, {"error": str(error), "config": isinstance(error, ConfigError)})
        return
    async with listening(Served(environment, wanted["token"]), path=wanted["socket"]):
        await say(writer, {"ready": True})
        await reader.read()  # nothing more is said; this ends when the other side is gone
        threading.Thread(target=leave_after, args=(CLOSING_SECONDS,), daemon=True).start()


def load(source: str, name: str) -> Environment:
    environment: Environment = environment_at(source, name)
    return environment


async def say(writer: asyncio.StreamWriter, said: dict[str, Any]) -> None:
    writer.write(json.dumps(said).encode() + b"\n")
    await writer.drain()


def leave_after(seconds: float) -> None:
    time.sleep(seconds)
    os._exit(1)


def leave_with(parent: int) -> None:
    """End when whoever started us is gone, also while somebody's code blocks the event loop."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    leave_after(CLOSING_SECONDS)


def main() -> None:
    faulthandler.enable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # the last words of a process that is killed
    threading.Thread(target=leave_with, args=(os.getppid(),), daemon=True).start()
    raise_file_limit()
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    code = 0
    try:
        calm_collector()
        run_in_loop(serve(connection))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that are stuck in somebody's code keep nobody from leaving
