"""What is printed by file descriptor arrives late; whoever closes a log can wait for it."""

from __future__ import annotations

import subprocess
import sys

SLOW_READER = """
import os, subprocess, sys, time
from proctor.support.output_capture import OutputCapture, drain_output

lines = []

def keep_slowly(line):
    time.sleep(0.2)  # a reader that a busy machine lets wait
    lines.append(line)

with OutputCapture(keep_slowly, lambda chunk: None) as capture:
    subprocess.run(["echo", "first"])
    os.write(2, b"second\\n")
    drain_output()
    seen = list(lines)
    if sys.argv[1:] == ["child"] and os.fork() == 0:
        drain_output()  # the reader is a thread of the parent
        os._exit(0)
    capture.terminal.write(f"{seen}\\n")
drain_output()
"""


def run_slow_reader(*arguments: str) -> str:
    command = [sys.executable, "-c", SLOW_READER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr


def test_draining_waits_for_what_children_printed() -> None:
    assert run_slow_reader() == "['first', 'second']\n"


def test_a_forked_child_does_not_wait_for_its_parents_reader() -> None:
    assert run_slow_reader("child") == "['first', 'second']\n"
