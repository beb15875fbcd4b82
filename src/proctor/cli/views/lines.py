"""Lines of styled text, laid out in columns and painted for a terminal.

A display paints dozens of lines several times a second beside the engine, so a line is a few pairs of text
and style, and painting it is joining strings. Knows nothing of what the lines say.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TextIO

import msgspec

from proctor.cli.views.escape import CONTROLS, strip_escapes

DIM, QUIET, STRONG = "dim", "quiet", "strong"
DONE, BAD, WARN = "done", "bad", "warn"

CODES = {DIM: "2", QUIET: "90", STRONG: "1", DONE: "36", BAD: "31", WARN: "33"}
COLORLESS = {DIM: "2", STRONG: "1"}
IN_ASCII = str.maketrans("━─▸…–·×←→↑↓├┤│●█░▁▂▃▄▅▆▇", "#->~-|x<>^v[]|o#.__--==#")

LABEL = 12
COLUMN = 16
GAP = 2

Part = tuple[str, str]


class StyledLine(msgspec.Struct, frozen=True):
    """Text with styles, one after the other."""

    parts: tuple[Part, ...] = ()

    @property
    def width(self) -> int:
        return sum(text_width(text) for text, _ in self.parts)

    def __add__(self, other: StyledLine) -> StyledLine:
        return StyledLine(self.parts + other.parts)


def styled_line(*parts: str | Part) -> StyledLine:
    return StyledLine(tuple((part, "") if isinstance(part, str) else part for part in parts))


def strip_line_escapes(drawn: StyledLine) -> StyledLine:
    """The line without anything that a terminal would obey, wherever its parts came from."""
    if not any(CONTROLS.search(text) for text, _ in drawn.parts):
        return drawn
    return StyledLine(tuple((strip_escapes(text), style) for text, style in drawn.parts))


class LinePainter:
    """Turns lines into what one terminal understands: its colors, its characters."""

    def __init__(self, stream: TextIO) -> None:
        codes = COLORLESS if os.environ.get("NO_COLOR") else CODES
        self._starts = {style: f"\x1b[{code}m" for style, code in codes.items()}
        self._in_ascii = not (stream.encoding or "utf-8").lower().startswith("utf")

    def paint(self, drawn: StyledLine, columns: int) -> str:
        """The line in at most so many columns; what had to be cut ends in an ellipsis."""
        drawn = strip_line_escapes(drawn)
        painted, left = "", columns
        whole = drawn.width <= columns
        for text, style in drawn.parts:
            if not whole:
                size = text_width(text)
                text = text if size < left else cut_text(text, left)
                left -= min(size, left)
            start = self._starts.get(style)
            painted += f"{start}{text}\x1b[0m" if start and text else text
        return painted.translate(IN_ASCII) if self._in_ascii else painted


class LineBlock(msgspec.Struct, frozen=True):
    """Lines that stand together; where height is scarce the ones with the highest rank go first."""

    rank: int
    lines: list[StyledLine]


def choose_fitting_blocks(blocks: Sequence[LineBlock], height: int) -> list[LineBlock]:
    """The blocks that fit, most important first, in the order they came."""
    chosen: set[int] = set()
    for index in sorted(range(len(blocks)), key=lambda index: blocks[index].rank):
        size = len(blocks[index].lines)
        if size > height:
            break
        height -= size
        chosen.add(index)
    return [block for index, block in enumerate(blocks) if index in chosen]


def layout_row(label: str, cells: Sequence[StyledLine], width: int, most_lines: int = 1) -> list[StyledLine]:
    """A labelled line of cells in fixed columns, so that lines align and nothing jumps."""
    lines: list[StyledLine] = []
    drawn, used = styled_line((f"{label:<{LABEL}}", DIM)), LABEL
    for number, cell in enumerate(cells):
        start = LABEL + math.ceil(max(0, used - LABEL) / COLUMN) * COLUMN
        if start > LABEL and start - used < GAP:
            start += COLUMN
        if number and start + cell.width > width:
            lines.append(drawn)
            if len(lines) == most_lines:
                return lines
            drawn, used, start = StyledLine(), 0, LABEL
        drawn = drawn + styled_line(" " * (start - used)) + cell
        used = start + cell.width
    return [*lines, drawn] if cells else []


def flow_lines(parts: Sequence[StyledLine], width: int, most_lines: int) -> list[StyledLine]:
    """Parts one after the other; what does not fit the lines allowed is left out."""
    lines: list[StyledLine] = []
    for part in parts:
        if lines and lines[-1].width + 3 + part.width <= width:
            lines[-1] = lines[-1] + styled_line("   ") + part
        elif len(lines) < most_lines:
            lines.append(part)
    return lines


def progress_bar(cells: int, finished: int, failed: int, planned: int | None) -> StyledLine:
    """How much is done, with what failed at its end."""
    if not planned:
        return styled_line(("─" * cells, QUIET))
    done = min(cells, cells * finished // planned)
    lost = min(done, math.ceil(cells * failed / planned))
    return styled_line(("━" * (done - lost), DONE), ("━" * lost, BAD), ("─" * (cells - done), QUIET))


def pad_text(text: str, columns: int) -> str:
    """The text in exactly so many columns, cut with an ellipsis where it is longer."""
    size = text_width(text)
    if size <= columns:
        return text + " " * (columns - size)
    return cut_text(text, columns)


def cut_text(text: str, columns: int) -> str:
    """The beginning of the text and an ellipsis, in exactly `columns` columns."""
    from rich.cells import set_cell_size

    return f"{set_cell_size(text, columns - 1)}…" if columns else ""


def text_width(text: str) -> int:
    """How many columns the text takes on a terminal; plain ASCII does not load rich."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
