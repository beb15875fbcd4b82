"""Limit what one hosted run may use, with the kernel's control groups where we may create them.

Version 2 has one folder per run, version 1 one per controller; both are below our own group, so that our
limits also limit the runs. Per-process limits cover what no control group does. Knows nothing of sandboxes.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from proctor.isolation import command_line as command_line
from proctor.isolation.command_line import MEGABYTE

PREFIX = "proctor-run-"
MEMBERS = "proctor-members"
"""Holds the processes of our own group: in version 2 a group that limits others may not hold any itself."""
LEAVING_SECONDS = 2.0
LEFT_OVER_SECONDS = 60.0
CONTROLLERS = {"memory": "memory", "pids": "processes", "cpuacct": "cpu", "cpu": "cpu"}
"""Controllers, and what each of them limits or counts; `cpuacct` is version 1's."""


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one hosted run may use, all its processes together."""

    memory_mb: int = 4096
    cpu_seconds: int | None = None
    processes: int = 512
    disk_mb: int = 4096

    def per_process(self, watched: frozenset[str]) -> command_line.CommandLimits:
        """Limits for each process: whatever no control group covers."""
        return command_line.CommandLimits(
            memory_mb=None if "memory" in watched else self.memory_mb,
            processes=None if "processes" in watched else self.processes,
            file_mb=self.disk_mb,
            cpu_seconds=None if "cpu" in watched else self.cpu_seconds,
        )


class CgroupUsage(NamedTuple):
    """What a run's control group has counted so far."""

    killed_for_memory: int = 0
    refused_processes: int = 0
    cpu_seconds: float = 0.0


class ParentCgroup(NamedTuple):
    """One of our groups, below which runs get theirs: of one controller (version 1) or of all (version 2)."""

    folder: Path
    controllers: frozenset[str]
    version: int


class ControlGroup:
    """The control groups of one run."""

    def __init__(self, folders: Mapping[str, Path], version: int) -> None:
        self.folders = folders
        self.version = version

    @property
    def watched(self) -> frozenset[str]:
        """Which of `memory`, `processes` and `cpu` are limited or counted for the run as a whole."""
        return frozenset(CONTROLLERS[controller] for controller in self.folders)

    def join(self, pid: int) -> None:
        for folder in set(self.folders.values()):
            with suppress(ProcessLookupError):  # it has ended already
                (folder / "cgroup.procs").write_text(str(pid))

    def usage(self) -> CgroupUsage:
        kills = "memory.events" if self.version == 2 else "memory.oom_control"
        return CgroupUsage(
            killed_for_memory=self._read_count("memory", kills, "oom_kill"),
            refused_processes=self._read_count("pids", "pids.events", "max"),
            cpu_seconds=self._cpu_seconds(),
        )

    def remove(self) -> None:
        """Kill whatever is left in them, which only happens without a sandbox. Blocks."""
        give_up_at = time.monotonic() + LEAVING_SECONDS
        left = set(self.folders.values())
        while left and time.monotonic() < give_up_at:
            left = {folder for folder in left if not try_remove(folder)}
            if left:
                time.sleep(LEAVING_SECONDS / 100)

    def _cpu_seconds(self) -> float:
        if self.version == 2:
            return self._read_count("cpu", "cpu.stat", "usage_usec") / 1e6
        return self._read_count("cpuacct", "cpuacct.usage") / 1e9

    def _read_count(self, controller: str, file: str, word: str = "") -> int:
        folder = self.folders.get(controller)
        if folder is None:
            return 0
        with suppress(OSError):
            found = re.search(rf"^{word}\s*(\d+)$", (folder / file).read_text(), re.MULTILINE)
            return int(found[1]) if found else 0
        return 0


def make_control_group(
    run_id: str, limits: RunLimits, parents: list[ParentCgroup] | None = None
) -> ControlGroup:
    """Groups for a run, of the controllers that are available: possibly none."""
    parents = find_parent_cgroups() if parents is None else parents
    name = f"{PREFIX}{run_id}-{secrets.token_hex(4)}"  # an attempt must not inherit another's counts
    folders: dict[str, Path] = {}
    for parent in parents:
        folder = parent.folder / name
        with suppress(OSError):  # other processes clean up at the same time
            remove_leftovers(parent.folder)
        with suppress(OSError):
            folder.mkdir()
            for controller in parent.controllers & CONTROLLERS.keys():
                if apply_limit(folder, controller, limits, parent.version):
                    folders[controller] = folder
    return ControlGroup(folders, max((parent.version for parent in parents), default=2))


def try_remove(folder: Path) -> bool:
    for pid in read_words(folder / "cgroup.procs"):
        with suppress(OSError):
            os.kill(int(pid), signal.SIGKILL)
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def remove_leftovers(parent: Path) -> None:
    """Remove the groups of runs whose host was killed; groups in use cannot be removed, and new ones are
    kept."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_ctime > LEFT_OVER_SECONDS:
                folder.rmdir()


def apply_limit(folder: Path, controller: str, limits: RunLimits, version: int) -> bool:
    """Whether the controller now limits or counts what it should."""
    memory = str(limits.memory_mb * MEGABYTE)
    settings = {
        ("memory", 1): ("memory.limit_in_bytes", memory, "memory.memsw.limit_in_bytes", memory),
        ("memory", 2): ("memory.max", memory, "memory.swap.max", "0"),
        ("pids", 1): ("pids.max", str(limits.processes), "", ""),
        ("pids", 2): ("pids.max", str(limits.processes), "", ""),
    }.get((controller, version))
    if settings is None:
        return (folder / ("cpu.stat" if version == 2 else "cpuacct.usage")).exists()
    file, value, swap_file, swap_value = settings
    try:
        (folder / file).write_text(value)
    except OSError:
        return False
    with suppress(OSError):  # a machine without swap has no such file
        if swap_file:
            (folder / swap_file).write_text(swap_value)
    return True


# Our own groups


def find_parent_cgroups(proc: Path = Path("/proc/self")) -> list[ParentCgroup]:
    try:
        mounts = parse_cgroup_mounts(proc.joinpath("mountinfo").read_text())
        lines = proc.joinpath("cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[ParentCgroup] = []
    for line in lines:
        _, names, path = line.split(":", 2)
        for name in names.split(",") if names else [""]:
            if name in mounts and (name in CONTROLLERS or not name):
                root, mount = mounts[name]
                folder = mount / os.path.relpath(path, root)
                found.append(
                    ParentCgroup(folder, frozenset({name}), 1) if name else open_unified_cgroup(folder)
                )
    usable = [parent for parent in found if parent.controllers and os.access(parent.folder, os.W_OK)]
    newest = [parent for parent in usable if parent.version == 2 and "memory" in parent.controllers]
    return newest or [parent for parent in usable if parent.version == 1 and parent.controllers != {"cpu"}]


def parse_cgroup_mounts(mountinfo: str) -> dict[str, tuple[str, Path]]:
    """The mounted group and its mount point by controller, with "" for version 2."""
    found: dict[str, tuple[str, Path]] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        _, _, _, root, mount, *_ = before.split(" ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            found.setdefault("", (root, Path(mount)))
        elif kind == "cgroup":
            for name in options.split(","):
                found.setdefault(name, (root, Path(mount)))
    return found


def open_unified_cgroup(folder: Path) -> ParentCgroup:
    """What our version 2 group limits in the groups below it; a group delegated to us is first set up to do
    so."""
    offered = read_words(folder / "cgroup.controllers") & CONTROLLERS.keys()
    if is_delegated(folder) and offered - read_words(folder / "cgroup.subtree_control"):
        with suppress(OSError):
            (folder / MEMBERS).mkdir(exist_ok=True)
            for pid in (folder / "cgroup.procs").read_text().split():
                (folder / MEMBERS / "cgroup.procs").write_text(pid)
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(offered)))
    return ParentCgroup(folder, frozenset(offered & read_words(folder / "cgroup.subtree_control")), 2)


def is_delegated(folder: Path) -> bool:
    """systemd marks services with Delegate=yes this way."""
    with suppress(OSError):
        return os.getxattr(folder, "user.delegate") == b"1"
    return False


def read_words(file: Path) -> set[str]:
    with suppress(OSError):
        return set(file.read_text().split())
    return set()
