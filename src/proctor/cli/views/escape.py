"""Text from outside, made safe to print: without anything that a terminal would obey or a reader cannot see.

Commands print with `echo`, and JSON with `stdout.print_json`; pages and reports clean what they draw. Knows
nothing of what a text is about.
"""

from __future__ import annotations

import re
from typing import IO, Any

import click

LONGEST_LINE = 1000

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colors, cursor moves, modes
    r"|\x1b[\]PX^_][^\x1b\x07]*(?:\x1b\\|\x07)"  # titles, links, clipboard; no further than the next escape
    r"|\x1b[ -/]*[0-~]"
)
INVISIBLE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls, but for the tab and the end of a line
    r"\xad\u061c\u180e\u200b\u200e\u200f"  # soft hyphen, marks of direction, no space at all
    r"\u2028-\u202e\u2060-\u206f"  # ends of lines that no terminal counts; text that runs backwards
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"  # byte order marks, annotations, tags
    r"\ud800-\udfff"
)
"""U+200C and U+200D are left: words of several scripts, and emoji, are written with them."""
CONTROLS = re.compile(f"[{INVISIBLE}]")


def strip_escapes(text: str) -> str:
    """The text with its lines and tabs."""
    return CONTROLS.sub("", ESCAPES.sub("", text))


def one_line(text: str) -> str:
    """The text on one line, and not too much of it."""
    text = ESCAPES.sub("", text[:LONGEST_LINE])
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def echo(message: str = "", file: IO[Any] | None = None, *, nl: bool = True, err: bool = False) -> None:
    click.echo(strip_escapes(message), file, nl=nl, err=err)


def visible_json(text: str) -> str:
    """JSON as it is, with what a terminal would obey written as escapes that mean the same."""
    return CONTROLS.sub(lambda match: json_escape(match[0]), text)


def json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index : index + 2].hex()}" for index in range(0, len(units), 2))
