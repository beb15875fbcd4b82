"""Which process owns a container, so that those of dead runs are removed and those of live ones are not.

A container is labelled with the process that created it: its pid, its start time, and the machine (boot id
and pid namespace) where that pid is valid. On that machine, the owner is either alive or dead. Elsewhere that
is unknown, and only the lease counts. Knows nothing of containers.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

GONE = ("Z", "X", "x")
"""States of a process that has exited but is not yet reaped."""


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process, distinct from every other that had or will have its pid."""

    machine: str
    pid: int
    started: str
    """Empty where it cannot be known."""

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
    """The state of a process and its start, in ticks since boot; None if the system shows neither."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return state, fields[18]


def is_alive(owner: ProcessIdentity) -> bool:
    """Whether a process of this machine is still running."""
    stat = stat_of(owner.pid)
    if stat is None or not owner.started:
        return is_running(owner.pid)  # some machines hide the processes of other users
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
    """Whether an owner will never come back for what it created."""
    if owner.machine == machine:
        return not is_alive(owner)
    return expires < now
