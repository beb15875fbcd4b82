"""What foreign code plants in a folder costs nobody but itself, whatever is done with the folder."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path

import pytest

from proctor.isolation.untrusted_tree import (
    MAX_DEPTH,
    TooDeepError,
    UntrustedFileError,
    change_owner,
    discard_tree,
    occupied_bytes,
    open_root,
    read_file,
    remove_tree,
    walk,
)
from proctor.workspaces.snapshot import Snapshot, changes_since
from tests.isolation.conftest import Ground
from tests.isolation.planting import KINDS, plant
from tests.isolation.users import run_as

MEGABYTE = 2**20
SWAPS, SWAPPING_SECONDS = 300, 2.0


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_read_but_a_regular_file_with_one_name(ground: Ground, kind: str) -> None:
    def work() -> None:
        with chdir(ground.folder):
            plant(str(ground.treasure), f"file={kind}")
        with pytest.raises(UntrustedFileError):
            read_file(ground.folder, "file", MEGABYTE)

    run_as(ground.user, work)


def test_a_file_that_the_owner_of_the_folder_wrote_is_read_whole(ground: Ground) -> None:
    def work() -> None:
        (ground.folder / "file").write_bytes(b"x" * 3 * MEGABYTE)
        assert read_file(ground.folder, "file", 3 * MEGABYTE) == b"x" * 3 * MEGABYTE
        with pytest.raises(UntrustedFileError, match="larger than"):
            read_file(ground.folder, "file", 3 * MEGABYTE - 1)
        with pytest.raises(FileNotFoundError):
            read_file(ground.folder, "nothing", MEGABYTE)

    run_as(ground.user, work)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that are not its own")
def test_a_file_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("root's")
    os.chown(tmp_path, 1234, 1234)
    with pytest.raises(UntrustedFileError, match="was not written by the folder's owner"):
        read_file(tmp_path, "file", MEGABYTE)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_was_planted_is_removed_and_nothing_else(ground: Ground, kind: str) -> None:
    def work() -> None:
        with chdir(ground.folder):
            plant(str(ground.treasure), f"thing={kind}")
        remove_tree(ground.folder)
        assert not ground.folder.exists()

    run_as(ground.user, work)


def test_a_link_in_place_of_the_folder_is_removed_and_not_followed(ground: Ground) -> None:
    def work() -> None:
        (ground.folder / "link").symlink_to(ground.treasure.parent)
        remove_tree(ground.folder / "link")
        assert not list(ground.folder.iterdir())

    run_as(ground.user, work)


def test_what_cannot_be_removed_is_named_and_costs_nothing_else(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    if ground.user == "root":
        pytest.skip("root can remove anything")
    (ground.folder / "mine").mkdir()
    (ground.folder / "mine" / "file").write_text("root's")
    (ground.folder / "mine").chmod(0o755)

    def work() -> None:
        (ground.folder / "own").write_text("own")
        with pytest.raises(OSError, match="not empty"):
            remove_tree(ground.folder)
        assert [path.name for path in ground.folder.iterdir()] == ["mine"]
        discard_tree(ground.folder)
        assert "could not remove all of" in caplog.text

    if os.geteuid() != 0:
        pytest.skip("only root can leave files of another user")
    run_as(ground.user, work)


def test_a_folder_that_takes_too_long_to_remove_is_given_up(ground: Ground) -> None:
    def work() -> None:
        (ground.folder / "sub").mkdir()
        (ground.folder / "sub" / "file").write_text("own")
        with pytest.raises(OSError, match="not empty"):
            remove_tree(ground.folder, timeout_seconds=0)
        remove_tree(ground.folder)
        assert not ground.folder.exists()

    run_as(ground.user, work)


def test_a_folder_is_measured_by_what_it_occupies(ground: Ground) -> None:
    def work() -> None:
        with chdir(ground.folder):
            plant(str(ground.treasure), "hole=sparse", "shut=shut", "link=folder_link", "pipe=fifo")
        size = occupied_bytes([ground.folder, ground.folder / "gone"], 2**60)
        assert MEGABYTE <= size < 2 * MEGABYTE
        assert (ground.folder / "shut").lstat().st_mode & 0o777 == 0

    run_as(ground.user, work)


def test_a_file_with_many_names_is_counted_once_and_counting_stops_at_enough(ground: Ground) -> None:
    def work() -> None:
        (ground.folder / "one").write_bytes(b"x" * MEGABYTE)
        for number in range(10):
            os.link(ground.folder / "one", ground.folder / f"again-{number}")
        assert occupied_bytes([ground.folder], 2**60) < 2 * MEGABYTE
        for number in range(50):
            (ground.folder / f"empty-{number}").touch()
        assert 1000 < occupied_bytes([ground.folder], 1000) < 2 * MEGABYTE

    run_as(ground.user, work)


def test_a_tree_that_is_too_deep_is_more_than_enough(ground: Ground) -> None:
    def work() -> None:
        with chdir(ground.folder):
            plant(str(ground.treasure), "tree=deep")
        assert occupied_bytes([ground.folder], 10 * MEGABYTE) > 10 * MEGABYTE
        before = sum(1 for _ in Path("/proc/self/fd").iterdir())
        with open_root(ground.folder) as root, pytest.raises(TooDeepError):
            assert sum(1 for _ in walk(root)) <= MAX_DEPTH
        assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
        remove_tree(ground.folder)

    run_as(ground.user, work)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("kind", KINDS)
def test_handing_a_folder_over_touches_nothing_outside_of_it(ground: Ground, kind: str) -> None:
    if ground.user != "root":
        pytest.skip("only root can give files away")
    (ground.folder / "file").write_text("the template's")
    with chdir(ground.folder):
        plant(str(ground.treasure), f"thing={kind}")

    change_owner(ground.folder, 54_321, 54_321)

    assert (ground.folder / "file").stat().st_uid == 54_321
    ground.check()


@pytest.mark.parametrize("kind", KINDS)
def test_what_changed_in_a_folder_is_told_without_anything_from_outside(ground: Ground, kind: str) -> None:
    def work() -> None:
        before = Snapshot.of(ground.folder, None)
        with chdir(ground.folder):
            plant(str(ground.treasure), f"thing={kind}")
        changes = changes_since(before, ground.folder)
        if kind != "hard_link":  # which really is a file of the folder's
            assert "+treasure" not in "".join(change.diff for change in changes)
        assert Snapshot.of(ground.folder, None).texts.get("thing", b"") != b"treasure" or kind == "hard_link"

    run_as(ground.user, work)


# Things that are swapped for others meanwhile


@contextmanager
def swapping(folder: Path, treasure: Path) -> Iterator[None]:
    """A folder, a link to what is outside, and a FIFO take turns under one name."""
    folder.mkdir(exist_ok=True)
    over = threading.Event()

    def swap() -> None:
        number = 0
        while not over.is_set():
            number += 1
            name, other = folder / "victim", folder / f"other-{number}"
            with suppress(OSError):
                if number % 3 == 0:
                    other.mkdir()
                    (other / "treasure").write_text("own")
                elif number % 3 == 1:
                    other.symlink_to(treasure.parent)
                else:
                    os.mkfifo(other)
            with suppress(OSError):
                name.rename(folder / f"old-{number}")
            with suppress(OSError):
                other.rename(name)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def measure(folder: Path) -> None:
    occupied_bytes([folder], 2**60)


def give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        change_owner(folder, 54_321, 54_321)


def read(folder: Path) -> None:
    with suppress(UntrustedFileError, FileNotFoundError):
        assert read_file(folder, "victim/treasure", 100) == b"own"


def take_snapshots(folder: Path) -> None:
    before = Snapshot.of(folder, None)
    assert b"treasure" not in before.texts.values()
    assert "+treasure" not in "".join(change.diff for change in changes_since(before, folder))


def remove(folder: Path) -> None:
    with suppress(OSError):
        remove_tree(folder, timeout_seconds=0.2)  # a folder can be filled faster than it is emptied
    folder.mkdir(exist_ok=True)


@pytest.mark.parametrize("touch", [measure, give_away, read, take_snapshots, remove])
def test_a_swap_under_way_leads_nobody_outside(ground: Ground, touch: Callable[[Path], None]) -> None:
    def work() -> None:
        folder = ground.folder / "own"
        with swapping(folder, ground.treasure):
            deadline = time.monotonic() + SWAPPING_SECONDS
            for _ in range(SWAPS):
                touch(folder)
                ground.check()
                if time.monotonic() > deadline:
                    break

    run_as(ground.user, work)
