"""A host as a process of its own, which reads the server's address and its settings from standard input.

It prints an empty line every second, as its supervisor expects, and the reason if it gives up. On SIGTERM it
ends its runs, which then continue elsewhere. When its parent process dies, it claims nothing more and ends
with its last run: the next server has a host of its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress

from proctor.errors import ProctorError
from proctor.runner.folder_lock import temporary_files_in_one_folder
from proctor.runner.host import RunHost
from proctor.runner.host_settings import HostStartup, decode_host_startup
from proctor.runner.supervisor import BEAT_SECONDS
from proctor.support.loop import raise_file_limit, run_in_loop
from proctor.support.metrics_listener import MetricsListener
from proctor.support.structured_logs import set_up_logging

LOOK_SECONDS = 0.5
TEMPORARY = "proctor-host-"


async def main(startup: HostStartup) -> None:
    host = RunHost(startup.context, startup.settings, startup.host_key, startup.cluster)
    loop = asyncio.get_running_loop()
    address = startup.settings.metrics
    metrics = None if address is None else MetricsListener(address, host.metrics)
    if metrics is not None:
        await metrics.start()
    beating = asyncio.create_task(print_heartbeats())
    working = asyncio.create_task(host.work())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, working.cancel)
    parent = startup.parent
    watching = [] if parent is None else [asyncio.create_task(drain_when_orphaned(host, parent))]
    watching.append(beating)
    try:
        await asyncio.wait({working})
        if not working.cancelled():
            working.result()
    finally:
        for task in watching:
            task.cancel()
        await host.close()
        if metrics is not None:
            await metrics.close()


async def drain_when_orphaned(host: RunHost, parent: int) -> None:
    while os.getppid() == parent:
        await asyncio.sleep(LOOK_SECONDS)
    host.drain()


async def print_heartbeats() -> None:
    """Show the supervisor that this event loop is alive."""
    while True:
        print_line("")
        await asyncio.sleep(BEAT_SECONDS)


def print_line(line: str) -> None:
    with suppress(OSError):  # a dead or slow supervisor must not block the host
        os.write(sys.stdout.fileno(), f"{line}\n".encode())


def run_host(startup: HostStartup) -> int:
    """Play runs until told to stop; with a parent process, claim nothing more once that is dead."""
    raise_file_limit()
    set_up_logging(startup.settings.log_format, "%(asctime)s host: %(message)s")
    os.set_blocking(sys.stdout.fileno(), False)
    try:
        with temporary_files_in_one_folder(TEMPORARY):
            run_in_loop(main(startup))
    except ProctorError as error:
        print_line(" ".join(str(error).split()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_host(decode_host_startup(sys.stdin.buffer.read())))
