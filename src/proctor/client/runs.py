"""Runs on a server: start, read, list, stop, and download their results.

Each function is one request, or the pages of one list. Knows nothing of how runs are followed or shown.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qs, quote, urlsplit

import msgspec

from proctor.api.common import BASE, Page, Problem
from proctor.api.rollout_list import TaskGroup, TaskPage
from proctor.api.runner import Report, ReportReply
from proctor.api.runs import (
    Estimate,
    NewRun,
    NewRuns,
    NewUpload,
    ResumeRequest,
    RowOrder,
    RunEdit,
    RunInfo,
    RunKind,
    RunSharing,
    RunVisibilityChange,
    StartedRuns,
    StopRequest,
    UploadEnd,
)
from proctor.client.connection import ServerConnection, ServerError
from proctor.errors import ConfigError
from proctor.run import RunStatus

MOST_A_PAGE = 100
RUN_ID = re.compile(r"run-[0-9a-f]+")
METHOD_NOT_ALLOWED = 405
UNAVAILABLE = 503
READING_SECONDS, MOST_TRIES = 0.25, 240
"""How often to ask again for a run that the server is still reading, and for how long."""
CHUNK = 1 << 16
STREAM_SECONDS = 300.0
"""A large run may take a while before its first row comes."""


class RunFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which runs to list; omitted fields do not filter. Names are those of the query."""

    environment: str | None = None
    status: RunStatus | None = None
    model: str | None = None
    kind: RunKind | None = None
    team: str | None = None
    owner: str | None = None
    tag: str | None = None
    name: str | None = None
    """A part of it."""
    repository: str | None = None
    config_hash: str | None = None
    commit_sha: str | None = None


async def resolve_run(server: ServerConnection, word: str) -> str:
    """The id of a run, from its id or its name; a name that nothing has is left to the server to refuse."""
    if RUN_ID.fullmatch(word):
        return word
    found, _ = await list_runs(server, RunFilter(name=word), MOST_A_PAGE)
    named = [run for run in found if run.name == word]
    if len(named) > 1:
        ids = ", ".join(run.id for run in named)
        raise ConfigError(f"Several runs are named {word!r}: {ids}; name one by its id.")
    return named[0].id if named else word


async def start(server: ServerConnection, new: NewRun, key: str | None = None) -> RunInfo:
    return await server.post("/runs", new, RunInfo, key=key)


async def start_all(server: ServerConnection, new: Sequence[NewRun], key: str | None = None) -> list[RunInfo]:
    """Start several runs: all of them, or none."""
    try:
        started = await server.post("/runs/batch", NewRuns(list(new)), StartedRuns, key=key)
    except ServerError as error:
        if error.status != METHOD_NOT_ALLOWED:
            raise
        message = f"{server.context.url} is too old to start several runs at once; upgrade it, or start each."
        raise ServerError(Problem("too_old", message), error.status) from error
    return started.runs


async def estimate(server: ServerConnection, new: NewRun) -> Estimate:
    return await server.post("/runs/estimate", new, Estimate)


async def read_run(server: ServerConnection, run_id: str) -> RunInfo:
    return await server.get(run_path(run_id), RunInfo)


async def list_runs(
    server: ServerConnection, wanted: RunFilter, most: int | None
) -> tuple[list[RunInfo], bool]:
    """The newest runs, and whether there are more."""
    query = msgspec.to_builtins(wanted)
    runs: list[RunInfo] = []
    cursor: str | None = None
    while most is None or len(runs) < most:
        size = MOST_A_PAGE if most is None else min(MOST_A_PAGE, most - len(runs))
        page = await server.get("/runs", Page[RunInfo], **query, limit=size, cursor=cursor)
        runs += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return runs[:most], cursor is not None


async def stop(server: ServerConnection, run_id: str, reason: str = "") -> RunInfo:
    return await server.post(f"{run_path(run_id)}/stop", StopRequest(reason), RunInfo)


async def resume(server: ServerConnection, run_id: str, how: ResumeRequest) -> RunInfo:
    return await server.post(f"{run_path(run_id)}/resume", how, RunInfo)


async def edit(server: ServerConnection, run_id: str, change: RunEdit) -> RunInfo:
    return await server.patch(run_path(run_id), change, RunInfo)


async def read_sharing(server: ServerConnection, run_id: str) -> RunSharing:
    return await server.get(f"{run_path(run_id)}/visibility", RunSharing)


async def share(server: ServerConnection, run_id: str, change: RunVisibilityChange) -> RunSharing:
    return await server.put(f"{run_path(run_id)}/visibility", change, RunSharing)


async def delete(server: ServerConnection, run_id: str) -> None:
    await server.delete(run_path(run_id))


async def iterate_rows(
    server: ServerConnection,
    run_id: str,
    *,
    failed: bool = False,
    task: str | None = None,
    order: RowOrder = "arrival",
) -> AsyncIterator[msgspec.Raw]:
    """Rows as they are in results.jsonl, requested as they are consumed."""
    query = {"failed": failed, "task": task, "order": order}
    path = f"{run_path(run_id)}/rows"
    async for row in server.iterate_pages(path, Page[msgspec.Raw], limit=MOST_A_PAGE, **query):
        yield row


async def iterate_task_groups(
    server: ServerConnection, run_id: str, task: str | None = None
) -> AsyncIterator[TaskGroup]:
    """The tasks of a run in order, each with the mean and spread of its rewards; or one, by its id."""
    path = f"{run_path(run_id)}/tasks"
    offset, tries = 0, 0
    while True:
        page = await server.get(path, TaskPage, q=task, limit=MOST_A_PAGE, offset=offset)
        if not page.complete:  # the server still reads a long run
            tries += 1
            if tries > MOST_TRIES:
                problem = Problem("not_ready", f"The server still reads {run_id}; try again.")
                raise ServerError(problem, UNAVAILABLE)
            await asyncio.sleep(READING_SECONDS)
            continue
        offset += len(page.items)
        for group in page.items:
            if task is None or str(group.task) == task:
                yield group
        if offset >= page.total or not page.items:
            return


async def download_rows(server: ServerConnection, run_id: str, out: BinaryIO) -> None:
    """The whole results.jsonl."""
    path = f"{run_path(run_id)}/results.jsonl"
    async with server.open("GET", path, seconds=STREAM_SECONDS) as answer:
        async for chunk in answer.content.iter_chunked(CHUNK):
            out.write(chunk)


async def download_metadata(server: ServerConnection, run_id: str) -> bytes:
    return await server.ask("GET", f"{run_path(run_id)}/metadata.json")


# Runs that are played elsewhere

BATCH_ROWS = 200
BATCH_BYTES = 4_000_000


async def open_upload(server: ServerConnection, new: NewUpload) -> RunInfo:
    """Start an upload, or continue one that the same owner started under the same id."""
    return await server.post("/uploads", new, RunInfo)


async def send_report(server: ServerConnection, run_id: str, report: Report) -> ReportReply:
    return await server.post(f"/uploads/{quote(run_id, safe='')}/reports", report, ReportReply)


async def end_upload(server: ServerConnection, run_id: str, end: UploadEnd) -> RunInfo:
    return await server.post(f"/uploads/{quote(run_id, safe='')}/end", end, RunInfo)


def batch_rows(lines: Sequence[bytes] | Iterator[bytes]) -> Iterator[list[msgspec.Raw]]:
    """Rows in batches that fit into one request; a row larger than that is sent alone."""
    batch: list[msgspec.Raw] = []
    size = 0
    for raw in lines:
        row = raw.strip()
        if batch and (len(batch) >= BATCH_ROWS or size + len(row) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(msgspec.Raw(row))
        size += len(row)
    if batch:
        yield batch


def run_path(run_id: str) -> str:
    return f"/runs/{quote(run_id, safe='')}"


def is_run_id(word: str) -> bool:
    """Whether a word can only mean a run on a server: folders come first."""
    return (word.startswith("run-") or parse_link(word) is not None) and not Path(word).exists()


class RunLink(msgspec.Struct, frozen=True):
    """A run that was shared by link."""

    server_url: str
    run_id: str
    link: str


def parse_link(word: str) -> RunLink | None:
    """The link of a run, if a word is one: the address of its page, or of the run in the API."""
    parts = urlsplit(word)
    before, found, run_id = parts.path.rpartition("/runs/")
    before = before.removesuffix(BASE)
    link = parse_qs(parts.query).get("link", [""])[0]
    if parts.scheme not in ("http", "https") or not found or not link or "/" in run_id:
        return None
    return RunLink(f"{parts.scheme}://{parts.netloc}{before}", run_id, link)
