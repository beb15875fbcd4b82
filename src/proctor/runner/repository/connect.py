"""ssh's connection through the sandbox's HTTP proxy: a ProxyCommand.

    python -m proctor.runner.repository.connect http://127.0.0.1:8701 HOST PORT

Knows nothing of what is carried.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from urllib.parse import urlsplit

CHUNK_BYTES = 65_536
CONNECT_SECONDS = 40.0
LONGEST_HEAD = 65_536


def connect(proxy: str, host: str, port: str) -> socket.socket:
    parts = urlsplit(proxy)
    opened = socket.create_connection((parts.hostname, parts.port), CONNECT_SECONDS)
    opened.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        got = opened.recv(1)
        if not got or len(head) > LONGEST_HEAD:
            raise ConnectionError("the proxy closed the connection")
        head += got
    status = head.partition(b"\r\n")[0].decode("latin-1")
    if " 200 " not in f"{status} ":
        raise ConnectionError(status)
    opened.settimeout(None)
    return opened


def send_stdin(opened: socket.socket) -> None:
    while chunk := os.read(0, CHUNK_BYTES):
        opened.sendall(chunk)
    opened.shutdown(socket.SHUT_WR)


def main() -> None:
    try:
        opened = connect(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"no connection: {error}")
    threading.Thread(target=send_stdin, args=(opened,), daemon=True).start()
    while chunk := opened.recv(CHUNK_BYTES):
        os.write(1, chunk)


if __name__ == "__main__":
    main()
