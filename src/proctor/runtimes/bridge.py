"""Runs inside a container that has no network: standard input and output joined to a port of its loopback.

Waits until somebody listens there. Sent as text to the container's own Python, so it knows nothing but the
standard library: `python3 -c TEXT PORT SECONDS`.
"""

import os
import socket
import sys
import threading
import time


def connect(port: int, seconds: float) -> socket.socket:
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            if time.monotonic() > end:
                sys.exit(f"nothing listens on port {port}")
            time.sleep(0.05)


def carry_in(connection: socket.socket) -> None:
    try:
        while data := os.read(0, 65536):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def carry_out(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    joined = connect(int(sys.argv[1]), float(sys.argv[2]))
    threading.Thread(target=carry_in, args=(joined,), daemon=True).start()
    carry_out(joined)
