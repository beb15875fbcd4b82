"""A process that has loaded Proctor, and forks for each command that tests/commands.py hands to it."""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import sys
from importlib import import_module
from pathlib import Path

LOADED = (
    "proctor.cli.app",
    "proctor.cli.commands.eval",
    "proctor.cli.commands.hub_fetch",
    "proctor.cli.commands.hosted_requests",
    "proctor.cli.live.watching",
    "proctor.cli.views.dry_run",
    "proctor.cli.views.report",
    "proctor.models.http_client",
)
"""What takes most of a command's start. None of it starts a thread, which a fork would lose."""
LARGEST_REQUEST = 2**20


def wait_for_command(tests: socket.socket) -> list[str]:
    """Returns in a new process, as the interpreter of a command that begins there, with its words."""
    while True:
        request, files, _, _ = socket.recv_fds(tests, LARGEST_REQUEST, 3)
        if not request:
            os._exit(0)  # the tests are over
        asked = json.loads(request)
        command = os.fork()
        if command == 0:
            break
        for file in files:
            os.close(file)
        tests.send(str(command).encode())
        _, status = os.waitpid(command, 0)
        tests.send(str(os.waitstatus_to_exitcode(status)).encode())
    tests.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    words: list[str] = asked["words"]
    return words


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    for name in LOADED:
        import_module(name)
    gc.freeze()  # pages that no collection touches stay shared
    sys.argv[1:] = wait_for_command(socket.socket(fileno=int(sys.argv[1])))
    sys.path.insert(0, str(Path.cwd()))
    runpy.run_module("proctor", run_name="__main__", alter_sys=True)
