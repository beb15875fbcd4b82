"""A process behind walls plants hostile files wherever it can write; its host is not led astray by any."""

from __future__ import annotations

import asyncio
import inspect
import tempfile
from pathlib import Path

import pytest

from proctor.isolation.limits import RunLimits
from proctor.isolation.untrusted_tree import remove_tree
from proctor.runner.checks import INSPECTION_FILE, read_inspection
from proctor.runner.launch import ProcessSpec
from proctor.support.threads import Threads
from proctor.workspaces.folder import RolloutFolder
from proctor.workspaces.spec import WorkspaceSpec
from tests.isolation import planting
from tests.isolation.conftest import Ground, ground
from tests.isolation.planting import KINDS
from tests.isolation.users import run_as
from tests.runner.playing import PYTHON, Played, play

__all__ = ["ground"]

pytestmark = [
    pytest.mark.usefixtures("sandboxes"),
    pytest.mark.skipif(not Path(PYTHON).exists(), reason="the planter is written in Python"),
]

SECONDS = 30.0
SCRIPT = inspect.getsource(planting)
OLD_NAMES = ("order.json", "frozen.txt", "run", "given", "venv")
"""Under which a host has once written, or could be thought to."""
SHALLOW = [kind for kind in KINDS if kind != "deep"]
"""A tree that is too deep ends its run, as one does that is too large."""
EVERYTHING = [f"{kind}={kind}" for kind in SHALLOW]
ABROAD = "import os, sys; os.chdir(sys.argv.pop(1))\n"


def launched(ground: Ground, command: tuple[str, ...], stdin: bytes = b"") -> Played:
    return play(
        ProcessSpec(
            run_id="planted",
            command=(PYTHON, *command),
            folder=ground.folder / "run",
            stdin=stdin,
            limits=RunLimits(memory_mb=512, processes=100, disk_mb=100_000),
        )
    )


def plant_in_sandbox(ground: Ground, *wishes: str, script: str = SCRIPT, folder: str = "") -> None:
    where = (folder,) if folder else ()
    told = launched(ground, ("-c", script, *where, str(ground.treasure), *wishes))
    assert told.lines == ["planted"], told


@pytest.mark.parametrize("kind", SHALLOW)
def test_the_next_attempt_is_told_what_it_must_know_whatever_the_last_one_left(
    ground: Ground, kind: str
) -> None:
    def work() -> None:
        plant_in_sandbox(ground, *(f"{name}={kind}" for name in OLD_NAMES))
        told = launched(ground, ("-c", "import sys; print(sys.stdin.read())"), b"the order")
        assert told.lines == ["the order"]
        remove_tree(ground.folder / "run")
        assert not list(ground.folder.iterdir())

    run_as(ground.user, work)


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_what_is_left_in_temporary_folders_goes_with_the_attempt(ground: Ground, folder: str) -> None:
    temporary = ground.folder / "temporary"

    def work() -> None:
        temporary.mkdir(mode=0o711)
        tempfile.tempdir = str(temporary)
        try:
            plant_in_sandbox(ground, *EVERYTHING, script=ABROAD + SCRIPT, folder=folder)
        finally:
            tempfile.tempdir = None
        assert not list(temporary.iterdir())

    run_as(ground.user, work)


@pytest.mark.parametrize("kind", SHALLOW)
def test_what_a_checked_environment_leaves_in_place_of_its_finding_is_not_read(
    ground: Ground, kind: str
) -> None:
    def work() -> None:
        plant_in_sandbox(ground, f"{INSPECTION_FILE}={kind}")
        assert asyncio.run(read_inspection(ground.folder / "run")) is None

    run_as(ground.user, work)


def test_a_run_that_digs_too_deep_is_ended_and_its_folder_removed(ground: Ground) -> None:
    def work() -> None:
        command = ("-c", SCRIPT + "\nimport time; time.sleep(600)", str(ground.treasure), "tree=deep")
        assert launched(ground, command).ended.reason == "disk"
        remove_tree(ground.folder / "run")
        assert not list(ground.folder.iterdir())

    run_as(ground.user, work)


def test_an_agents_workspace_is_handed_over_compared_measured_and_removed(ground: Ground) -> None:
    async def live() -> None:
        threads = Threads()
        folder = RolloutFolder(WorkspaceSpec("work"), (), threads, within=ground.folder)
        await threads.run(folder.make)
        (folder.path / "given").write_text("the template's")
        await threads.run(folder.hand_over)
        await threads.run(folder.take_snapshot)
        ran = await folder.run([PYTHON, "-c", SCRIPT, str(ground.treasure), *EVERYTHING], seconds=SECONDS)
        assert ran.output == "planted\n", ran
        await folder.end_agent()
        await threads.run(folder.hand_over)
        changes = await threads.run(folder.changes)
        assert "+treasure" not in "".join(change.diff for change in changes)
        assert {"link", "fifo", "socket"} <= {change.path for change in changes}
        after = await folder.run_for_author(["cat", "given"], SECONDS, b"", {})
        assert after.output == "the template's"
        await folder.close()
        assert not list(ground.folder.iterdir())

    def work() -> None:
        asyncio.run(live())

    run_as(ground.user, work)
