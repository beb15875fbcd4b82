"""Count the values of a JSON text before it is decoded.

A decoder makes an object of every value, so a text of a few bytes for each costs many times its own size in
memory, and as much time. Knows nothing of what the values mean.
"""

from __future__ import annotations


class ValueCounter:
    """Counts the values of a JSON text that arrives in pieces, without decoding it.

    Every value follows an opening bracket or a comma outside any string, so those are counted. Agrees with a
    decoder as far as the text is valid JSON, and a decoder stops where it is not.
    """

    def __init__(self) -> None:
        self.values = 1
        self._is_in_string = False
        self._escape = b""

    def feed(self, piece: bytes) -> None:
        piece, self._escape = self._escape + piece, b""
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # escapes the first character of the next piece
            piece, self._escape = piece[:-1], b"\\"
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[1::2] if self._is_in_string else parts[::2])
        self.values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if len(parts) % 2 == 0:
            self._is_in_string = not self._is_in_string
