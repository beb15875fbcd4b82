"""What became of a workspace's files, as text: one line for each, its diff below.

Everything in them was written by an agent, and is shown as plain text. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from proctor.cli.views.escape import one_line
from proctor.cli.views.lines import BAD, DIM, DONE, STRONG, WARN, StyledLine, styled_line
from proctor.trace import FileChange

SIGNS = {"created": ("+", DONE), "changed": ("~", WARN), "deleted": ("-", BAD), "more": ("…", DIM)}
HEADINGS = 2
"""Lines of a diff that only repeat the file's name."""


def file_lines(
    changes: Sequence[FileChange], text: Callable[[str, str], Iterator[StyledLine]], indent: str
) -> Iterator[StyledLine]:
    """`text` makes lines of a long text, given it and its indent."""
    for change in changes:
        sign, style = SIGNS[change.change]
        if change.change == "more":
            yield styled_line((f"{indent}{sign} {one_line(change.note)}", DIM))
            continue
        note = f", {one_line(change.note)}" if change.note else ""
        digest = f", sha256 {one_line(change.sha256[:12])}" if change.sha256 else ""
        size = f"  {change.size:,} bytes{note}{digest}"
        yield styled_line((f"{indent}{sign} ", style), (one_line(change.path), STRONG), (size, DIM))
        body = "\n".join(change.diff.split("\n")[HEADINGS:])
        if body.strip():
            yield from map(color_diff_line, text(body, f"{indent}{indent}  "))


def color_diff_line(drawn: StyledLine) -> StyledLine:
    """A line of a diff in the color of its sign."""
    (indent, _), *rest = drawn.parts
    content = "".join(text for text, _ in rest)
    style = {"+": DONE, "-": BAD, "@": DIM, "\\": DIM}.get(content[:1], "")
    return styled_line((indent, DIM), (content, style))
