"""Listen on loopback until the process gets a signal to stop.

Knows nothing of what is served.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

from aiohttp import web

from proctor.errors import ConfigError, describe_os_error

HOST = "127.0.0.1"
NEXT_PORTS = 50
"""How many ports after a busy one are tried before any free one is taken."""
GRACE_SECONDS = 1.0


def bind_loopback(port: int) -> socket.socket:
    """A socket at this port, or at the next one that is free."""
    for candidate in (*range(port, min(port + NEXT_PORTS, 65536)), 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, candidate))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise ConfigError(f"Cannot listen on {HOST}: {describe_os_error(error)}.") from error
        else:
            return listener
    raise ConfigError(f"No port is free on {HOST}.")


@asynccontextmanager
async def serve_app(app: web.Application, listener: socket.socket) -> AsyncIterator[str]:
    """Serve an application; yields its address. Requests end when their browser goes away."""
    with closing(listener):
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=GRACE_SECONDS
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            yield f"http://{HOST}:{listener.getsockname()[1]}"
        finally:
            await runner.cleanup()


async def wait_for_signal() -> None:
    """Until Ctrl-C or a request to terminate."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
