"""What a workspace's commands may use by default, sized to the machine.

An operator overrides the sizes with variables. Knows nothing of sandboxes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from proctor.errors import ConfigError
from proctor.isolation.command_line import MEGABYTE, CommandLimits

MEMORY_VARIABLE = "PROCTOR_WORKSPACE_MEMORY_MB"
DISK_VARIABLE = "PROCTOR_WORKSPACE_DISK_MB"
PROCESSES_VARIABLE = "PROCTOR_WORKSPACE_PROCESSES"
LEAST_MEMORY_MB = 512
MOST_DISK_MB = 10_240
LEAST_DISK_MB = 256
PROCESSES_PER_CORE = 256
MOST_PROCESSES = 4_096
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def default_limits(environ: Mapping[str, str] = os.environ) -> CommandLimits:
    """Half the memory for one process, a quarter of the free disk for one folder, processes by cores."""
    disk_mb = read_override(environ, DISK_VARIABLE) or free_disk_mb() // 4
    disk_mb = disk_mb if DISK_VARIABLE in environ else max(LEAST_DISK_MB, min(MOST_DISK_MB, disk_mb))
    return CommandLimits(
        processes=read_override(environ, PROCESSES_VARIABLE)
        or min(MOST_PROCESSES, PROCESSES_PER_CORE * (os.cpu_count() or 1)),
        file_mb=disk_mb,
        data_mb=read_override(environ, MEMORY_VARIABLE) or max(LEAST_MEMORY_MB, memory_mb() // 2),
        disk_mb=disk_mb,
    )


def read_override(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ConfigError(f"{name} is {text!r}; it must be a whole number above 0.")
    return int(text)


def memory_mb() -> int:
    """The machine's memory, or what a container leaves us of it."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in CGROUP_LIMITS:
        with suppress(OSError, ValueError):
            total = min(total, int(Path(file).read_text()))
    return total // MEGABYTE


def free_disk_mb() -> int:
    """Where workspaces are created."""
    return shutil.disk_usage(tempfile.gettempdir()).free // MEGABYTE


def describe_limits(limits: CommandLimits) -> str:
    memory = limits.memory_mb or limits.data_mb
    parts = (
        f"{memory:,} MB of memory per process" if memory else "",
        f"{limits.disk_mb:,} MB of disk" if limits.disk_mb else "",
        f"{limits.processes:,} processes" if limits.processes else "",
    )
    return ", ".join(part for part in parts if part) or "no limits"
