"""Read a dataset file in a sandbox: its first rows, or how many it has.

    scan = await scan_dataset(path, "jsonl", rules, shown_rows=20)

The sandbox gets a copy, and of a text whose first rows are wanted only the beginning. A hostile file can
waste at most the time and the memory that the rules grant. Knows nothing of databases.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import msgspec

from proctor.errors import ProctorError
from proctor.isolation.limits import RunLimits
from proctor.isolation.untrusted_tree import UntrustedFileError, discard_tree, read_file
from proctor.runner.dataset_scan.request import RESULT_FILE, DatasetScan, ScanRequest
from proctor.runner.launch import ProcessExit
from proctor.runner.own_module import SandboxRules, run_module

INSIDE = "proctor.runner.dataset_scan.inside"
SCAN_LIMITS = RunLimits(memory_mb=1_024, processes=16, disk_mb=3_072)
LARGEST_COPY = 2 * 2**30
BEGINNING_BYTES = 2**20
LONGEST_RESULT = 32 * 2**20
PREFIX = "proctor-scan-"


class ScanLimitError(ProctorError):
    """Reading a dataset took too long or too much memory, or its file is too large to be read here."""


class ScanRules(SandboxRules, frozen=True, kw_only=True):
    """What reading may use on this machine."""

    seconds: float = 60.0
    limits: RunLimits = SCAN_LIMITS


async def scan_dataset(
    file: Path, format_: str, rules: ScanRules, *, shown_rows: int = 0, counts: bool = False
) -> DatasetScan:
    """Raises ScanLimitError."""
    is_text = format_ != "parquet"
    size = file.stat().st_size
    is_beginning = is_text and not counts and size > BEGINNING_BYTES
    if size > LARGEST_COPY and not is_beginning:
        raise ScanLimitError(f"Files of more than {LARGEST_COPY // 2**30} GB are not read here.")
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=rules.work))
    try:
        name = f"rows.{format_}"
        await asyncio.to_thread(copy_file, file, folder / name, BEGINNING_BYTES if is_beginning else None)
        request = ScanRequest(file=name, shown_rows=shown_rows, counts=counts, is_beginning=is_beginning)
        try:
            exit_ = await run_module(INSIDE, request, folder, rules)
        except TimeoutError as error:
            raise ScanLimitError(f"Reading the file took longer than {rules.seconds:.0f} seconds.") from error
        return await asyncio.to_thread(read_result, folder, exit_)
    finally:
        await asyncio.to_thread(discard_tree, folder)


def copy_file(source: Path, target: Path, most: int | None) -> None:
    """Blocks."""
    if most is None:
        shutil.copyfile(source, target)
    else:
        with source.open("rb") as file:
            target.write_bytes(file.read(most))


def read_result(folder: Path, exit_: ProcessExit) -> DatasetScan:
    """Blocks."""
    try:
        return msgspec.json.decode(read_file(folder, RESULT_FILE, LONGEST_RESULT), type=DatasetScan)
    except (FileNotFoundError, UntrustedFileError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        why = f"exceeded the {exit_.reason} limit" if exit_.reason else f"ended with exit code {exit_.code}"
        raise ScanLimitError(f"The process that read the file {why}.") from error
