"""Reports on stdout: a console for them, and the few shapes they are made of.

Everything that came from a model or an environment is shown as it is: never as markup, never as terminal
codes. Knows how things look, and nothing of what they mean.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from proctor.cli.views.escape import strip_escapes
from proctor.config.prices import AS_OF

WIDTH_WITHOUT_TERMINAL = 100


@contextmanager
def open_console() -> Iterator[Console]:
    """A console whose text goes to stdout without the blanks that tables end their lines with."""
    width = None if sys.stdout.isatty() else requested_width()
    console = Console(width=width, highlight=False, markup=False)
    console.push_render_hook(Cleaning())
    with console.capture() as text:
        yield console
    encoding = sys.stdout.encoding or "utf-8"
    for line in text.get().splitlines():
        sys.stdout.write(f"{line.rstrip()}\n".encode(encoding, "replace").decode(encoding))


class Cleaning(RenderHook):
    """Whatever a report prints, nothing of it is a code for the terminal but rich's own colors."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [Cleaned(each) for each in renderables]


class Cleaned:
    """Something to print, with its texts cleaned once they are laid out."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(strip_escapes(segment.text), segment.style)


def requested_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else WIDTH_WITHOUT_TERMINAL


def print_section(console: Console, name: str, rows: Iterable[tuple[str, str | Text]]) -> None:
    rows = list(rows)
    if not rows:
        return
    console.print(Text(name, style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(
            Text(strip_escapes(label)), value if isinstance(value, Text) else Text(strip_escapes(value))
        )
    console.print(Padding(grid, (0, 0, 1, 2)))


def prices_text(*, own: bool, listed: bool) -> str:
    """Which prices a cost was computed with."""
    whose = [f"list prices of {AS_OF}"] * listed + ["prices of the endpoint registry"] * own
    return f"at {' and '.join(whose)}"
