"""A run's folder through crashes, damage, full disks and a second writer."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import Failure, StoreError
from proctor.report.lines import RolloutLine
from proctor.rollout import Rollout, RolloutKey
from proctor.store.folder import RunFolder, StoredRollouts, read_metadata, read_rows
from proctor.store.rows import encode_row


def encoded(rollouts: Sequence[Rollout]) -> list[bytes]:
    return [encode_row(rollout) for rollout in rollouts]


Make = Callable[..., Rollout]

BUSY = Failure("OverloadedError", "busy", "generation")


@contextmanager
def opened(path: Path) -> Iterator[RunFolder]:
    folder = RunFolder(path)
    try:
        yield folder
    finally:
        folder.close()


def loaded(path: Path, owed_whole: int = 0) -> tuple[StoredRollouts, list[RolloutKey]]:
    """What a folder holds, and the rollouts it showed."""
    seen: list[RolloutLine] = []
    with opened(path) as folder:
        stored = folder.load(seen.append, owed_whole)
    return stored, [line.key for line in seen]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def keys_of(path: Path) -> list[tuple[Any, int]]:
    return [(row["example_id"], row["rollout"]) for row in lines_of(path / "results.jsonl")]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond this size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# Crashes


def test_what_was_appended_is_there_for_the_next_process(tmp_path: Path, made: Make) -> None:
    with opened(tmp_path / "run") as folder:
        folder.append(encoded([made(0, 0), made(0, 1)]))
        folder.append(encoded([made("a task", 0)]))
        assert keys_of(tmp_path / "run") == [(0, 0), (0, 1), ("a task", 0)], "before it is closed"

    stored, seen = loaded(tmp_path / "run")

    assert seen == [(0, 0), (0, 1), ("a task", 0)]
    assert stored.settled == {key: made(key[0]).task.hash for key in seen}
    assert (stored.owed, stored.faults) == ({}, 0)
    assert not (tmp_path / "run" / "superseded.jsonl").exists()


def test_a_file_cut_at_any_byte_loses_only_the_cut_row_and_can_be_appended_to(
    tmp_path: Path, made: Make
) -> None:
    rollouts = [made(number, columns={"said": "züge\n" * 2}) for number in range(4)]
    rows = [encode_row(rollout) for rollout in rollouts]
    whole = b"".join(rows)
    file = tmp_path / "results.jsonl"

    for size in range(len(rows[0] + rows[1]), len(whole) + 1):
        file.write_bytes(whole[:size])
        complete = whole[:size].count(b"\n")
        with opened(tmp_path) as folder:
            stored = folder.load(lambda _: None)
            folder.append(encoded(rollouts[complete:]))
        assert list(stored.settled) == [(number, 0) for number in range(complete)], size
        assert stored.faults == (0 if whole[:size].endswith(b"\n") else 1), size
        assert file.read_bytes() == whole, size


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00" * 4096 + b"\n",
        b"\xff\xfe\xfd\n",
        b"\n",
        b"null\n",
        b"[1, 2]\n",
        b'{"example_id": 1}\n',
        b'{"example_id": "\xff", "rollout": 0, "outcome": "scored"}\n',
        b'{"example_id": 1, "rollout": 0, "outcome": "splendid"}\n',
        b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": "good"}\n',
        b"[" * 100_000 + b"\n",
        b'{"example_id": 1, "rollout": 0, "outc',
    ],
    ids=[
        "zeros",
        "bytes",
        "blank",
        "null",
        "list",
        "lacking",
        "no utf-8",
        "outcome",
        "reward",
        "deep",
        "half",
    ],
)
def test_garbage_in_the_middle_costs_nothing_but_itself(tmp_path: Path, made: Make, garbage: bytes) -> None:
    before, after = encode_row(made(0)), encode_row(made(2))
    (tmp_path / "results.jsonl").write_bytes(before + garbage + after + after.replace(b"say 2", b"say 3"))

    stored, seen = loaded(tmp_path)

    if garbage.endswith(b"\n"):
        assert seen == [(0, 0), (2, 0)]
        assert (tmp_path / "results.jsonl").read_bytes() == before + after
    else:
        assert seen == [(0, 0), (2, 0)], "the half row takes the row it runs into with it, and no other"
    assert stored.faults == 1
    assert garbage.rstrip(b"\n") in (tmp_path / "superseded.jsonl").read_bytes()


def test_a_row_that_is_damaged_where_nobody_looks_still_counts(tmp_path: Path, made: Make) -> None:
    damaged = encode_row(made(0)).replace(b'"content":"say 0"', b'"content":"\xff\xff\xff"')
    (tmp_path / "results.jsonl").write_bytes(damaged + encode_row(made(1)))

    _, seen = loaded(tmp_path)

    assert seen == [(0, 0), (1, 0)]
    assert list(read_rows(tmp_path, seen)) == [(1, 0)]


def test_of_two_rows_for_one_rollout_the_first_counts_and_the_other_is_set_aside(
    tmp_path: Path, made: Make
) -> None:
    first, second = encode_row(made(0)), encode_row(made(0)).replace(b'"reward":1.0', b'"reward":0.0')
    (tmp_path / "results.jsonl").write_bytes(first + encode_row(made(1)) + second)

    stored, seen = loaded(tmp_path)

    assert seen == [(0, 0), (1, 0)]
    assert stored.owed == {}
    assert (tmp_path / "results.jsonl").read_bytes() == first + encode_row(made(1))
    assert (tmp_path / "superseded.jsonl").read_bytes() == second


def test_a_rollout_that_failed_is_owed_again_and_its_row_is_set_aside(tmp_path: Path, made: Make) -> None:
    with opened(tmp_path) as folder:
        folder.append(encoded([made(0), made(1, failure=BUSY), made(2, outcome="excluded")]))

    stored, seen = loaded(tmp_path)

    assert seen == [(0, 0), (2, 0)]
    assert list(stored.owed) == [(1, 0)]
    error = stored.owed[1, 0].error
    assert error is not None
    assert (error.error, error.message) == ("OverloadedError", "busy")
    assert keys_of(tmp_path) == [(0, 0), (2, 0)]
    assert [row["example_id"] for row in lines_of(tmp_path / "superseded.jsonl")] == [1]


def test_a_rollout_that_failed_is_remembered_by_a_process_after_the_next(tmp_path: Path, made: Make) -> None:
    """The next one set its row aside, and was killed before it had played it again."""
    with opened(tmp_path) as folder:
        folder.append(encoded([made(0), made(1, failure=BUSY), made(2, failure=BUSY)]))
        folder.load(lambda _: None)
        folder.append(encoded([made(2)]))

    stored, seen = loaded(tmp_path)

    assert seen == [(0, 0), (2, 0)]
    assert list(stored.owed) == [(1, 0)]
    assert stored.owed[1, 0].error is not None
    assert len(lines_of(tmp_path / "superseded.jsonl")) == 2


def test_a_folder_in_which_everything_failed_owes_everything(tmp_path: Path, made: Make) -> None:
    with opened(tmp_path) as folder:
        folder.append(encoded([made(0, failure=BUSY), made(1, failure=BUSY)]))
        folder.load(lambda _: None)
        folder.append(encoded([made(0)]))

    assert keys_of(tmp_path) == [(0, 0)]
    assert len(lines_of(tmp_path / "superseded.jsonl")) == 2


def test_a_rollout_that_worked_in_the_end_is_not_owed(tmp_path: Path, made: Make) -> None:
    (tmp_path / "results.jsonl").write_bytes(encode_row(made(0, failure=BUSY)) + encode_row(made(0)))

    stored, seen = loaded(tmp_path)

    assert seen == [(0, 0)]
    assert stored.owed == {}


def test_a_group_that_lacks_a_rollout_is_owed_whole(tmp_path: Path, made: Make) -> None:
    with opened(tmp_path) as folder:
        folder.append(encoded([made(0, 0), made(0, 1), made(1, 0), made(2, 0), made(2, 1, failure=BUSY)]))

    stored, seen = loaded(tmp_path, owed_whole=2)

    assert seen == [(0, 0), (0, 1)]
    assert sorted(stored.owed) == [(1, 0), (2, 0), (2, 1)]
    assert keys_of(tmp_path) == [(0, 0), (0, 1)]


# A second writer


def test_a_second_writer_is_refused(tmp_path: Path, made: Make) -> None:
    with opened(tmp_path) as folder:
        with pytest.raises(StoreError, match="Another process is writing to"):
            RunFolder(tmp_path)
        folder.append(encoded([made(0)]))

    with opened(tmp_path) as folder:
        folder.append(encoded([made(1)]))
    assert keys_of(tmp_path) == [(0, 0), (1, 0)]


def test_a_second_writer_is_refused_after_the_file_was_mended_too(tmp_path: Path, made: Make) -> None:
    (tmp_path / "results.jsonl").write_bytes(encode_row(made(0)) + encode_row(made(1))[:-10])

    with opened(tmp_path) as folder:
        folder.load(lambda _: None)
        with pytest.raises(StoreError, match="Another process"):
            RunFolder(tmp_path)


def test_a_writer_that_opened_the_file_before_it_was_mended_writes_nowhere_else(
    tmp_path: Path, made: Make
) -> None:
    """The second process opens the file, the first replaces it and leaves, the second then locks a ghost."""
    script = f"""
import fcntl, sys
from pathlib import Path
from proctor.store.folder import RunFolder
lock = fcntl.flock
def waiting(*words):
    print("opened", flush=True)
    sys.stdin.readline()
    return lock(*words)
fcntl.flock = waiting
RunFolder(Path({str(tmp_path)!r}))
"""
    (tmp_path / "results.jsonl").write_bytes(encode_row(made(0)) + encode_row(made(1))[:-10])
    with opened(tmp_path) as folder:
        second = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert second.stdout is not None
        assert second.stdout.readline() == "opened\n"
        folder.load(lambda _: None)

    _, complaint = second.communicate("go on\n", timeout=30)

    assert "Another process is writing" in complaint


# A full disk


def test_a_full_disk_leaves_a_file_that_loads_and_later_writes_succeed(tmp_path: Path, made: Make) -> None:
    file = tmp_path / "results.jsonl"
    with opened(tmp_path) as folder:
        folder.append(encoded([made(0)]))
        before = file.read_bytes()
        with (
            room_for(len(before) + 100),
            pytest.raises(StoreError, match=r"File too large.*1 finished rollouts are not saved.*--resume"),
        ):
            folder.append(encoded([made(1)]))
        assert file.read_bytes() == before, "half a row is taken back"
        with room_for(len(before)), pytest.raises(StoreError, match="2 finished rollouts are not saved"):
            folder.append(encoded([made(2)]))

        folder.append(encoded([made(3)]))

        assert keys_of(tmp_path) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_what_did_not_fit_is_tried_once_more_when_the_folder_is_closed(tmp_path: Path, made: Make) -> None:
    folder = RunFolder(tmp_path)
    with room_for(10), pytest.raises(StoreError):
        folder.append(encoded([made(0)]))

    folder.close()
    folder.close()

    assert keys_of(tmp_path) == [(0, 0)]


def test_a_disk_that_is_full_when_a_run_is_picked_up_costs_nothing(tmp_path: Path, made: Make) -> None:
    content = encode_row(made(0)) + encode_row(made(1)) + encode_row(made(2))[:-10]
    (tmp_path / "results.jsonl").write_bytes(content)

    with (
        room_for(len(content) // 2),
        opened(tmp_path) as folder,
        pytest.raises(StoreError, match="Cannot pick up the results in"),
    ):
        folder.load(lambda _: None)

    assert (tmp_path / "results.jsonl").read_bytes() == content
    _, seen = loaded(tmp_path)
    assert seen == [(0, 0), (1, 0)]
    assert not list(tmp_path.glob(".new-*"))


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match=r"Cannot write results to .*file/run: Not a directory"):
        RunFolder(tmp_path / "file" / "run")


# Metadata


def test_metadata_is_replaced_whole_while_others_read_it(tmp_path: Path) -> None:
    over = threading.Event()
    sizes: list[int] = []

    def read_on() -> None:
        while not over.is_set():
            sizes.append(len(read_metadata(tmp_path)["text"]))

    with opened(tmp_path) as folder:
        folder.save_metadata({"text": "x"})
        reader = threading.Thread(target=read_on)
        reader.start()
        for number in range(60):
            folder.save_metadata({"text": "x" * (number * 5_000)})
        over.set()
        reader.join()

    assert len(set(sizes)) > 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metadata.json", "results.jsonl"]


def test_metadata_that_cannot_be_written_leaves_the_old_one_and_no_litter(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        folder.save_metadata({"kept": True})
        with room_for(20), pytest.raises(StoreError, match=r"Cannot write .*metadata\.json: File too large"):
            folder.save_metadata({"text": "x" * 1_000})

    assert read_metadata(tmp_path) == {"kept": True}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metadata.json", "results.jsonl"]


def test_what_a_crash_left_half_written_is_swept_away(tmp_path: Path, made: Make) -> None:
    with opened(tmp_path) as folder:
        folder.append(encoded([made(0)]))
    (tmp_path / ".new-metadata.json-12345678").write_text('{"half":')
    (tmp_path / ".new-results.jsonl-12345678").write_text("half")

    loaded(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_metadata_may_hold_what_is_no_json(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        folder.save_metadata({"error": "half \ud83d a smile", "path": tmp_path})

    assert read_metadata(tmp_path) == {"error": "half ? a smile", "path": str(tmp_path)}


def test_everybody_may_read_what_everybody_may_read_elsewhere(tmp_path: Path, made: Make) -> None:
    old = os.umask(0o022)
    try:
        with opened(tmp_path) as folder:
            folder.append(encoded([made(0), made(1, failure=BUSY)]))
            folder.save_metadata({})
            folder.load(lambda _: None)
    finally:
        os.umask(old)

    modes = {path.name: stat.filemode(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["metadata.json", "results.jsonl", "superseded.jsonl"], "-rw-r--r--")


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"a": "\xff"}'], ids=repr)
def test_a_folder_without_sound_metadata_is_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "metadata.json").write_bytes(content)

    with pytest.raises(StoreError, match=r"is not a run: metadata.json cannot be read|is damaged"):
        read_metadata(tmp_path)
