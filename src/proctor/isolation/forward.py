"""Run inside a sandbox: forward connections from its own loopback to a Unix socket, and start a command.

    python3 forward.py PORT SOCKET drop|keep -- COMMAND …

Self-contained, on the standard library of any Python 3: nothing else of Proctor is visible there. The command
replaces this process once the port listens. `drop` gives up root's capabilities.
"""

import ctypes
import os
import socket
import sys
from contextlib import suppress

CHUNK_BYTES = 65_536
LATEST_CAPABILITIES = 0x20080522


def main() -> None:
    port, path, capabilities, _, *command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
    if os.fork() == 0:
        if os.fork() == 0:  # a grandchild: the command must not find a child it never started
            os.closerange(0, 3)  # so that readers of the command's output see its end
            if capabilities == "drop":
                drop_capabilities()
            serve(listener, path)
        os._exit(0)
    os.wait()
    listener.close()
    os.execvp(command[0], command)


def drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(LATEST_CAPABILITIES, 0)
    if ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)()) != 0:
        os._exit(1)


def serve(listener: socket.socket, path: str) -> None:
    """In one thread: a hundred threads would count against the command's process limit."""
    import asyncio  # only once there is something to serve: the command waits until then

    async def join(inner_reader: asyncio.StreamReader, inner_writer: asyncio.StreamWriter) -> None:
        """Pass bytes both ways until both sides have finished."""
        try:
            outer_reader, outer_writer = await asyncio.open_unix_connection(path, limit=CHUNK_BYTES)
        except OSError:
            inner_writer.transport.abort()
            return
        try:
            await asyncio.gather(pass_on(inner_reader, outer_writer), pass_on(outer_reader, inner_writer))
        finally:
            inner_writer.close()
            outer_writer.close()

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while True:
                chunk = await source.read(CHUNK_BYTES)
                if not chunk:
                    break
                target.write(chunk)
                await target.drain()
        with suppress(OSError):
            target.write_eof()

    async def listen() -> None:
        server = await asyncio.start_server(join, sock=listener, limit=CHUNK_BYTES)
        async with server:
            await server.serve_forever()

    asyncio.run(listen())


if __name__ == "__main__":
    main()
