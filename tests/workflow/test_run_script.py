"""A script that is run for a parent ends with it, and otherwise notices nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from proctor.workflow import run_script
from tests.dialects.killing import is_running
from tests.waiting import wait_for

STARTER = """
import os, subprocess, sys, time
words = [sys.executable, sys.argv[1], str(os.getpid()), sys.argv[2]]
subprocess.Popen(words, start_new_session=True)
time.sleep(600)
"""


def test_it_runs_as_if_it_were_run_alone(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    script = tmp_path / "main.py"
    script.write_text("import sys, beside\nprint(__name__, sys.argv, beside.VALUE)\nsys.exit(3)\n")
    words = [sys.executable, run_script.__file__, str(os.getpid()), str(script)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (3, f"__main__ ['{script}'] 7\n"), done.stderr


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script, note = tmp_path / "main.py", tmp_path / "pid"
    script.write_text(f"import os, pathlib, time\npathlib.Path({str(note)!r}).write_text(str(os.getpid()))\n")
    with script.open("a") as file:
        file.write("time.sleep(600)\n")
    starter = subprocess.Popen([sys.executable, "-c", STARTER, run_script.__file__, str(script)])
    try:
        wait_for(lambda: note.exists() and bool(note.read_text()))
    finally:
        starter.send_signal(signal.SIGKILL)
        starter.wait(30)
    pid = int(note.read_text())
    wait_for(lambda: not is_running(pid))
