"""Runs that want more than they may have, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.isolation import limits as limits_module
from proctor.isolation.limits import (
    CgroupUsage,
    ControlGroup,
    ParentCgroup,
    RunLimits,
    find_parent_cgroups,
    make_control_group,
    parse_cgroup_mounts,
)
from proctor.isolation.untrusted_tree import remove_tree
from proctor.runner.launch import find_exceeded_limit
from tests.runner.playing import disable_bubblewrap, play, spec_of

WALLED = pytest.mark.usefixtures("sandboxes")
SMALL = RunLimits(memory_mb=64, processes=30, disk_mb=8)

GROUPED = {name for place in find_parent_cgroups() for name in place.controllers}

ALLOCATE = "import sys; held = bytearray(int(sys.argv[1]) << 20); print('got')"


@pytest.fixture
def without_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "find_parent_cgroups", list)


@WALLED
@pytest.mark.parametrize("limit", [64, 2048])
def test_ten_times_the_memory_is_not_given(limit: int, tmp_path: Path) -> None:
    told = play(spec_of(ALLOCATE, tmp_path / "run", "640", limits=RunLimits(memory_mb=limit)))
    assert (told.ended.reason, "got" in told.lines) == (("memory", False) if limit == 64 else ("", True))


@WALLED
@pytest.mark.skipif("memory" not in GROUPED, reason="no control group for memory can be made here")
def test_memory_is_counted_over_all_processes_of_a_run(tmp_path: Path) -> None:
    code = """
        import subprocess, sys
        hold = "held = bytearray(40 << 20); print('got', flush=True); input()"
        held = [subprocess.Popen([sys.executable, "-c", hold], stdin=-1, stdout=-1) for _ in range(4)]
        for one in held:
            one.stdout.readline()
        for one in held:  # the kernel may have killed one that had already printed
            one.communicate(b"\\n")
        sys.exit(sum(one.returncode < 0 for one in held))
    """
    told = play(spec_of(code, tmp_path / "run", limits=RunLimits(memory_mb=100)))
    assert told.ended.reason == "memory"


@WALLED
@pytest.mark.usefixtures("without_groups")
def test_memory_is_limited_without_control_groups_too(tmp_path: Path) -> None:
    told = play(spec_of(ALLOCATE, tmp_path / "run", "640", limits=SMALL))
    assert (told.ended.reason, told.ended.code) == ("memory", 1)


BOMB = """
import os, sys, time
started = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        started += 1
    except BlockingIOError:
        if sys.argv[1] == "gives up":
            print(started)
            sys.exit(1)
    if started > 300:
        print("got")
        sys.exit(0)
"""


@WALLED
@pytest.mark.parametrize("groups", [True, False])
def test_a_fork_bomb_is_refused_its_processes(
    groups: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not groups:
        request.getfixturevalue("without_groups")
    told = play(spec_of(BOMB, tmp_path / "run", "gives up", limits=SMALL))
    assert told.ended.code == 1
    assert 0 < int(told.lines[-1]) < 30
    if groups and "pids" in GROUPED:
        assert told.ended.reason == "processes"


@WALLED
def test_the_bomb_would_go_off_without_the_limit(tmp_path: Path) -> None:
    told = play(spec_of(BOMB, tmp_path / "run", "gives up", limits=RunLimits(processes=1000)))
    assert told.lines == ["got"]


@WALLED
@pytest.mark.skipif("pids" not in GROUPED, reason="no control group for processes can be made here")
def test_a_fork_bomb_that_does_not_give_up_is_ended(tmp_path: Path) -> None:
    told = play(spec_of(BOMB, tmp_path / "run", "never", limits=SMALL))
    assert (told.ended.reason, told.ended.code) == ("processes", 137)


FILL = """
import itertools, sys, time
for number in itertools.count():
    with open(f"{sys.argv[1]}/file-{number}", "wb") as file:
        file.write(bytes(1 << 20))
    time.sleep(0.01)
    if number == 800:
        print("got")
        break
"""


@WALLED
@pytest.mark.parametrize("where", ["/workspace", "/tmp", "/dev/shm"])
def test_a_run_that_fills_the_disk_is_ended(where: str, tmp_path: Path) -> None:
    told = play(spec_of(FILL, tmp_path / "run", where, limits=SMALL))
    assert told.ended.reason == "disk"
    assert "got" not in told.lines


DIG = """
import os, time
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
time.sleep(100)
"""


@WALLED
def test_who_digs_too_deep_to_be_measured_is_ended_and_cleared_away(tmp_path: Path) -> None:
    told = play(spec_of(DIG, tmp_path / "run"))
    assert told.ended.reason == "disk"
    assert play(spec_of("print('next attempt')", tmp_path / "run")).lines == ["next attempt"]
    remove_tree(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@WALLED
def test_one_file_cannot_be_larger_than_the_disk_a_run_has(tmp_path: Path) -> None:
    code = "import os; os.truncate(os.open('big', os.O_CREAT | os.O_RDWR), 1 << 30)"
    told = play(spec_of(code, tmp_path / "run", limits=SMALL))
    assert told.ended.code != 0
    assert not (tmp_path / "run" / "big").stat().st_size


@WALLED
@pytest.mark.parametrize("groups", [True, False])
def test_a_run_that_computes_for_too_long_is_ended(
    groups: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not groups:
        request.getfixturevalue("without_groups")
    told = play(spec_of("while True: pass", tmp_path / "run", limits=RunLimits(cpu_seconds=1)))
    assert told.ended.reason == "cpu"


def test_limits_hold_without_walls_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disable_bubblewrap(monkeypatch)
    told = play(spec_of(ALLOCATE, tmp_path / "run", "640", limits=SMALL))
    assert told.ended.reason == "memory"


def test_who_ends_well_has_exceeded_nothing() -> None:
    assert find_exceeded_limit(0, CgroupUsage(killed_for_memory=1), ()) == ""
    assert find_exceeded_limit(1, CgroupUsage(killed_for_memory=1), ()) == "memory"


# Control groups


def test_groups_of_a_run_are_gone_when_it_has_ended(tmp_path: Path) -> None:
    spec = spec_of("print(1)", tmp_path / "run")
    play(spec)
    assert not [path for place in find_parent_cgroups() for path in place.folder.glob(f"*{spec.run_id}*")]


def test_a_version_2_group_is_told_the_limits_and_asked_what_happened(tmp_path: Path) -> None:
    place = ParentCgroup(tmp_path, frozenset({"memory", "pids"}), 2)

    made = make_control_group("r1", SMALL, [place])

    folder = made.folders["memory"]
    assert made.watched == {"memory", "processes"}
    assert (folder / "memory.max").read_text() == str(64 * 2**20)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == "30"
    (folder / "memory.events").write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    (folder / "pids.events").write_text("max 7\n")
    (folder / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    group = ControlGroup({**made.folders, "cpu": folder}, 2)
    assert group.usage() == CgroupUsage(2, 7, 1.5)


def test_what_no_group_watches_is_a_limit_of_each_process() -> None:
    alone = SMALL.per_process(frozenset())
    watched = SMALL.per_process(frozenset({"memory", "processes", "cpu"}))
    assert (alone.memory_mb, alone.processes, alone.file_mb) == (64, 30, 8)
    assert (watched.memory_mb, watched.processes, watched.file_mb) == (None, None, 8)


def test_groups_are_found_where_they_are_mounted() -> None:
    lines = [
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate",
        "31 23 0:27 /docker/1 /sys/fs/cgroup/memory ro shared:10 - cgroup cgroup rw,memory",
    ]
    found = parse_cgroup_mounts("\n".join(lines))
    assert found[""] == ("/", Path("/sys/fs/cgroup"))
    assert found["memory"] == ("/docker/1", Path("/sys/fs/cgroup/memory"))
