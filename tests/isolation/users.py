"""Run a piece of a test as an ordinary user, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ORDINARY = 41_234


def run_as(user: str, work: Callable[[], None]) -> None:
    """As "root" or "ordinary"; what fails in there fails here."""
    if user == "root" or os.geteuid() != 0:
        work()
        return
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(ORDINARY)
            os.setuid(ORDINARY)
            os.environ["HOME"] = "/"
            work()
            code = 0
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-60_000:])
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, told or "the process died without a word"


@contextmanager
def folder_of(user: str) -> Iterator[Path]:
    """A folder that this user owns and can reach: those of pytest are root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-test-"))
    if user == "ordinary" and os.geteuid() == 0:
        os.chown(folder, ORDINARY, ORDINARY)
    try:
        yield folder
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
