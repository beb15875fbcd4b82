"""Keep one host running, from outside it: kill and replace a host that dies or stops responding.

A host prints an empty line every second; a stuck event loop prints nothing, and cannot recover by itself. A
line with text is the reason why a host gives up for good. Knows nothing of how runs are played.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from proctor.errors import ConfigError, ProctorError
from proctor.runner.host_settings import HostStartup, encode_host_startup
from proctor.support.logs import log
from proctor.support.loop import run_in_loop

FORWARDED_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "REQUESTS_CA_BUNDLE",
)
FORWARDED_PREFIXES = ("LC_", "PIP_", "UV_", "SSL_", "XDG_", "DOCKER_")
PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy")
BEAT_SECONDS = 1.0
SILENT_SECONDS = 60.0
"""Longer than a lease: the server has already given the runs of such a host to others."""
GOODBYE_SECONDS = 30.0
KILLED_SECONDS = 10.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
STEADY_SECONDS = 60.0
"""A host that ran for this long did not fail because of how it was started."""


class Supervisor:
    """Keeps one host process running until it is cancelled."""

    def __init__(
        self, startup: Callable[[], Awaitable[HostStartup]], *, silent_seconds: float = SILENT_SECONDS
    ) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self._get_startup = startup
        self._silent_seconds = silent_seconds

    async def run(self, *, until_refused: bool = False) -> None:
        """With `until_refused`, raises ConfigError when the host gives up; otherwise starts it again."""
        pause = FIRST_PAUSE_SECONDS
        try:
            while True:
                began = time.monotonic()
                refusal = await self._run_one()
                if refusal and until_refused:
                    raise ConfigError(refusal)
                lived_long = time.monotonic() - began > STEADY_SECONDS
                pause = FIRST_PAUSE_SECONDS if lived_long else min(2 * pause, LONGEST_PAUSE_SECONDS)
                await asyncio.sleep(pause)
        finally:
            await self._end()

    async def _run_one(self) -> str:
        """Run one host from start to end; returns why it gave up, if it said so."""
        try:
            process = self.process = await launch_host(await self._get_startup())
        except Exception as error:  # the database may be briefly unreachable
            if isinstance(error, ProctorError):
                log.error("could not start the host; trying again: %s", error)
            else:
                log.error("could not start the host; trying again", exc_info=error)
            return ""
        refusal = await self._watch(process)
        code = await end_process(process, 0.0)
        log.error("the host ended with exit code %s; starting it again", code)
        return refusal

    async def _watch(self, process: asyncio.subprocess.Process) -> str:
        """Wait until it ends or falls silent."""
        assert process.stdout is not None
        refusal = ""
        try:
            while line := await asyncio.wait_for(process.stdout.readline(), self._silent_seconds):
                refusal = line.decode(errors="replace").strip() or refusal
        except TimeoutError:
            log.error("the host has not responded for %.0f seconds", self._silent_seconds)
        return refusal

    async def _end(self) -> None:
        """End it while the server still answers: the host's runs have final reports to send."""
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            await end_process(self.process, GOODBYE_SECONDS)


async def launch_host(startup: HostStartup) -> asyncio.subprocess.Process:
    """It reads its settings from standard input, and inherits none of the providers' keys."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "proctor.runner"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=forwarded_variables(os.environ),
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(encode_host_startup(startup))
    process.stdin.close()
    return process


async def end_process(process: asyncio.subprocess.Process, grace_seconds: float) -> int | None:
    """Its exit code; None if even the kernel cannot end it. Its sandboxes die with it."""
    for seconds in (grace_seconds, KILLED_SECONDS):
        try:
            return await asyncio.wait_for(process.wait(), seconds or 0.1)
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return None


def forwarded_variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name in FORWARDED_VARIABLES
        or name.startswith(FORWARDED_PREFIXES)
        or name.lower() in PROXY_VARIABLES
    }


def run_supervised(startup: HostStartup) -> None:
    """Keep a host running on this machine until SIGTERM or Ctrl-C. Raises ConfigError if it gives up."""

    async def get_startup() -> HostStartup:
        return startup

    async def supervise() -> None:
        running = asyncio.create_task(Supervisor(get_startup).run(until_refused=True))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, running.cancel)
        await asyncio.wait({running})
        if not running.cancelled():
            running.result()

    run_in_loop(supervise())
