"""Run in a sandbox: read the rows of a dataset file.

    python -m proctor.runner.dataset_scan.inside < REQUEST

Started in the folder that holds the file; writes its answer there. Knows nothing of servers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from proctor.datasets.files import DataRow, UnreadableRow, scan_rows
from proctor.errors import ConfigError
from proctor.runner.dataset_scan.request import RESULT_FILE, DatasetScan, ScanRequest

MOST_COLUMNS = 100
LONGEST_COLUMN = 200
LONGEST_CELL = 2_000


def scan(request: ScanRequest, folder: Path) -> DatasetScan:
    columns: dict[str, None] = {}
    shown: list[DataRow] = []
    total, is_whole = 0, True
    try:
        for row in scan_rows(folder / request.file):
            if isinstance(row, UnreadableRow):
                if request.is_beginning:
                    is_whole = False  # it may be the row that was cut off
                    break
                return DatasetScan(problem=f"Line {row.line}: {row.problem}")
            total += 1
            if len(columns) < MOST_COLUMNS:
                columns.update(dict.fromkeys(name[:LONGEST_COLUMN] for name in row.values))
            if len(shown) < request.shown_rows:
                shown.append(row)
            elif not request.counts:
                is_whole = False
                break
    except ConfigError as error:
        return DatasetScan(problem=describe_problem(error, folder))
    names = list(columns)[:MOST_COLUMNS]
    return DatasetScan(
        columns=names,
        rows=[[describe_cell(row.values, name) for name in names] for row in shown],
        total=total if request.counts else None,
        is_whole=is_whole and not request.is_beginning and total == len(shown),
    )


def describe_problem(error: ConfigError, folder: Path) -> str:
    """Without the path in the sandbox, which says nothing to anyone."""
    return str(error).replace(f"{folder}/", "")


def describe_cell(values: dict[str, Any], name: str) -> str | None:
    if name not in values:
        return None
    value = values[name]
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


def main() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=ScanRequest)
    folder = Path.cwd()
    (folder / RESULT_FILE).write_bytes(msgspec.json.encode(scan(request, folder)))


if __name__ == "__main__":
    main()
