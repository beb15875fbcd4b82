"""Write a foreign run as an ordinary run folder, once: the same source gives the same folder.

Rows are streamed, and the summary is computed from them like that of any run. Knows nothing of the formats.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec

from proctor.config.prices import find_price
from proctor.contracts import PASS_THRESHOLD
from proctor.errors import StoreError
from proctor.formats.foreign_run import ForeignRun, LeftOut, Row
from proctor.report.lines import RolloutLine
from proctor.report.summary import Summary
from proctor.report.tally import Tally
from proctor.store.folder import UNREADABLE, RunFolder, read_metadata
from proctor.store.locate import folder_of_runs
from proctor.store.metadata import closing_metadata, format_time, package_versions
from proctor.store.rows import to_json_value

KEPT_PROBLEMS = 20
UNFINISHED = ".importing-"


class ImportedRun(msgspec.Struct, frozen=True):
    """What became of one run of a source."""

    tool: str
    source: str
    folder: str
    run: str
    environment: str
    model: str
    rollouts: int
    left_out: int
    """Rollouts of the source that could not be read."""
    problems: tuple[str, ...]
    is_new: bool
    """False if it had been imported before."""
    reward: float | None


def save_run(run: ForeignRun, base: Path) -> ImportedRun:
    """Import one run below a folder; an earlier import of the same run is replaced."""
    run_id = derive_id(run)
    folder = folder_of_runs(base, run.env_id or "unnamed", run.model or "unknown", run.label) / run_id
    is_new = refuse_to_overwrite(folder)
    unfinished = base / f"{UNFINISHED}{run_id}"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        written = write_folder(run, run_id, unfinished)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not is_new:
            shutil.rmtree(folder)
        unfinished.rename(folder)
    except OSError as error:
        raise StoreError(f"Cannot write {folder}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return ImportedRun(
        run.tool,
        str(run.source),
        str(folder),
        run_id,
        run.env_id,
        run.model,
        written.tally.finished,
        written.left_out,
        tuple(written.problems),
        is_new,
        written.mean_reward,
    )


def derive_id(run: ForeignRun) -> str:
    """The same for the same run of the same tool, wherever its file lies."""
    named = (run.tool, run.id or str(run.source.resolve()), run.env_id, run.model, run.label)
    return hashlib.sha256("\0".join(named).encode(errors="replace")).hexdigest()[:8]


def refuse_to_overwrite(folder: Path) -> bool:
    """Whether the folder is free; one that holds anything but an import is an error."""
    if not folder.exists():
        return True
    if "imported" not in read_metadata(folder):
        raise StoreError(f"{folder} holds a run that was not imported; choose another folder with -o.")
    return False


class WrittenRun:
    """The rows of a run while they are written: counted, and what is wrong with some of them noted."""

    def __init__(self, run: ForeignRun) -> None:
        threshold = PASS_THRESHOLD if run.pass_threshold is None else run.pass_threshold
        self.tally = Tally(threshold)
        self.left_out = 0
        self.problems: list[str] = []
        self.first_start: float | None = None
        self.seen: set[tuple[Any, int]] = set()
        self.mean_reward: float | None = None

    def encode(self, row: Row) -> bytes | None:
        """One line of the results; None for a row that cannot be one."""
        try:
            raw = encode_line(row)
            line = msgspec.json.decode(raw, type=RolloutLine)
        except UNREADABLE as error:
            self.leave_out(LeftOut(f"{row.get('example_id')}/{row.get('rollout')}", str(error)))
            return None
        if line.key in self.seen:
            self.leave_out(LeftOut(f"{line.example_id}/{line.rollout}", "the source has this rollout twice"))
            return None
        self.seen.add(line.key)
        self.tally.add(line)
        start = line.timing.start_time
        if start and (self.first_start is None or start < self.first_start):
            self.first_start = start
        return raw

    def leave_out(self, part: LeftOut) -> None:
        self.left_out += 1
        if len(self.problems) < KEPT_PROBLEMS:
            self.problems.append(f"{part.where}: {part.problem}")


def write_folder(run: ForeignRun, run_id: str, path: Path) -> WrittenRun:
    written = WrittenRun(run)
    folder = RunFolder(path)
    try:
        for row in run.rows():
            if isinstance(row, LeftOut):
                written.leave_out(row)
            elif (raw := written.encode(row)) is not None:
                folder.append([raw])
        summary = summarize(run, written)
        written.mean_reward = summary.reward.mean
        folder.save_metadata(build_metadata(run, run_id, written, summary))
    finally:
        folder.close()
    return written


def encode_line(row: Row) -> bytes:
    try:
        return msgspec.json.encode(row) + b"\n"
    except Exception:  # half characters, keys that are not text
        return msgspec.json.encode(to_json_value(row)) + b"\n"


def summarize(run: ForeignRun, written: WrittenRun) -> Summary:
    tally = written.tally
    price = find_price(run.model)
    prices = {name: found for name in tally.other_usage if (found := find_price(name)) is not None}
    return tally.summary(
        planned=count_planned(run, written),
        rollouts_per_task=run.rollouts_per_example or 1,
        model=run.model,
        prices=prices if price is None else {**prices, run.model: price},
    )


def count_planned(run: ForeignRun, written: WrittenRun) -> int:
    """What the source asked for; where it does not say, what it holds, readable or not."""
    held = written.tally.finished + written.left_out
    return held if run.planned is None else max(run.planned, held)


def build_metadata(run: ForeignRun, run_id: str, written: WrittenRun, summary: Summary) -> dict[str, Any]:
    started = run.started_at if run.started_at is not None else written.first_start
    known = {
        "date": None if started is None else format_time(started),
        "time": run.seconds,
        "base_url": run.base_url or None,
        "agent": run.agent or None,
        "rollouts_per_example": run.rollouts_per_example,
    }
    return {
        "run_id": run_id,
        "status": run.status,
        "note": run.note,
        "env_id": run.env_id,
        "name": None,
        "label": run.label,
        "env_args": dict(run.env_args),
        "model": run.model,
        "sampling_args": dict(run.sampling_args),
        **{name: value for name, value in known.items() if value is not None},
        "planned": summary.planned,
        "settled": summary.scored + summary.outcomes.get("excluded", 0),
        "imported": {
            "tool": run.tool,
            "tool_version": run.tool_version or None,
            "run": run.id or None,
            "source": str(run.source.resolve()),
            "at": format_time(time.time()),
            "left_out": written.left_out,
            "problems": written.problems,
            "details": dict(run.details),
        },
        "version_info": package_versions(),
        **closing_metadata(summary),
    }
