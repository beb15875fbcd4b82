"""Which files changed, and how."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from proctor.trace import FileChange
from proctor.workspaces import snapshot
from proctor.workspaces.snapshot import Snapshot, changes_since


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


def by_path(changes: list[FileChange]) -> dict[str, FileChange]:
    return {change.path: change for change in changes}


def test_created_changed_and_deleted_files_are_told_with_their_diffs(folder: Path) -> None:
    (folder / "kept.txt").write_text("same\n")
    (folder / "old.txt").write_text("gone\n")
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("one\ntwo\n")
    before = Snapshot.of(folder, None)

    (folder / "old.txt").unlink()
    (folder / "src" / "a.py").write_text("one\nthree")
    (folder / "new.txt").write_text("hello\n")
    changes = by_path(changes_since(before, folder))

    assert {name: change.change for name, change in changes.items()} == {
        "new.txt": "created",
        "old.txt": "deleted",
        "src/a.py": "changed",
    }
    assert changes["new.txt"].diff == "--- a/new.txt\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n"
    assert changes["src/a.py"].diff.endswith(" one\n-two\n+three\n\\ no newline at the end\n")
    assert (changes["new.txt"].size, changes["old.txt"].size) == (6, 5)


def test_a_copy_of_the_source_is_compared_with_the_source(folder: Path, tmp_path: Path) -> None:
    (folder / "a.txt").write_text("one\n")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    before = Snapshot.of(copy, folder)

    (copy / "a.txt").write_text("two\n")
    (change,) = changes_since(before, copy)

    assert before.texts == {}
    assert "-one\n+two\n" in change.diff


def test_a_file_that_was_only_touched_or_written_again_is_no_change(folder: Path) -> None:
    (folder / "a.txt").write_text("one\n")
    before = Snapshot.of(folder, None)

    (folder / "a.txt").write_text("one\n")
    os.utime(folder / "a.txt", (0, 0))

    assert changes_since(before, folder) == []


def test_a_change_that_keeps_size_and_time_is_seen(folder: Path) -> None:
    file = folder / "a.txt"
    file.write_text("one\n")
    before, found = Snapshot.of(folder, None), file.stat()

    file.write_text("two\n")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))

    assert [change.path for change in changes_since(before, folder)] == ["a.txt"]


def test_a_binary_file_has_a_hash_and_no_diff(folder: Path) -> None:
    before = Snapshot.of(folder, None)
    (folder / "image").write_bytes(b"\0\1\2")

    (change,) = changes_since(before, folder)

    assert (change.size, change.diff, change.note) == (3, "", "binary")
    assert change.sha256.startswith("ae4b3280e56e")


def test_no_link_is_followed_and_no_pipe_is_waited_for(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("hidden\n")
    before = Snapshot.of(folder, None)

    (folder / "link").symlink_to(secret / "key")
    (folder / "way").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    changes = by_path(changes_since(before, folder))

    assert changes["link"].note == f"link to {secret / 'key'}"
    assert set(changes) == {"link", "way", "pipe"}
    assert not any(change.diff or change.sha256 for change in changes.values())


def test_a_changed_mode_is_told(folder: Path) -> None:
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o644)
    before = Snapshot.of(folder, None)

    (folder / "run.sh").chmod(0o755)

    assert [change.note for change in changes_since(before, folder)] == ["mode -rw-r--r-- → -rwxr-xr-x"]


def test_diffs_are_bounded_by_file_in_total_and_in_number(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MOST_CHANGES", 5)
    monkeypatch.setattr(snapshot, "DIFF_CHARACTERS", 500)
    monkeypatch.setattr(snapshot, "ALL_DIFFS_CHARACTERS", 1200)
    before = Snapshot.of(folder, None)
    for number in range(7):
        (folder / f"{number}.txt").write_text("line\n" * 1000)

    *changes, rest = changes_since(before, folder)

    assert [bool(change.diff) for change in changes] == [True, True, True, False, False]
    assert sum(len(change.diff) for change in changes) <= 1200
    assert (rest.change, rest.note) == ("more", "2 more files")


def test_what_tools_leave_behind_is_not_listed(folder: Path) -> None:
    before = Snapshot.of(folder, None)
    for name in (".git", "__pycache__", "node_modules"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("x")

    assert changes_since(before, folder) == []


def test_two_texts_with_nothing_in_common_are_not_compared_line_by_line(folder: Path) -> None:
    (folder / "a.txt").write_text("".join(f"{number}\n" for number in range(5000)))
    before = Snapshot.of(folder, None)
    (folder / "a.txt").write_text("".join(f"{number}\n" for number in range(5000, 0, -1)))

    (change,) = changes_since(before, folder)

    assert change.note == "too much has changed for a diff"
    assert change.sha256


def test_a_file_name_of_any_bytes_can_be_kept(folder: Path) -> None:
    before = Snapshot.of(folder, None)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")).write_text("x")

    (change,) = changes_since(before, folder)

    assert change.path.encode().decode() == "?.txt"
