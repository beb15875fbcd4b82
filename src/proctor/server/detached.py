"""A server in the background: start one and wait until it answers, or stop the one that holds a data folder.

Knows nothing of what the server does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from proctor.api.common import BASE
from proctor.errors import ConfigError, ProctorError, describe_os_error
from proctor.server.data_lock import RunningServer, describe_conflict, find_running_server, is_locked
from proctor.server.private_files import create_private, make_private_folder

LOG_FILE = "server.log"
START_SECONDS = 120.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.05
READY_SECONDS = 5.0
USAGE = 2
"""How a process ends whose arguments or settings are wrong."""


def start_detached(words: Sequence[str], data: Path) -> RunningServer:
    """Start `proctor server` with these arguments in a session of its own; returns when it answers."""
    if is_locked(data):
        raise ConfigError(describe_conflict(data))
    log = data / LOG_FILE
    with open_log(log) as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "proctor", "server", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        return wait_until_ready(child, data)
    except KeyboardInterrupt:
        child.terminate()
        raise


def open_log(log: Path) -> BinaryIO:
    """A new log; that of the start before is kept beside it."""
    try:
        make_private_folder(log.parent)
        if log.exists():
            log.replace(log.with_name(f"{LOG_FILE}.1"))
        return create_private(log)
    except OSError as error:
        why = describe_os_error(error)
        raise ConfigError(
            f"Cannot write to {log.parent} ({why}); name another folder with --data."
        ) from error


def wait_until_ready(child: subprocess.Popen[bytes], data: Path) -> RunningServer:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        running = find_running_server(data)
        if running is not None and running.pid == child.pid and answers(running.own_url):
            return running
        if child.poll() is not None:
            raise explain_early_end(child.returncode, data / LOG_FILE)
        time.sleep(POLL_SECONDS)
    raise ProctorError(
        f"The server (process {child.pid}) is still starting after {START_SECONDS:g} s; "
        f"its log is {data / LOG_FILE}, and `proctor server stop --data {data}` stops it."
    )


def answers(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never a proxy to this machine
    try:
        with direct.open(f"{url}{BASE}/ready", timeout=READY_SECONDS):
            return True
    except OSError:
        return False


def explain_early_end(code: int, log: Path) -> ProctorError:
    """The last thing the server said before it ended."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1].removeprefix("Error: ") if lines else "it said nothing"
    if code == USAGE:
        return ConfigError(last)
    return ProctorError(
        f"The server ended while it was starting (exit code {code}): {last}. Its log is {log}."
    )


def stop_server(data: Path) -> RunningServer:
    """Stop the server that holds a data folder; returns once it has ended."""
    running = find_running_server(data)
    if running is None:
        raise ConfigError(f"No server uses {data}; name its folder with --data.")
    try:
        os.kill(running.pid, signal.SIGTERM)
    except ProcessLookupError:
        return running
    except PermissionError as error:
        raise ConfigError(f"The server (process {running.pid}) belongs to another user.") from error
    end = time.monotonic() + STOP_SECONDS
    while is_locked(data):
        if time.monotonic() > end:
            raise ProctorError(
                f"The server (process {running.pid}) has not ended within {STOP_SECONDS:g} s; "
                f"see {data / LOG_FILE}."
            )
        time.sleep(POLL_SECONDS)
    return running
