"""A script of an author's that serves rollouts: started, waited for, watched and ended.

It finds its port in `_OSMOSIS_ROLLOUT_PORT`, answers `GET /health`, and is one process for all attempts. What
it prints goes to this process's log, and its last lines into the error if it ends. Knows nothing of rollouts.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp

from proctor.errors import EnvError, InfraError
from proctor.support.logs import log
from proctor.support.processes import describe_exit, end_group, summarize_output
from proctor.workflow import run_script

PORT_VARIABLE = "_OSMOSIS_ROLLOUT_PORT"
INSTANCE_VARIABLE = "_OSMOSIS_ROLLOUT_INSTANCE_ID"
INTERPRETER_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
START_SECONDS = 60.0
HEALTH_SECONDS = 5.0
LOOK_SECONDS = 0.1
ENDING_SECONDS = 5.0
KEPT_LINES = 50
LONGEST_LINE = 65_536


class RolloutServerProcess:
    """One running server."""

    def __init__(self, script: Path, process: asyncio.subprocess.Process, port: int, instance: str) -> None:
        self.script = script
        self.url = f"http://127.0.0.1:{port}"
        self._instance = instance
        self._process = process
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._reading = asyncio.ensure_future(self._read_output())

    @classmethod
    async def start(
        cls, script: Path, http: aiohttp.ClientSession, python: Path | None = None
    ) -> RolloutServerProcess:
        """Start the script with this Python or another one, and wait until it is healthy."""
        port, instance = find_free_port(), secrets.token_hex(8)
        try:
            process = await asyncio.create_subprocess_exec(
                *(str(python or sys.executable), run_script.__file__, str(os.getpid()), str(script)),
                cwd=script.parent,
                env={**own_variables(python), PORT_VARIABLE: str(port), INSTANCE_VARIABLE: instance},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                limit=LONGEST_LINE,
            )
        except OSError as error:
            raise EnvError(f"{script} cannot be started: {error}") from error
        server = cls(script, process, port, instance)
        try:
            await server._wait_until_healthy(http)
        except BaseException:
            await server.end()
            raise
        return server

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def wait_for_exit(self) -> None:
        await self._process.wait()

    def describe_end(self) -> InfraError:
        """Why the server is gone."""
        code = self._process.returncode
        how = "does not answer" if code is None else describe_exit(code)
        printed = summarize_output(list(self._lines))
        return InfraError(f"the rollout server {self.script.name} {how}{f': {printed}' if printed else ''}")

    async def end(self) -> None:
        if self.is_running:
            with suppress(ProcessLookupError):
                self._process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), ENDING_SECONDS)
        end_group(self._process.pid)
        await self._process.wait()
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _wait_until_healthy(self, http: aiohttp.ClientSession) -> None:
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await self._is_healthy(http):
                    if not self.is_running:
                        await asyncio.wait({self._reading}, timeout=1)
                        raise EnvError(str(self.describe_end()))
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError as error:
            printed = summarize_output(list(self._lines))
            raise EnvError(
                f"{self.script} was not healthy within {START_SECONDS:g} s: it must serve GET /health on the "
                f"port in ${PORT_VARIABLE}{f'; it printed: {printed}' if printed else ''}"
            ) from error

    async def _is_healthy(self, http: aiohttp.ClientSession) -> bool:
        try:
            timeout = aiohttp.ClientTimeout(total=HEALTH_SECONDS)
            async with http.get(f"{self.url}/health", timeout=timeout) as response:
                if response.status != 200:
                    return False
                body: Any = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return False
        named = body.get("instance_id") if isinstance(body, dict) else None
        return named in (None, self._instance)  # another server may have taken the port

    async def _read_output(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:  # a line that is too long
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            self._lines.append(text)
            log.debug("%s: %s", self.script.name, text)


def own_variables(python: Path | None) -> dict[str, str]:
    """This process's variables; another Python gets none that would have it import our packages."""
    if python is None or python == Path(sys.executable):
        return dict(os.environ)
    return {name: value for name, value in os.environ.items() if name not in INTERPRETER_VARIABLES}


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
