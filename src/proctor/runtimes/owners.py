"""Whose a container is, so that those of a dead run are removed and those of a live one are not.

A container carries the process that made it: its number, when that process started, and the machine (the
boot and the namespace of processes) in which the number means something. Seen from there, the owner is alive
or dead. Seen from elsewhere nothing can be known of it, and only the end of the lease counts.
Knows nothing of containers.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

GONE = ("Z", "X", "x")
"""States of a process that has ended and is only remembered."""


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process, told from every other that had or will have its number."""

    machine: str
    pid: int
    started: str
    """Empty where that cannot be known."""

    def __str__(self) -> str:
        return f"{self.machine}/{self.pid}/{self.started}"

    @classmethod
    def read(cls, text: str) -> ProcessIdentity | None:
        machine, _, rest = text.partition("/")
        pid, _, started = rest.partition("/")
        return cls(machine, int(pid), started) if machine and pid.isdecimal() else None


def this_process() -> ProcessIdentity:
    pid = os.getpid()
    _, started = stat_of(pid) or ("", "")
    return ProcessIdentity(this_machine(), pid, started)


def this_machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        processes = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return socket.gethostname().replace("/", "_")
    return f"{boot}.{processes}"


def stat_of(pid: int) -> tuple[str, str] | None:
    """The state of a process and when it started, in ticks since the boot; None if nothing is told of it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return state, fields[18]


def is_alive(owner: ProcessIdentity) -> bool:
    """Whether a process of this machine still runs."""
    stat = stat_of(owner.pid)
    if stat is None or not owner.started:
        return is_running(owner.pid)  # some machines do not show the processes of others
    state, started = stat
    return state not in GONE and started == owner.started


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def is_abandoned(owner: ProcessIdentity, expires: float, machine: str, now: float) -> bool:
    """Whether nobody will ever come back for what an owner made."""
    if owner.machine == machine:
        return not is_alive(owner)
    return expires < now
