"""Ports to listen at later, which nobody else is given meanwhile."""

from __future__ import annotations

import os
import socket
from collections import deque

MOST_RESERVED = 100
RESERVED: deque[int] = deque()
"""Descriptors of sockets that are bound and do not listen."""


def free_port() -> int:
    """A port at which nobody listens.

    Whoever reuses addresses, as servers do, may listen at it. The system gives it to no one else, neither as
    a free port nor for a connection, until many more have been asked for.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port: int = reserved.getsockname()[1]
        RESERVED.append(reserved.detach())
    if len(RESERVED) > MOST_RESERVED:
        os.close(RESERVED.popleft())
    return port
