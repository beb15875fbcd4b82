"""Run folders as a store: found, listed, read while they grow, resumed, damaged, or of other tools."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import threading
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import pytest

from proctor.api.feed import FeedEvent
from proctor.api.log import LogQuery
from proctor.api.refusals import ApiError, NotFoundError
from proctor.api.rollout_list import RolloutQuery, RolloutViewQuery, TaskQuery
from proctor.api.rollout_view import EventQuery, EventWindow, RolloutView, SearchQuery
from proctor.api.run_list import RunListQuery
from proctor.errors import ModelTimeoutError, StoreError
from proctor.reading import rollout_handlers
from proctor.reading.exchange import ReadRequest
from proctor.reading.folders import reader as reader_module
from proctor.reading.folders import rows_file, watch
from proctor.reading.folders.find import find_run_folders
from proctor.reading.folders.library import FolderLibrary, name_folders
from proctor.reading.folders.log_file import LogFile
from proctor.reading.folders.rows_file import iterate_lines
from proctor.reading.rollout_pages import list_rollouts
from proctor.store.export import scan_table
from proctor.store.traces import read_raw_lines
from proctor.support.regular_files import read_regular
from tests.reading.conftest import Play
from tests.reading.test_entries import VERIFIERS, row

T = TypeVar("T")


@pytest.fixture(scope="module")
def played(play: Play, outputs: Path) -> Path:
    """A finished run: tasks 0 and 1 scored, 2 without an answer, 3 wrong."""
    return play(outputs, {"say 2": ModelTimeoutError("no answer"), "say 3": "something else"})


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "FRESH_SECONDS", -1.0)
    monkeypatch.setattr("proctor.reading.folders.library.FOUND_SECONDS", -1.0)
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.01)


def with_library(base: Path, read: Callable[[FolderLibrary], Coroutine[Any, Any, T]]) -> T:
    async def main() -> T:
        library = FolderLibrary(lambda: find_run_folders([base]))
        try:
            return await asyncio.wait_for(read(library), 60)
        finally:
            library.close()

    return asyncio.run(main())


def write_run(folder: Path, rows: list[bytes], **metadata: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "results.jsonl").write_bytes(b"".join(each + b"\n" for each in rows))
    if metadata:
        (folder / "metadata.json").write_bytes(msgspec.json.encode(metadata))
    return folder


# Lists


def test_a_run_is_listed_with_its_score_and_coverage(played: Path, outputs: Path) -> None:
    page = with_library(outputs, lambda library: library.list_runs(RunListQuery()))

    (info,) = page.items
    assert (info.id, info.model, info.status, info.kind) == (played.name, "scripted", "finished", "local")
    assert info.score is not None
    assert info.score.mean == pytest.approx(2 / 3)
    assert info.score.coverage == 0.75
    assert (info.progress.scored, info.progress.failed) == (6, 2)
    assert page.total == 1


def test_filters_facets_and_pages_of_runs(tmp_path: Path) -> None:
    for number in range(5):
        model = "small" if number % 2 else "large"
        date = f"2026-01-0{number + 1}T00:00:00Z"
        write_run(tmp_path / f"run{number}", [], env_id="math", model=model, status="finished", date=date)

    async def read(library: FolderLibrary) -> None:
        first = await library.list_runs(RunListQuery(limit=3))
        rest = await library.list_runs(RunListQuery(limit=3, cursor=first.next_cursor))
        assert [info.id for info in (*first.items, *rest.items)] == ["run4", "run3", "run2", "run1", "run0"]
        assert (first.total, rest.next_cursor) == (5, None)
        assert (await library.list_runs(RunListQuery(model=["small"]))).total == 2
        assert (await library.list_runs(RunListQuery(q="RUN3"))).total == 1
        assert (await library.list_runs(RunListQuery(status=["running"]))).total == 0
        facets = await library.facets(RunListQuery(model=["small"]))
        assert [(each.value, each.count) for each in facets.model] == [("large", 3), ("small", 2)]
        assert [(each.value, each.count) for each in facets.environment] == [("math", 2)]
        assert facets.total == 2

    with_library(tmp_path, read)


def test_runs_that_say_which_sweep_they_belong_to_make_a_matrix(tmp_path: Path) -> None:
    for number, (model, label) in enumerate([("a", "t=0"), ("a", "t=1"), ("b", "t=0"), ("b", "t=1")]):
        label = f"endpoint_id=my-{model} {label}"  # it says the same as the model, and is no axis of its own
        told = {"env_id": "math", "model": model, "label": label, "suite": "sweep", "status": "finished"}
        write_run(tmp_path / f"run{number}", [], **told)
    write_run(tmp_path / "alone", [], env_id="math", model="a", status="finished")

    (suite,) = with_library(tmp_path, lambda library: library.suites())

    assert suite.axes == {"model": ["a", "b"], "t": ["0", "1"]}
    assert [cell.at for cell in suite.cells][:2] == [{"model": "a", "t": "0"}, {"model": "a", "t": "1"}]


def test_folders_of_one_name_are_different_runs(tmp_path: Path) -> None:
    folders = [tmp_path / "b" / "run", tmp_path / "a" / "run", tmp_path / "a" / "other"]

    named = name_folders(folders)

    assert named["run"] == tmp_path / "a" / "run"
    assert len(named) == 3


def test_a_folder_may_be_a_run_a_base_or_a_project(tmp_path: Path) -> None:
    saved = write_run(tmp_path / "project" / "outputs" / "evals" / "x--y" / "one", [])
    own = write_run(tmp_path / "project" / "environments" / "x" / "outputs" / "evals" / "x--y" / "two", [])

    assert find_run_folders([saved]) == [saved]
    assert find_run_folders([tmp_path / "project" / "outputs"]) == [saved]
    assert sorted(find_run_folders([tmp_path / "project"])) == sorted([saved, own])


# One run


def test_every_part_of_a_run_can_be_read(played: Path, outputs: Path) -> None:
    async def read(library: FolderLibrary) -> None:
        async def ask(handler: Any, query: Any = None, **path: str) -> Any:
            return await handler(library, ReadRequest({"run_id": played.name, **path}, query))

        page = await ask(rollout_handlers.get_rollouts, RolloutQuery(sort="task"))
        assert [(entry.task, entry.number) for entry in page.items[:3]] == [(0, 0), (0, 1), (1, 0)]
        assert page.complete
        tasks = await ask(rollout_handlers.get_tasks, TaskQuery(sort="mean"))
        assert [group.task for group in tasks.items] == [3, 0, 1, 2]
        (failures,) = await ask(rollout_handlers.get_failures)
        assert (failures.kind, failures.count) == ("ModelTimeoutError", 2)
        at = {"key": page.items[2].key, "number": "0"}
        view: RolloutView = await ask(rollout_handlers.get_rollout, RolloutViewQuery(), **at)
        assert view.entry == page.items[2]
        assert view.neighbours.previous_rollout == (page.items[0].key, 1)
        assert view.neighbours.next_task == (page.items[4].key, 0)
        window: EventWindow = await ask(rollout_handlers.get_events, EventQuery(), **at)
        assert [event.text.head for event in window.items] == ["say 1", "say 1"]
        raw = await ask(rollout_handlers.get_raw, **at)
        assert msgspec.json.decode(raw.body)["example_id"] == 1
        with pytest.raises(NotFoundError):
            await ask(rollout_handlers.get_rollout, RolloutViewQuery(), key="0" * 16, number="0")

    with_library(outputs, read)


def test_the_report_of_rows_is_the_one_that_was_stored(played: Path, outputs: Path) -> None:
    async def read(library: FolderLibrary) -> dict[str, Any]:
        summary = await (await library.open(played.name)).summary()
        return cast("dict[str, Any]", msgspec.to_builtins(summary))

    stored = json.loads((played / "metadata.json").read_bytes())["summary"]

    assert json.loads(json.dumps(with_library(outputs, read))) == stored


def test_rows_appear_as_they_are_written_and_half_a_row_does_not(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [row(example_id=0)], status="running", planned=3, model="m")

    async def read(library: FolderLibrary) -> None:
        run = await library.open("run")
        index = await run.index()
        assert len(index) == 1
        with (folder / "results.jsonl").open("ab") as file:
            file.write(row(example_id=1) + b"\n" + row(example_id=2)[:20])
        assert await run.index() is index
        assert len(index) == 2
        with (folder / "results.jsonl").open("ab") as file:
            file.write(row(example_id=2)[20:] + b"\n")
        info = await run.info()
        assert (info.progress.scored, info.progress.planned) == (3, 3)

    with_library(tmp_path, read)


def test_a_resumed_run_replaces_its_file_and_is_read_anew(tmp_path: Path) -> None:
    failed = row(example_id=1, outcome="model_error", reward=None)
    folder = write_run(tmp_path / "run", [row(example_id=0), failed, row(example_id=2)], status="running")

    async def read(library: FolderLibrary) -> None:
        run = await library.open("run")
        before = await run.index()
        new = folder / ".new-results"
        new.write_bytes(b"".join(row(example_id=task) + b"\n" for task in (0, 2, 1)))
        new.replace(folder / "results.jsonl")

        index = await run.index()

        assert index is not before
        assert [entry.task for entry in list_rollouts(index, RolloutQuery()).items] == [0, 2, 1]
        assert msgspec.json.decode(await run.row(1, 0))["outcome"] == "scored"

    with_library(tmp_path, read)


def test_a_later_row_of_a_failed_rollout_counts_once_in_the_report(tmp_path: Path) -> None:
    failed = row(outcome="model_error", reward=None, error={"error": "ModelError"})
    write_run(tmp_path / "run", [failed, row(reward=0.5)], status="finished", planned=1)

    summary = with_library(tmp_path, lambda library: summarize(library, "run"))

    assert (summary.finished, summary.scored, summary.errors) == (1, 1, ())


async def summarize(library: FolderLibrary, run_id: str) -> Any:
    return await (await library.open(run_id)).summary()


def test_an_interrupted_run_says_so_and_how_to_continue(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "dead", [row()], status="running", model="m")
    alive = write_run(tmp_path / "alive", [row()], status="running", model="m")

    with (alive / "results.jsonl").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        page = with_library(tmp_path, lambda library: library.list_runs(RunListQuery(sort="name")))

    by_id = {info.id: info for info in page.items}
    assert by_id["alive"].status == "running"
    assert by_id["dead"].status == "stopped"
    cause = by_id["dead"].cause
    assert cause is not None
    assert f"--resume {folder}" in cause.next_step


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[]", b"\xff\x00", b'{"model": 7, "status": [], "config": 3}']
)
def test_damaged_metadata_hides_neither_the_run_nor_its_rows(tmp_path: Path, content: bytes | None) -> None:
    folder = write_run(tmp_path / "run", [row(), b"{not a row", row(example_id=1)])
    if content is not None:
        (folder / "metadata.json").write_bytes(content)

    async def read(library: FolderLibrary) -> None:
        (info,) = (await library.list_runs(RunListQuery())).items
        assert info.id == "run"
        if content is None or not content.startswith(b'{"model'):
            assert info.status == "failed"
            assert info.cause is not None
            assert "metadata.json" in info.cause.message
        assert len(await (await library.open("run")).index()) == 2

    with_library(tmp_path, read)


def test_a_run_whose_results_are_gone_is_still_described(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [], status="finished", model="m")
    (folder / "results.jsonl").unlink()

    info = with_library(tmp_path, lambda library: describe(library, "run"))

    assert (info.status, info.model) == ("finished", "m")


async def describe(library: FolderLibrary, run_id: str) -> Any:
    return await (await library.open(run_id)).info()


def test_a_run_of_verifiers_is_shown_with_what_it_has(tmp_path: Path) -> None:
    rows = [
        json.dumps({**VERIFIERS, "example_id": task, "reward": reward}).encode()
        for task in (0, 1)
        for reward in (0.0, 1.0)
    ]
    told = {
        "env_id": "gsm8k",
        "model": "gpt-5-mini",
        "avg_reward": 0.5,
        "num_examples": 2,
        "rollouts_per_example": 2,
        "time": 3.0,
    }
    write_run(tmp_path / "evals" / "gsm8k--gpt-5-mini" / "abc", rows, **told)

    async def read(library: FolderLibrary) -> None:
        (listed,) = (await library.list_runs(RunListQuery())).items
        assert (listed.environment, listed.status, listed.score and listed.score.mean) == (
            "gsm8k",
            "finished",
            0.5,
        )
        info = await describe(library, "abc")
        assert info.score.mean == 0.5
        assert info.score.interval is not None or info.score.tasks == 2
        page = list_rollouts(await (await library.open("abc")).index(), RolloutQuery(sort="task"))
        assert [(entry.task, entry.number) for entry in page.items] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        view = await rollout_handlers.get_rollout(
            library,
            ReadRequest({"run_id": "abc", "key": page.items[3].key, "number": "1"}, RolloutViewQuery()),
        )
        assert view.entry.reward == 1.0
        assert [event.role for event in view.events] == ["user", "assistant", "assistant"]

    with_library(tmp_path, read)


class SlowFile:
    """A results file of which only the first row can be read, until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_begun, self.go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(rows_file, "iterate_lines", self._iterate)

    def _iterate(self, file: int, start: int, closed: threading.Event) -> Iterator[tuple[int, bytes]]:
        for place, line in enumerate(iterate_lines(file, start, closed)):
            if place == 1:
                self.is_begun.set()
                self.go_on.wait(60)
            yield line


def test_a_long_file_can_be_listed_while_it_is_still_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "run", [row(example_id=task) for task in range(100)], status="finished")
    file = SlowFile(monkeypatch)

    async def read(library: FolderLibrary) -> None:
        run = await library.open("run")
        everything = asyncio.create_task(run.index(whole=True))
        await asyncio.to_thread(file.is_begun.wait)
        partial = await run.index(patience_seconds=0)
        assert (partial.complete, len(partial)) == (False, 1)
        assert not list_rollouts(partial, RolloutQuery()).complete
        file.go_on.set()
        whole = await everything
        assert (whole.complete, len(whole)) == (True, 100)

    with_library(tmp_path, read)


def test_a_search_finds_the_first_rows_while_the_others_are_still_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [{"role": "assistant", "content": "a needle"}]
    write_run(tmp_path / "run", [row(example_id=task, completion=said) for task in range(3)])
    file = SlowFile(monkeypatch)

    async def read(library: FolderLibrary) -> None:
        answer = await rollout_handlers.search_run(
            library, ReadRequest({"run_id": "run"}, SearchQuery(q="NEEDLE"))
        )
        async with aclosing(cast("AsyncGenerator[bytes, None]", answer.body)) as hits:
            assert json.loads(await anext(hits))["task"] == "0"
            assert not file.go_on.is_set()
            file.go_on.set()
            rest = b"".join([lines async for lines in hits]).splitlines()
            assert [json.loads(line)["task"] for line in rest] == ["1", "2"]

    with_library(tmp_path, read)


def test_lines_of_any_length_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_file, "CHUNK_BYTES", 4)
    lines = [b"\n", b"ab\n", b"abc\n", b"abcd\n", b"abcdefghijk\n", b"x\n"]
    path = tmp_path / "lines"
    path.write_bytes(b"".join(lines) + b"still being written")
    with path.open("rb") as file:
        found = list(iterate_lines(file.fileno(), 0))
        assert [line for _, line in found] == lines
        assert list(iterate_lines(file.fileno(), found[4][0])) == found[4:]


# What changes


def test_rows_that_the_feed_reports_are_there_even_if_the_run_was_read_a_moment_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", [row()], status="running", planned=2)
    monkeypatch.setattr(reader_module, "FRESH_SECONDS", 60.0)

    async def read(library: FolderLibrary) -> None:
        async with aclosing(cast("AsyncGenerator[FeedEvent | None, None]", library.changes())) as changes:
            assert await anext(changes) is None
            run = await library.open("run")
            assert len(await run.index()) == 1
            with (folder / "results.jsonl").open("ab") as file:
                file.write(row(example_id=1) + b"\n")
            assert await anext(changes) is not None
            assert len(await run.index()) == 2

    with_library(tmp_path, read)


def test_the_feed_tells_of_new_rows_new_runs_and_deleted_ones(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", [row()], status="running", planned=2)

    async def read(library: FolderLibrary) -> None:
        async with aclosing(cast("AsyncGenerator[FeedEvent | None, None]", library.changes())) as changes:
            assert await anext(changes) is None
            with (first / "results.jsonl").open("ab") as file:
                file.write(row(example_id=1) + b"\n")
            event = await next_of(changes, "run")
            assert event.run is not None
            assert (event.run.id, event.run.progress.scored) == ("first", 2)
            write_run(tmp_path / "second", [], status="finished")
            event = await next_of(changes, "run")
            assert event.run is not None
            assert event.run.id == "second"
            shutil.rmtree(first)
            assert (await next_of(changes, "run_deleted")).run_id == "first"

    with_library(tmp_path, read)


async def next_of(changes: AsyncIterator[FeedEvent | None], kind: str) -> FeedEvent:
    async for event in changes:
        if event is not None and event.kind == kind:
            return event
    raise AssertionError("the feed has ended")


# The log


LOG = (
    "2026-01-01T00:00:00Z INFO started\n"
    "2026-01-01T00:00:10Z WARNING slow: Provider answered 429\n"
    "2026-01-01T00:00:20Z ERROR failed\n"
    "Traceback (most recent call last):\n"
    '  File "env.py", line 3\n'
    "2026-01-01T00:00:30Z PRINT \x1b[31mhello\x1b[0m\n"
    "2026-01-01T00:00:40Z INFO ended\n"
)


@pytest.fixture
def log(tmp_path: Path) -> LogFile:
    (tmp_path / "run.log").write_text(LOG)
    return LogFile(tmp_path / "run.log")


def numbers(log: LogFile, **query: Any) -> list[int]:
    return [entry.number for entry in log.page(LogQuery(**query), is_complete=True).items]


def test_a_log_is_read_from_its_end_and_in_both_directions(log: LogFile) -> None:
    last = log.page(LogQuery(limit=2), is_complete=False)

    assert [entry.text for entry in last.items] == ["\x1b[31mhello\x1b[0m", "ended"]
    assert (last.more_before, last.more_after, last.is_complete) == (True, False, False)
    assert numbers(log, before=6, limit=2) == [4, 5]
    assert numbers(log, after=0, limit=3) == [1, 2, 3]
    assert numbers(log, around=4, limit=3) == [3, 4, 5]
    assert numbers(log, around=1, limit=3) == [1, 2, 3]
    first = log.page(LogQuery(after=0, limit=3), is_complete=True)
    assert (first.more_before, first.more_after) == (False, True)


def test_a_log_is_filtered_by_level_and_text(log: LogFile) -> None:
    assert numbers(log, level=["ERROR"]) == [3, 4, 5]  # a traceback belongs to its error
    assert numbers(log, level=["INFO"]) == [1, 6, 7]
    assert numbers(log, q="provider") == [2]
    assert numbers(log, q="nothing like it") == []
    assert log.page(LogQuery(level=["ERROR"]), is_complete=True).more_before is False


def test_the_line_nearest_to_a_time_is_found(log: LogFile) -> None:
    at = log.page(LogQuery(), is_complete=True).items[2].at
    assert at is not None

    assert [log.number_at(at + offset) for offset in (-1e9, 0, 5, 1e9)] == [1, 3, 3, 7]


def test_a_log_that_grows_or_is_replaced_is_read_on(log: LogFile, tmp_path: Path) -> None:
    numbers(log)
    with (tmp_path / "run.log").open("a") as file:
        file.write("2026-01-01T00:00:50Z INFO more\nhalf a li")
    assert numbers(log, after=7) == [8]
    (tmp_path / "run.log").write_text("2026-01-01T00:00:00Z INFO anew\n")
    assert numbers(log) == [1]


def test_a_run_without_a_log_has_an_empty_one(tmp_path: Path) -> None:
    assert LogFile(tmp_path / "none.log").page(LogQuery(), is_complete=True).items == []


# Of others


@pytest.mark.parametrize("name", ["results.jsonl", "metadata.json", "run.log", "labels.jsonl"])
def test_a_run_folder_with_a_named_pipe_in_it_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    folder = write_run(tmp_path / "planted", [row()], env_id="x", model="m", status="running")
    honest = write_run(tmp_path / "honest", [row()], env_id="x", model="m", status="finished")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)

    async def read(library: FolderLibrary) -> list[str]:
        listed = [run.id for run in (await library.list_runs(RunListQuery())).items]
        with suppress(ApiError, StoreError):
            planted = await library.open("planted")
            await planted.log(LogQuery())
            await planted.labels()
            await planted.summary()
        await (await library.open("honest")).summary()
        return listed

    assert honest.name in in_time(lambda: with_library(tmp_path, read))


@pytest.mark.parametrize("read", [scan_table, lambda folder: list(read_raw_lines(folder))])
def test_a_named_pipe_in_the_place_of_rows_is_refused_by_every_command(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    folder = write_run(tmp_path / "planted", [], env_id="x", model="m", status="finished")
    (folder / "results.jsonl").unlink(missing_ok=True)
    os.mkfifo(folder / "results.jsonl")

    def refused() -> str:
        with pytest.raises(StoreError) as raised:
            read(folder)
        return str(raised.value)

    assert "cannot be read" in in_time(refused)


def test_a_file_that_is_larger_than_the_memory_is_not_read_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_file, "LONGEST_ROW", 2**20)
    sparse = 64 * 2**20
    (tmp_path / "rows").write_bytes(b"first\n")
    with (tmp_path / "rows").open("ab") as file:
        file.truncate(sparse)
        file.seek(sparse)
        file.write(b"\nlast\n")
    opened = os.open(tmp_path / "rows", os.O_RDONLY)
    tracemalloc.start()
    try:
        lines = list(iterate_lines(opened, 0))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        os.close(opened)

    assert lines == [(0, b"first\n"), (sparse + 1, b"last\n")]
    assert most < sparse / 8

    os.truncate(tmp_path / "rows", 2**42)
    with pytest.raises(OSError, match="too large"):
        read_regular(tmp_path / "rows")


def in_time(work: Callable[[], T]) -> T:
    """What it returns; a thread that waits for a pipe would keep this process from ending."""
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(60)
    assert found, "it still waits"
    return found[0]
