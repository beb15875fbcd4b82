"""Split output into lines of a bounded length. Knows nothing of where it comes from."""

from __future__ import annotations

LONGEST_LINE = 20_000
"""Bytes that are kept of one line."""
LONGEST_WORD = 1_024
"""A word that would be cut in two is dropped if it is no longer than this: half a secret is not recognized as
one, and would not be redacted."""


class LineSplitter:
    """Splits output into lines. Of a line that is too long it keeps the beginning, with a mark."""

    def __init__(self, most: int = LONGEST_LINE, *, keeps_blank: bool = False) -> None:
        self._most = most
        self._keeps_blank = keeps_blank
        self._rest = b""
        self._cut = 0

    def feed(self, chunk: bytes) -> list[str]:
        *whole, rest = chunk.split(b"\n")
        lines: list[str] = []
        for part in whole:
            self._add(part)
            lines += self._take()
        self._add(rest)
        return lines

    def finish(self) -> list[str]:
        """The line so far, if there is one."""
        return self._take() if self._rest else []

    def _take(self) -> list[str]:
        kept, cut = self._rest, self._cut
        self._rest, self._cut = b"", 0
        mark = ""
        if cut:
            whole, last = kept[:-LONGEST_WORD], kept[-LONGEST_WORD:].rpartition(b" ")[0]
            mark = f" … ({cut + len(kept) - len(whole) - len(last):,} more bytes cut)"
            kept = whole + last
        text = kept.decode(errors="replace").rstrip("\r")
        return [text + mark] if self._keeps_blank or mark or text.strip() else []

    def _add(self, part: bytes) -> None:
        room = self._most - len(self._rest)
        self._rest += part[:room]
        self._cut += max(0, len(part) - room)
