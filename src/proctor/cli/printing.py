"""Reports on stdout: a console for them, and the few shapes they are made of.

Everything that came from a model or an environment is shown as it is: never as markup, never as terminal
codes. Knows how things look, and nothing of what they mean.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proctor.cli.text import clean
from proctor.config.prices import AS_OF

WIDTH_WITHOUT_TERMINAL = 100


@contextmanager
def printed() -> Iterator[Console]:
    """A console whose text goes to stdout without the blanks that tables end their lines with."""
    console = Console(width=None if sys.stdout.isatty() else width_asked_for(), highlight=False)
    with console.capture() as text:
        yield console
    encoding = sys.stdout.encoding or "utf-8"
    for line in text.get().splitlines():
        sys.stdout.write(f"{line.rstrip()}\n".encode(encoding, "replace").decode(encoding))


def width_asked_for() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else WIDTH_WITHOUT_TERMINAL


def section(console: Console, name: str, rows: Iterable[tuple[str, str | Text]]) -> None:
    rows = list(rows)
    if not rows:
        return
    console.print(Text(name, style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(Text(clean(label)), value if isinstance(value, Text) else Text(clean(value)))
    console.print(Padding(grid, (0, 0, 1, 2)))


def counts(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in values.items())


def pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"


def prices_text(*, own: bool, listed: bool) -> str:
    """Whose prices a cost was worked out with."""
    whose = [f"list prices of {AS_OF}"] * listed + ["prices of the endpoint registry"] * own
    return f"at {' and '.join(whose)}"


def duration(seconds: float) -> str:
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
