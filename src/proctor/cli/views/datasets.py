"""Datasets as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.cli.views.environments import show_rows
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_moment, format_quantity
from proctor.cli.views.page import TableColumn, print_table
from proctor.datasets.references import SHORT_HASH, DatasetReference

if TYPE_CHECKING:
    from proctor.api.common import Page
    from proctor.api.datasets import DatasetInfo, DatasetPushResult, DatasetVersion
    from proctor.datasets.dataset import DatasetReport
    from proctor.datasets.files import DataRow

SHOWN_COLUMNS = 30
LONGEST_VALUE = 300


def format_size(size: int) -> str:
    """1234567 → 1.2 MB."""
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return format_quantity(size, "byte")


def format_row_count(rows: int | None) -> str:
    return "-" if rows is None else f"{rows:,}"


def format_columns(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - SHOWN_COLUMNS} more" if len(columns) > SHOWN_COLUMNS else ""
    return ", ".join(columns[:SHOWN_COLUMNS]) + more


def show_pushed(result: DatasetPushResult) -> None:
    exact = DatasetReference(result.dataset.owner, result.dataset.name, result.version.sha256)
    if not result.created:
        echo(f"{exact.slug} had exactly this content already; its latest version is {exact.short}.")
    else:
        rows = "" if result.version.rows is None else f", {format_quantity(result.version.rows, 'row')}"
        echo(f"Pushed {exact.short} ({result.dataset.visibility}{rows}, {format_size(result.version.size)}).")
    echo(f'  dataset = "{exact.short}"')


def show_datasets(page: Page[DatasetInfo]) -> None:
    columns = (
        *("name", "version", "format"),
        TableColumn("rows", right=True),
        TableColumn("size", right=True),
        *("visibility", "changed", TableColumn("description", may_shrink=True)),
    )
    rows = [
        (
            each.slug,
            each.latest.sha256[:SHORT_HASH] if each.latest else "-",
            each.latest.format if each.latest else "-",
            format_row_count(each.latest.rows) if each.latest else "-",
            format_size(each.latest.size) if each.latest else "-",
            each.visibility,
            format_moment(each.updated_at),
            each.description,
        )
        for each in page.items
    ]
    print_table(columns, rows, nothing="No dataset on the server matches, or you may not see it.")
    if page.next_cursor:
        echo(f"There are more: --cursor {page.next_cursor}", err=True)


def show_dataset(
    dataset: DatasetInfo, version: DatasetVersion | None, versions: Sequence[DatasetVersion]
) -> None:
    echo(dataset.slug)
    rows = [
        ("description", dataset.description),
        ("visibility", dataset.visibility),
        ("your role", dataset.role or ""),
    ]
    if version is not None:
        rows += [
            ("version", version.sha256),
            ("format", version.format),
            ("rows", "" if version.rows is None else f"{version.rows:,}"),
            ("columns", format_columns(version.columns)),
            ("size", format_size(version.size)),
            ("pushed", f"{format_moment(version.pushed_at)} by {version.pushed_by}"),
        ]
    show_rows("", rows)
    if len(versions) > 1:
        echo("\nVersions")
        print_table(
            ("version", TableColumn("rows", right=True), TableColumn("size", right=True), "pushed", "by"),
            [
                (
                    each.sha256[:SHORT_HASH],
                    format_row_count(each.rows),
                    format_size(each.size),
                    format_moment(each.pushed_at),
                    each.pushed_by,
                )
                for each in versions
            ],
        )


def show_file_report(report: DatasetReport) -> None:
    """A file here, as `info` shows it."""
    echo(report.path)
    rows = [
        ("version", report.sha256),
        ("format", report.format),
        ("rows", f"{report.rows:,}"),
        ("columns", format_columns(report.columns)),
        ("size", format_size(report.bytes)),
        ("problems", f"{report.problem_count:,}" if report.problem_count else ""),
    ]
    show_rows("", rows)


def show_validation(report: DatasetReport) -> None:
    for line in report.describe_problems():
        echo(line, err=True)
    if not report.is_valid:
        return
    ignored = f" Ignored columns: {format_columns(report.ignored_columns)}." if report.ignored_columns else ""
    echo(
        f"{report.path} is valid: {format_quantity(report.rows, 'row')} with "
        f"{'metadata' if report.mode == 'metadata' else 'prompts'}, {format_size(report.bytes)}.{ignored}"
    )


def show_preview(rows: Sequence[DataRow]) -> None:
    for row in rows:
        show_rows(f"row {row.index}", [(name, format_value(value)) for name, value in row.values.items()])
    if not rows:
        echo("It has no rows.")


def format_value(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
