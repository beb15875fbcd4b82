"""Run inside a sandbox: forward connections from outside to a port on its own loopback, and start a command.

    python3 inbound_forward.py PORT COMMAND …

Standard input is a listening Unix socket, created outside, where nothing inside can replace it. The first
connection is answered with a word as soon as the port listens. The command replaces this process.
Self-contained, on the standard library of any Python 3.
"""

import os
import socket
import sys
import time
from contextlib import suppress

CHUNK_BYTES = 65_536
PAUSE_SECONDS = 0.02
READY = b"ready"


def main() -> None:
    port, *command = sys.argv[1:]
    if os.fork() == 0:
        if os.fork() == 0:  # a grandchild: the command must not find a child it never started
            listener = socket.socket(fileno=os.dup(0))
            os.closerange(0, 3)  # so that readers of the command's output see its end
            serve(listener, int(port))
        os._exit(0)
    os.wait()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


def serve(listener: socket.socket, port: int) -> None:
    """In one thread: a hundred threads would count against the command's process limit."""
    asking, _ = listener.accept()
    while True:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            break
        time.sleep(PAUSE_SECONDS)
    with asking, suppress(OSError):
        asking.sendall(READY)
    import asyncio  # only once there is something to forward

    async def join(outer: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Pass bytes both ways until both sides have finished."""
        try:
            inner, into = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            back.close()
            return
        try:
            await asyncio.gather(pass_on(outer, into), pass_on(inner, back))
        finally:
            into.close()
            back.close()

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await source.read(CHUNK_BYTES):
                target.write(chunk)
                await target.drain()
        with suppress(OSError):
            target.write_eof()

    async def listen() -> None:
        async with await asyncio.start_unix_server(join, sock=listener) as server:
            await server.serve_forever()

    asyncio.run(listen())


if __name__ == "__main__":
    main()
