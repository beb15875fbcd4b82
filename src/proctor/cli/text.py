"""Text from outside, made safe to print: without anything that a terminal would obey."""

from __future__ import annotations

import re

LONGEST_LINE = 1000

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor moves, modes
    r"|\x1b[\]PX^_][^\x1b\x07]*(?:\x1b\\|\x07)"  # titles, links, clipboard; no further than the next escape
    r"|\x1b[ -/]*[0-~]"
)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """The text with its lines and tabs."""
    return CONTROLS.sub("", ESCAPES.sub("", text))


def one_line(text: str) -> str:
    """The text on one line, and not too much of it."""
    text = ESCAPES.sub("", text[:LONGEST_LINE])
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
