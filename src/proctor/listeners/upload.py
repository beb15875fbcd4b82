"""Send a run that is played here to a Proctor server: while it is played, or afterwards.

Both read the run's folder, where a row is stored before it is reported: so nothing is queued in memory, the
run never waits for it, and what did not get through is still there to be sent by `proctor eval push`. Sending
again adds nothing: the run is known by its id, a batch by its number, a row by its task.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from proctor.api.runner import Report
from proctor.api.runs import NewUpload, RunInfo, UploadEnd, run_page
from proctor.client import runs
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context, current_context, need_context
from proctor.config.user_settings import read_user_settings
from proctor.errors import ProctorError, StoreError
from proctor.events import Event, RolloutsFinished, RunEnded, RunStarted
from proctor.run import EndedStatus, ended_status
from proctor.store.folder import RESULTS, read_line, read_metadata
from proctor.support.logs import log

LONGEST_NOTE = 2_000
EVERY_SECONDS = 1.0
AGAIN_SECONDS = 5.0
CLOSING_SECONDS = 12.0
"""Less than all listeners together have."""


class UploadNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names of an upload on the server, where they differ from those here."""

    environment: str | None = None
    name: str | None = None
    team: str | None = None


class RowUploader:
    """Sends the rows of one folder, and tracks how far it got."""

    def __init__(self, server: ServerConnection, folder: Path, names: UploadNames | None = None) -> None:
        self.server = server
        self.folder = folder
        self.names = names or UploadNames()
        self.run: RunInfo | None = None
        self.sent = 0
        self._offset = 0
        self._batch = 0
        self._waiting: list[tuple[Report, int]] = []
        """Batches with their numbers and where they end in the file; sent again exactly as they are."""

    async def open(self) -> RunInfo:
        metadata = read_metadata(self.folder)
        self.run = await runs.open_upload(
            self.server,
            NewUpload(
                client_run_id=client_run_id(metadata, self.folder),
                environment=self.names.environment or str(metadata.get("env_id") or "unknown"),
                model=str(metadata.get("model") or "unknown"),
                name=self.names.name or upload_name(metadata),
                team=self.names.team or self.server.context.team,
                metadata=metadata,
                planned=metadata.get("planned"),
                started_at=parse_started_at(metadata),
            ),
        )
        return self.run

    async def send_new(self) -> None:
        """Send every whole row that was not sent yet."""
        assert self.run is not None, "open first"
        if not self._waiting:
            self._waiting = await asyncio.to_thread(lambda: list(self._read_new()))
        while self._waiting:
            report, end = self._waiting[0]
            await runs.send_report(self.server, self.run.id, report)
            del self._waiting[0]
            self._offset = end
            self.sent += len(report.rows)
            if not self._waiting:
                self._waiting = await asyncio.to_thread(lambda: list(self._read_new()))

    async def end(self, status: EndedStatus, note: str = "") -> RunInfo:
        assert self.run is not None, "open first"
        metadata = read_metadata(self.folder)
        return await runs.end_upload(
            self.server, self.run.id, UploadEnd(status=status, note=note[:LONGEST_NOTE], metadata=metadata)
        )

    def _read_new(self) -> Iterator[tuple[Report, int]]:
        """The next rows as batches, a few at a time, so that a large run is never in memory whole."""
        lines: list[bytes] = []
        offset, size = self._offset, 0
        try:
            with (self.folder / RESULTS).open("rb") as file:
                file.seek(offset)
                for raw in file:
                    if not raw.endswith(b"\n") or size > runs.BATCH_BYTES:
                        break  # still being written, or enough for now
                    lines.append(raw)
                    size += len(raw)
        except OSError as error:
            raise StoreError(f"{self.folder / RESULTS} cannot be read: {error.strerror}.") from error
        if not lines:
            return
        ends = offset
        for batch in runs.batch_rows(lines):
            ends += sum(map(len, lines[: len(batch)]))
            del lines[: len(batch)]
            readable = [row for row in batch if read_line(bytes(row) + b"\n") is not None]
            self._batch += 1
            yield Report(batch=self._batch, rows=readable), ends


async def push_folder(
    server: ServerConnection, folder: Path, names: UploadNames | None = None
) -> tuple[RunInfo, int]:
    """Upload a run that is over; how many rows were sent."""
    sender = RowUploader(server, folder, names)
    metadata = read_metadata(folder)
    run = await sender.open()
    await sender.send_new()
    status = metadata.get("status")
    ended = ended_status(status)
    note = str(metadata.get("note") or "")
    run = await sender.end(ended, note)
    return run, sender.sent


class Upload:
    """Listens to a run, and sends its rows as they are written."""

    def __init__(self, context: Context, *, every_seconds: float = EVERY_SECONDS) -> None:
        self.context = context
        self.every_seconds = every_seconds
        self.run: RunInfo | None = None
        self.final_message = ""
        """The result, reported when it is closed."""
        self._folder: Path | None = None
        self._news = asyncio.Event()
        self._ended: RunEnded | None = None
        self._task: asyncio.Task[bool] | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunStarted) and event.folder:
            self._folder = Path(event.folder)
            self._task = asyncio.get_running_loop().create_task(self._send(self._folder), name="upload")
        elif isinstance(event, RolloutsFinished):
            self._news.set()
        elif isinstance(event, RunEnded):
            self._ended = event
            self._news.set()

    async def close(self) -> None:
        """Send the rest, within a time limit; report what was not sent by then."""
        if self._task is None:
            return
        done = False
        with suppress(TimeoutError):
            done = await asyncio.wait_for(self._task, CLOSING_SECONDS)
        self.final_message = (
            f"Uploaded as {self.run.id}: {run_page(self.context.url, self.run.id)}"
            if done and self.run is not None
            else f"Not everything reached {self.context.url}; send it with: "
            f"proctor eval push {quote(str(self._folder))}"
        )

    async def _send(self, folder: Path) -> bool:
        """Whether all of it got there."""
        async with ServerConnection(self.context, tries=2) as server:
            sender = RowUploader(server, folder)
            has_warned = False
            while True:
                is_last = self._ended is not None
                self._news.clear()
                try:
                    if sender.run is None:
                        self.run = await sender.open()
                    await sender.send_new()
                    if self._ended is not None and is_last:
                        await sender.end(ended_status(self._ended.run.status), self._ended.run.note)
                        return True
                except ProctorError as error:
                    if not has_warned:
                        has_warned = True
                        log.warning("The upload to %s waits: %s", self.context.url, error)
                    if not (isinstance(error, ServerError) and error.is_transient):
                        return False
                    await asyncio.sleep(AGAIN_SECONDS)
                    continue
                if self._ended is None:
                    await self._news.wait()
                    await asyncio.sleep(0 if self._ended is not None else self.every_seconds)


def create_upload() -> Upload:
    """Upload to the server you are logged in to; without a login, fail before anything is played."""
    return Upload(need_context(os.environ))


def create_usual_upload() -> Upload | None:
    """The upload of a user who wants every run on the server; without a login, nothing leaves here."""
    if not read_user_settings(os.environ).upload:
        return None
    context = current_context(os.environ)
    return Upload(context) if context is not None and context.token else None


def client_run_id(metadata: dict[str, Any], folder: Path) -> str:
    """The same for the same run, however often it is sent or resumed; ids alone are short, and copied."""
    own = str(metadata.get("run_id") or folder.resolve().name)
    known = [metadata.get(name) for name in ("env_id", "model", "label")]
    return f"{own}-{hashlib.sha256(msgspec.json.encode(known)).hexdigest()[:8]}"


def upload_name(metadata: dict[str, Any]) -> str:
    return " ".join(str(part) for part in (metadata.get("name"), metadata.get("label")) if part)


def parse_started_at(metadata: dict[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(metadata.get("date"))).timestamp()
    except ValueError:
        return None
