"""The fork server's own process: one thread and no event loop, so that forking it is safe.

Its argument is the descriptor of a socket, on which it gets requests to fork. It exits when that is closed.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress

import msgspec

from proctor.runtimes import local_child
from proctor.runtimes.fork_server import MESSAGE_BYTES, Exited, Forked, ServerMessage
from proctor.support.loop import set_up_child


def main() -> None:
    control = set_up_child(int(sys.argv[1]))
    gc.freeze()  # pages that no collection touches stay shared
    woken, waking = os.pipe()
    for descriptor in (woken, waking):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is control and not take_request(control, (woken, waking)):
                    return
            with suppress(BlockingIOError):
                os.read(woken, MESSAGE_BYTES)
            report_exits(control)


def take_request(control: socket.socket, pipe: tuple[int, int]) -> bool:
    """Fork as requested; False if there will be no more requests."""
    try:
        message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 2)
    except OSError:
        return False
    if not message:
        return False
    connection, output = descriptors
    try:
        pid = os.fork()
    except OSError as error:
        send(control, Forked(int(message), error=error.strerror or str(error)))
    else:
        if pid == 0:
            become_child(control, pipe, connection, output)
        send(control, Forked(int(message), pid))
    os.close(connection)
    os.close(output)
    return True


def become_child(control: socket.socket, pipe: tuple[int, int], connection: int, output: int) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    for descriptor in (*pipe, output, control.detach()):
        os.close(descriptor)
    local_child.run(socket.socket(fileno=connection))


def report_exits(control: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        send(control, Exited(pid, os.waitstatus_to_exitcode(status)))


def send(control: socket.socket, message: ServerMessage) -> None:
    with suppress(OSError):  # the other side is gone, which the next request would show
        control.send(msgspec.json.encode(message))
