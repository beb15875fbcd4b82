"""The process of one rollout of a LocalRuntime: loads an environment and serves it until its parent is gone.

On its connection it receives what to load, and reports when it is ready.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from proctor.channel.listen import open_channel_server
from proctor.channel.server import ServedEnvironment
from proctor.env.templates import Environment
from proctor.errors import ConfigError, ProctorError
from proctor.packages.serve_target import environment_at
from proctor.support.loop import exit_now, run_in_loop, tune_garbage_collector

LOOK_SECONDS = 5.0
BLOCKED_SECONDS = 3.0
"""An event loop that does not react to the end for so long is blocked by the environment's code."""
CLOSING_SECONDS = 20.0


async def serve(connection: socket.socket, wanted: dict[str, Any]) -> None:
    try:
        environment = load(wanted["source"], wanted["env"])
        if wanted["check"]:
            await environment.check()
    except ProctorError as error:
        send_message(connection, {"error": str(error), "config": isinstance(error, ConfigError)})
        return
    alone = asyncio.Event()
    async with open_channel_server(ServedEnvironment(environment, wanted["token"]), path=wanted["socket"]):
        watching = (connection, asyncio.get_running_loop(), alone, wanted["socket"])
        threading.Thread(target=exit_when_orphaned, args=watching, daemon=True).start()
        send_message(connection, {"reusable": environment.reusable, "capacity": environment.capacity})
        await alone.wait()


def load(source: str, name: str) -> Environment:
    environment: Environment = environment_at(source, name)
    return environment


def send_message(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def receive_request(connection: socket.socket) -> dict[str, Any]:
    with connection.makefile("rb") as file:
        wanted: dict[str, Any] = json.loads(file.readline() or b"{}")
    return wanted


def exit_when_orphaned(
    connection: socket.socket, loop: asyncio.AbstractEventLoop, alone: asyncio.Event, socket_path: str
) -> None:
    """Exit when our parent is gone, even if the environment's code blocks the event loop."""
    wait_until_orphaned(connection)
    reacted = threading.Event()
    loop.call_soon_threadsafe(alone.set)
    loop.call_soon_threadsafe(reacted.set)
    if reacted.wait(BLOCKED_SECONDS):
        time.sleep(CLOSING_SECONDS)
    remove_socket_folder(socket_path)
    os._exit(1)


def wait_until_orphaned(connection: socket.socket) -> None:
    """The socket carries nothing more; it ends when the other side is gone."""
    parent = os.getppid()
    connection.settimeout(LOOK_SECONDS)
    while os.getppid() == parent:
        try:
            connection.recv(1)
        except TimeoutError:
            continue
        except OSError:
            pass
        return


def run(connection: socket.socket) -> NoReturn:
    connection.set_inheritable(False)
    wanted = receive_request(connection)
    if not wanted:
        exit_now(0)
    code = 0
    try:
        tune_garbage_collector()
        run_in_loop(serve(connection, wanted))
    except BaseException:
        traceback.print_exc()
        code = 1
    remove_socket_folder(wanted["socket"])
    exit_now(code)


def remove_socket_folder(socket_path: str) -> None:
    """Remove the folder of the socket: the parent that created it may have been killed."""
    shutil.rmtree(Path(socket_path).parent, ignore_errors=True)
