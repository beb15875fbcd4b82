"""What the tests ask of a container from inside: look around, use up memory, end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def look() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "routes": len(Path("/proc/net/route").read_text().splitlines()) - 1,
        "memory": next((Path(path).read_text().strip() for path in LIMITS if Path(path).exists()), ""),
        "variables": dict(os.environ),
        "user": os.getuid(),
    }


def mark() -> dict[str, Any]:
    """Whether anybody was here before."""
    place = Path("/tmp/mark")
    was_there = place.exists()
    place.write_text("here")
    return {"was_there": was_there}


def sandbox() -> dict[str, Any]:
    """Whether bubblewrap works here."""
    if shutil.which("bwrap") is None:
        return {"output": "there is no bwrap"}
    words = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev"]
    done = subprocess.run([*words, "sh", "-c", "echo inside"], capture_output=True, text=True, check=False)
    return {"output": done.stdout + done.stderr}


def eat() -> dict[str, Any]:
    eaten = [bytearray(os.urandom(1024 * 1024)) for _ in range(4096)]
    return {"eaten": len(eaten)}


def die() -> dict[str, Any]:
    sys.stderr.write("I was told to end\n")
    sys.stderr.flush()
    os._exit(9)


DEEDS = {deed.__name__: deed for deed in (look, mark, sandbox, eat, die)}
