"""Run inside a sandbox: carry bytes between its own loopback and the outside.

    python3 -c TEXT out PORT SOCKET drop|keep -- COMMAND …    PORT leads out, to a Unix socket
    python3 -c TEXT in PORT COMMAND …                         a Unix socket, our standard input, leads to PORT
    python3 -c TEXT stdio PORT SECONDS                        our standard streams lead to PORT

`out` and `in` start the command in place of this process and serve in a process of their own. `drop` gives up
root's capabilities. The socket of `in` already listens and was bound outside, where nothing inside can put
another in its place; its first connection gets READY as soon as PORT listens. `stdio` waits for PORT at most
SECONDS. The text is sent to whatever Python 3 is inside, so it uses nothing but the standard library.
"""

import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

CHUNK_BYTES = 65_536
PAUSE_SECONDS = 0.02
READY = b"ready"
LOOPBACK = "127.0.0.1"
LATEST_CAPABILITIES = 0x20080522


def lead_out(port: str, path: str, capabilities: str, _: str, *command: str) -> None:
    listener = socket.create_server((LOOPBACK, int(port)), backlog=64)
    if is_grandchild():
        os.closerange(0, 3)  # readers of the command's output must see its end
        if capabilities == "drop":
            drop_capabilities()
        serve(listener, path)
    listener.close()
    os.execvp(command[0], command)


def lead_in(port: str, *command: str) -> None:
    if is_grandchild():
        listener = socket.socket(fileno=os.dup(0))
        os.closerange(0, 3)
        first, _ = listener.accept()
        connect(int(port)).close()
        with first, suppress(OSError):
            first.sendall(READY)
        serve(listener, int(port))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


def is_grandchild() -> bool:
    """Fork twice: the command must not find a child it never started."""
    if os.fork() == 0:
        if os.fork() == 0:
            return True
        os._exit(0)
    os.wait()
    return False


def drop_capabilities() -> None:
    import ctypes

    header = (ctypes.c_uint32 * 2)(LATEST_CAPABILITIES, 0)
    if ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)()) != 0:
        os._exit(1)


def connect(port: int, seconds: float = float("inf")) -> socket.socket:
    """Wait until a server listens on a port of our loopback."""
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((LOOPBACK, port))
        except OSError:
            if time.monotonic() > end:
                sys.exit(f"nothing listens on port {port}")
            time.sleep(PAUSE_SECONDS)


def serve(listener: socket.socket, target: "int | str") -> None:
    """Join each connection to a port or a Unix socket.

    In one thread: the threads of a hundred connections would count against what the command may start.
    """
    import asyncio  # not before there is something to serve: the command waits for the rest

    async def open_target() -> "tuple[asyncio.StreamReader, asyncio.StreamWriter]":
        if isinstance(target, int):
            return await asyncio.open_connection(LOOPBACK, target, limit=CHUNK_BYTES)
        return await asyncio.open_unix_connection(target, limit=CHUNK_BYTES)

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await open_target()
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
        finally:
            far_writer.close()
            writer.close()

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while True:
                chunk = await source.read(CHUNK_BYTES)
                if not chunk:
                    break
                sink.write(chunk)
                await sink.drain()
        with suppress(OSError):
            sink.write_eof()

    async def listen() -> None:
        start = asyncio.start_unix_server if listener.family == socket.AF_UNIX else asyncio.start_server
        async with await start(join, sock=listener, limit=CHUNK_BYTES) as server:
            await server.serve_forever()

    asyncio.run(listen())


def join_stdio(port: str, seconds: str) -> None:
    """With a thread instead of an event loop, which takes longer to import than a connection lasts."""
    import threading

    connection = connect(int(port), float(seconds))

    def copy_in() -> None:
        with suppress(OSError):
            while True:
                chunk = os.read(0, CHUNK_BYTES)
                if not chunk:
                    break
                connection.sendall(chunk)
            connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=copy_in, daemon=True).start()
    while True:
        chunk = connection.recv(CHUNK_BYTES)
        if not chunk:
            break
        while chunk:
            chunk = chunk[os.write(1, chunk) :]


if __name__ == "__main__":
    mode, *arguments = sys.argv[1:]
    modes: "dict[str, Callable[..., None]]" = {"out": lead_out, "in": lead_in, "stdio": join_stdio}
    modes[mode](*arguments)
