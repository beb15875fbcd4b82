"""Run inside a sandbox: listen on its own loopback, lead every connection to a Unix socket, start a command.

    python3 forward.py PORT SOCKET drop|keep -- COMMAND …

Stands alone, on the standard library of any Python 3: nothing else of Proctor can be seen from there. The
command takes the place of this process once the port listens. `drop` gives up what root may do.
"""

import ctypes
import os
import socket
import sys
import threading
from contextlib import suppress

CHUNK_BYTES = 65_536
LATEST_CAPABILITIES = 0x20080522


def main() -> None:
    port, path, capabilities, _, *command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
    if os.fork() == 0:
        if os.fork() == 0:  # a grandchild: the command must not find a child it never started
            os.closerange(0, 3)  # whoever reads the command's output must see its end
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
    while True:
        inner, _ = listener.accept()
        threading.Thread(target=join, args=(inner, path), daemon=True).start()


def join(inner: socket.socket, path: str) -> None:
    """Pass bytes both ways until both have said all."""
    outer = socket.socket(socket.AF_UNIX)
    with inner, outer, suppress(OSError):
        outer.connect(path)
        back = threading.Thread(target=pass_on, args=(outer, inner), daemon=True)
        back.start()
        pass_on(inner, outer)
        back.join()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(CHUNK_BYTES):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
