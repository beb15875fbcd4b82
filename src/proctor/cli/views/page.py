"""Pages on stdout: lines as they come, tables, and long text folded and wrapped.

On a terminal lines are painted and cut to its width; elsewhere they are plain and whole, for those who search
in them. Knows how things look, and nothing of what they mean.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

import msgspec

from proctor.cli.views.escape import echo, one_line, strip_escapes
from proctor.cli.views.lines import (
    DIM,
    LinePainter,
    Part,
    StyledLine,
    pad_text,
    strip_line_escapes,
    styled_line,
    text_width,
)
from proctor.cli.views.stdout import write_stdout

UNLIMITED = 100_000
FOLDED_AT = 100
"""Assumed width of text that is not wrapped, to count its lines."""
MOST_LINES, FIRST_LINES, LAST_LINES = 14, 9, 3
SAMPLE = 1_000
"""Rows that the widths of a table are taken from, so that a long one can be written as it is read."""
NARROWEST = 8
LONGEST_WRAPPED = 10_000
"""Characters of a line that is broken between words; a longer one is cut anywhere. Without spaces it would
take time by the square of its length."""


class PlainPainter(LinePainter):
    """Writes lines without any color."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._starts = {}

    def paint(self, drawn: StyledLine, columns: int) -> str:
        if columns < UNLIMITED or self._in_ascii:
            return super().paint(drawn, columns)
        return "".join(text for text, _ in strip_line_escapes(drawn).parts)


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def page_width() -> int | None:
    """Columns to fill; None if unknown."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else None


def print_lines(lines: Iterable[StyledLine]) -> None:
    stream = sys.stdout
    ink = LinePainter(stream) if is_terminal(stream) else PlainPainter(stream)
    columns = page_width() or UNLIMITED
    encoding = stream.encoding or "utf-8"
    write_stdout(f"{ink.paint(each, columns).rstrip()}\n".encode(encoding, "replace") for each in lines)


# Tables


class TableColumn(msgspec.Struct, frozen=True):
    name: str
    right: bool = False
    """Numbers are aligned on their last digit."""
    may_shrink: bool = False


TableRow = Sequence[Part]
NO_VALUE = ("", "-", "–")


def layout_table(
    columns: Sequence[TableColumn], rows: Iterable[TableRow], width: int | None
) -> Iterator[StyledLine]:
    """A heading and aligned rows; where the width is short, the widest column that may shrink does."""
    rows = iter(rows)
    first = list(itertools.islice(rows, SAMPLE))
    heads: list[TableRow] = [[(column.name, DIM) for column in columns]]
    widths = shrink_widths(columns, natural_widths([*heads, *first]), width)
    for row in itertools.chain(heads, first, rows):
        yield align_row(columns, row, widths)


def print_table(
    columns: Sequence[str | TableColumn],
    rows: Iterable[Sequence[object]],
    nothing: str = "",
    indent: str = "",
) -> None:
    """Print aligned columns under their names, or `nothing` on stderr if there are no rows.

    Where the screen is too narrow even for shortened columns, every cell gets a line of its own.
    """
    headed = [each if isinstance(each, TableColumn) else TableColumn(each) for each in columns]
    cells: list[TableRow] = [[cell(value) for value in row] for row in rows]
    if not cells:
        echo(nothing, err=True)
        return
    width = page_width()
    room = None if width is None else width - len(indent)
    lines = list(layout_table(headed, cells, room))
    if room is not None and any(each.width > room for each in lines):
        lines = list(layout_blocks(headed, cells))
    print_lines(styled_line(indent) + each for each in lines)


def layout_blocks(columns: Sequence[TableColumn], rows: Iterable[TableRow]) -> Iterator[StyledLine]:
    """The first cell of each row, and under it a line for every other cell that has a value."""
    labels = [column.name for column in columns[1:]]
    width = max(map(text_width, labels), default=0)
    for first, *rest in rows:
        yield styled_line(first)
        for label, part in zip(labels, rest, strict=True):
            if part[0] not in NO_VALUE:
                yield styled_line((f"  {pad_text(label, width)}  ", DIM), part)


def natural_widths(rows: Sequence[TableRow]) -> list[int]:
    return [max(text_width(text) for text, _ in cells) for cells in zip(*rows, strict=True)]


def shrink_widths(columns: Sequence[TableColumn], widths: Sequence[int], width: int | None) -> list[int]:
    widths = list(widths)
    shrinking = [index for index, column in enumerate(columns) if column.may_shrink]
    over = 0 if width is None else sum(widths) + 2 * (len(widths) - 1) - width
    while over > 0 and shrinking:
        widest = max(shrinking, key=widths.__getitem__)
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
        over -= 1
    return widths


def align_row(columns: Sequence[TableColumn], row: TableRow, widths: Sequence[int]) -> StyledLine:
    parts: list[Part] = []
    for column, (text, style), width in zip(columns, row, widths, strict=True):
        if parts:
            parts.append(("  ", ""))
        if column.right:
            parts.append((" " * (width - text_width(text)), ""))
        is_last = len(parts) >= 2 * len(columns) - 2 and not column.may_shrink
        parts.append((text if column.right or is_last else pad_text(text, width), style))
    return StyledLine(tuple(parts))


def cell(text: object, style: str = "") -> Part:
    return (one_line(str(text)), style)


# Text


def layout_paragraph(
    text: str, width: int | None, *, indent: str = "", style: str = "", full: bool = False
) -> Iterator[StyledLine]:
    """A text from outside, as lines; the middle of a long one is left out unless all of it is wanted."""
    text = strip_escapes(text).expandtabs(4).rstrip("\n")
    room = None if width is None else max(20, width - text_width(indent))
    pieces = list(wrap_text(text, room or FOLDED_AT)) if room or not full else []
    if not full and len(pieces) > MOST_LINES:
        hidden = len(pieces) - FIRST_LINES - LAST_LINES
        yield from (styled_line((indent, DIM), (piece, style)) for piece in pieces[:FIRST_LINES])
        yield styled_line((f"{indent}… {hidden:,} more lines, shown by --full …", DIM))
        yield from (styled_line((indent, DIM), (piece, style)) for piece in pieces[-LAST_LINES:])
        return
    for piece in pieces if room else text.split("\n"):
        yield styled_line((indent, DIM), (piece, style))


def wrap_text(text: str, width: int) -> Iterator[str]:
    for each in text.split("\n"):
        size = text_width(each)
        if size <= width:
            yield each
        elif size == len(each) > LONGEST_WRAPPED:
            yield from (each[start : start + width] for start in range(0, size, width))
        elif size == len(each):
            yield from textwrap.wrap(each, width, break_on_hyphens=False)
        else:
            from rich.cells import chop_cells

            yield from chop_cells(each, width)
