"""Split a stream into its events as its bytes arrive. Knows nothing of any API."""

from __future__ import annotations


class EventSplitter:
    """Takes bytes as they come and returns whole events, without the blank lines between them.

    Only new bytes are searched: otherwise an endless event would be read again with each chunk.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._carriage_return = b""

    @property
    def waiting(self) -> int:
        """Bytes of the event that has begun."""
        return len(self._rest)

    def feed(self, chunk: bytes) -> list[bytes]:
        chunk, self._carriage_return = self._carriage_return + chunk, b""
        if chunk.endswith(b"\r"):  # the line feed may come next
            chunk, self._carriage_return = chunk[:-1], b"\r"
        seen = max(0, len(self._rest) - 1)
        self._rest += chunk.replace(b"\r\n", b"\n")
        if self._rest.find(b"\n\n", seen) < 0:
            return []
        *whole, rest = bytes(self._rest).split(b"\n\n")
        self._rest = bytearray(rest)
        return whole

    def end(self) -> list[bytes]:
        """Whatever is left when nothing more comes."""
        rest, self._rest = bytes(self._rest) + self._carriage_return, bytearray()
        return [rest] if rest.strip() else []
