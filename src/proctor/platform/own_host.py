"""The server's own host: a process beside the server, started again when it dies.

It is told what it must know on its standard input, and inherits none of the providers' keys. Knows nothing of
how runs are played.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from sqlalchemy import Connection, delete, func, select, update

from proctor.client.contexts import Context
from proctor.hosting.host_order import HostOrder, HostSettings, written
from proctor.logs import log
from proctor.platform.db.database import Database
from proctor.platform.db.tables import tokens, versions
from proctor.platform.people.tokens import OWN_HOST, make_token
from proctor.platform.settings import Settings

PASSED_ON = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "REQUESTS_CA_BUNDLE")
PASSED_ON_BY_PREFIX = ("LC_", "PIP_", "UV_", "SSL_", "XDG_", "DOCKER_")
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
GOODBYE_SECONDS = 30.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
STEADY_SECONDS = 60.0
"""A host that lived for so long did not die of how it was started."""
FORGOTTEN_SECONDS = 7 * 86_400.0
"""A host that was not heard of for so long is gone."""


class OwnHost:
    """Keeps one host going."""

    def __init__(self, settings: Settings, database: Database, server: str) -> None:
        self._settings = settings
        self._database = database
        self._server = server
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._settings.runs_at_once:
            self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """End the host while the server still answers: its runs have a last word to say."""
        if self._keeping is None:
            return
        self._keeping.cancel()
        await asyncio.wait({self._keeping})
        self._keeping = None
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), GOODBYE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _keep(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            began = time.monotonic()
            try:
                process = self._process = await self._launch()
                code = await process.wait()
                log.error("the host of the runs ended with code %s; it is started again", code)
            except Exception as error:  # the database may be away for a moment
                log.error("the host of the runs could not be started; it is tried again", exc_info=error)
            pause = FIRST_PAUSE_SECONDS if time.monotonic() - began > STEADY_SECONDS else 2 * pause
            await asyncio.sleep(min(pause, LONGEST_PAUSE_SECONDS))

    async def _launch(self) -> asyncio.subprocess.Process:
        token = await self._database.write(host_token, self._server)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "proctor.hosting"),
            stdin=asyncio.subprocess.PIPE,
            env=passed_on(os.environ),
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(written(self._order(token)))
        process.stdin.close()
        return process

    def _order(self, token: str) -> HostOrder:
        settings = self._settings
        return HostOrder(
            context=Context(url=settings.own_url, token=token),
            parent=os.getpid(),
            settings=HostSettings(
                data=settings.data / "host",
                at_once=settings.runs_at_once,
                limits=settings.limits,
                allow_no_sandbox=settings.allow_no_sandbox,
                direct_hosts=settings.direct_hosts,
                hidden=(settings.data,),
            ),
        )


def host_token(connection: Connection, server: str) -> str:
    """A new one for every host: the hosts of this server that was killed may still have runs to end."""
    name = f"{OWN_HOST}{server}"
    own = (tokens.c.kind == "host") & (tokens.c.name == name)
    last_used_at = func.coalesce(tokens.c.last_used_at, tokens.c.created_at)
    connection.execute(delete(tokens).where(own, last_used_at < time.time() - FORGOTTEN_SECONDS))
    # What earlier hosts of this server were trying out is tried again, and at once.
    earlier = select(tokens.c.id).where(own)
    left = update(versions).where(versions.c.check_status == "running", versions.c.check_host.in_(earlier))
    connection.execute(left.values(check_status="pending", check_lease_until=None, check_host=None))
    return make_token(connection, kind="host", user=None, name=name, scopes=[], expires_at=None).secret


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name in PASSED_ON or name.startswith(PASSED_ON_BY_PREFIX) or name.lower() in PROXIES
    }
