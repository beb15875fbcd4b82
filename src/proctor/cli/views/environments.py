"""Environments as text: the list, one of them, and what a checkup found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.cli.views.escape import echo, one_line, strip_escapes
from proctor.cli.views.page import TableColumn, print_table
from proctor.trace import text_of

if TYPE_CHECKING:
    from proctor.checkup.finding import CheckupReport
    from proctor.checkup.info import EnvironmentDetails, LoadedDetails
    from proctor.packages.catalog import CatalogEntry
    from proctor.packages.source import Argument


def show_entries(entries: Sequence[CatalogEntry]) -> None:
    rows = [
        (
            entry.name,
            entry.version or "-",
            entry.kind,
            describe_location(entry),
            f"cannot be run: {entry.problem}" if entry.problem else entry.description,
        )
        for entry in entries
    ]
    columns = ("name", "version", "kind", "location", TableColumn("description", may_shrink=True))
    print_table(columns, rows, nothing="No environments found; create one with proctor env init my-env.")


def describe_location(entry: CatalogEntry) -> str:
    """Where it is, without what is the same for everything that is installed."""
    if entry.kind == "local" or entry.path is None:
        return str(entry.path or "-")
    known = [Path(folder) for folder in sys.path if folder]
    inside = [entry.path.relative_to(folder) for folder in known if entry.path.is_relative_to(folder)]
    return str(min(inside, key=lambda path: len(path.parts), default=entry.path))


# One environment


def show_info(info: EnvironmentDetails) -> None:
    show_rows("", [("", f"{info.name} {info.version or ''}".rstrip()), ("", info.description)])
    rows = [("path", info.path or "-"), ("content", info.content_hash or "-")]
    if info.loaded is not None:
        rows += loaded_rows(info.loaded)
    show_rows("", rows)
    show_rows("Arguments", [argument_row(each) for each in info.arguments])
    show_rows("Package defaults", [(name, str(value)) for name, value in info.defaults.items()])
    if info.loaded is not None:
        show_loaded(info.loaded)
    if info.problem:
        echo(f"It cannot be loaded: {one_line(info.problem)}", err=True)


def show_rows(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Rows of two columns under a title; nothing if there are none."""
    rows = [row for row in rows if row[1]]
    if not rows:
        return
    if title:
        echo(f"\n{title}")
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        indent = "  " if width else ""
        echo(f"{indent}{name.ljust(width)}{indent}{one_line(text)}".rstrip())


def argument_row(argument: Argument) -> tuple[str, str]:
    kind = argument.type or "any"
    return argument.name, kind + (" (required)" if argument.default is None else f" = {argument.default}")


def loaded_rows(loaded: LoadedDetails) -> list[tuple[str, str]]:
    traits = loaded.traits
    facts = [
        "scored in groups" if traits.grouped else "",
        "" if traits.rescores else "scored once only",
        f"at most {traits.capacity} at once" if traits.capacity else "",
    ]
    turns = loaded.max_turns
    return [
        ("kind", loaded.kind),
        ("tasks", "not counted: read one by one" if loaded.tasks is None else f"{loaded.tasks:,}"),
        ("turns", "" if turns is None else "not limited" if turns < 1 else f"at most {turns}"),
        ("traits", ", ".join(fact for fact in facts if fact)),
        ("parser", "" if loaded.parser in (None, "Parser") else str(loaded.parser)),
        ("passed at", f"reward ≥ {loaded.pass_threshold:g}"),
    ]


def show_loaded(loaded: LoadedDetails) -> None:
    rewards = [
        (
            each.name,
            (f"weight {each.weight:g}" if each.weight else "measured only") + " in groups" * each.grouped,
        )
        for each in loaded.rewards
    ]
    show_rows("Reward functions", rewards)
    show_rows("Tools", [(tool.name, tool.description.partition("\n")[0] or "-") for tool in loaded.tools])
    if loaded.example is not None:
        example = loaded.example
        messages = [(str(message.get("role", "?")), text_of(message) or "…") for message in example.prompt]
        show_rows(f"Example: task {example.id!r}", [*messages, ("answer", str(example.answer))])


# A checkup


def checkup_document(report: CheckupReport) -> dict[str, Any]:
    return {
        "environment": report.environment,
        "path": report.path,
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "notes": report.count("note"),
        "findings": [
            {**msgspec.to_builtins(finding), "severity": finding.severity} for finding in report.findings
        ],
        "tasks_played": report.figures.tasks,
        "rewards": report.figures.rewards,
        "gold": report.figures.gold,
    }


def show_report(report: CheckupReport) -> None:
    for finding in report.findings:
        where = finding.where or report.environment
        echo(f"{where}: {finding.code} {' '.join(strip_escapes(finding.message).split())}")
    counts = [(report.count(kind), kind) for kind in ("error", "warning", "note")]
    summary = [f"{count} {kind}{'s' if count > 1 else ''}" for count, kind in counts if count]
    echo(f"{report.environment}: {', '.join(summary) or 'clean'}{describe_figures(report)}")


def describe_figures(report: CheckupReport) -> str:
    figures = report.figures
    if not figures.rewards:
        return ""
    means = ", ".join(f"{name} {mean:.3f}" for name, mean in figures.rewards.items())
    tasks = f"{figures.tasks} task{'s' if figures.tasks > 1 else ''}"
    return f". Mean reward over {tasks}: {means}" + (f" (gold {figures.gold})" if figures.gold else "")


@contextmanager
def open_status_line() -> Iterator[Callable[[str], None]]:
    """A line on the terminal that says what is being done, and is gone when it is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield lambda what: click.echo(f"\r\x1b[K{one_line(what)} …", nl=False, err=True)
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)
