"""Set up a process that plays rollouts or serves: its event loop, file limit and garbage collector."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import io
import os
import resource
import socket
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

LEAVING_SECONDS = 3.0


def run_in_loop(main: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, but a thread stuck in an environment's code does not keep the process alive."""
    loop = new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LEAVING_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not available on this platform
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def raise_file_limit() -> None:
    """Every request in flight holds a socket; the default soft limit suits interactive shells."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            return


def tune_garbage_collector() -> None:
    """Collect less often: imports stay, and rollouts and requests leave few cycles."""
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def prepare_child() -> None:
    """Set up a child process of ours."""
    faulthandler.enable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # so that the last output of a killed process is not lost
    raise_file_limit()


def set_up_child(descriptor: int) -> socket.socket:
    """Set up a child process of ours; returns the socket to its parent."""
    prepare_child()
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    return connection


def exit_now(code: int) -> NoReturn:
    """Exit at once, without waiting for threads stuck in an environment's code."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
