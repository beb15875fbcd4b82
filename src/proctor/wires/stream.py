"""A provider's stream on its way to a client: whole events out, and the usage they report kept.

Knows nothing of HTTP or money.
"""

from __future__ import annotations

from msgspec.structs import replace

from proctor.trace import Usage
from proctor.wires import chat, chat_server
from proctor.wires.codec import UNREADABLE, event_data
from proctor.wires.events import EventSplitter
from proctor.wires.wire import Wire

FAILED = b"event: response.failed"


class MeteredStream:
    """Splits a stream into events, and reads the usage out of them."""

    def __init__(self, wire: Wire, hide_usage: bool) -> None:
        self.usage = Usage()
        self.has_usage = False
        """The provider reported the usage."""
        self.is_whole = False
        """The stream ended."""
        self.events = 0
        self._wire = wire
        self._hide_usage = hide_usage
        """The client did not ask for the event that reports the usage."""
        self._splitter = EventSplitter()

    def feed(self, chunk: bytes) -> tuple[bytes, bytes]:
        """The bytes to pass on at once, and the end of the stream, to pass on once the call is booked."""
        return self._read(self._splitter.feed(chunk))

    @property
    def waiting(self) -> int:
        """Bytes of the event that has begun."""
        return self._splitter.waiting

    def end(self) -> tuple[bytes, bytes]:
        """Whatever is left when nothing more comes."""
        left = self._read(self._splitter.end())
        if self._wire is chat_server.WIRE and self.has_usage:
            self.is_whole = True  # some servers leave out [DONE], but the usage comes last
        return left

    @property
    def is_metered(self) -> bool:
        """The stream ended and reported its usage."""
        return self.has_usage and self.is_whole

    @property
    def spent(self) -> Usage:
        """The usage reported; at least one token per event if the stream broke off or reported none."""
        if self.is_metered:
            return self.usage
        return replace(self.usage, output_tokens=max(self.usage.output_tokens, self.events))

    def _read(self, events: list[bytes]) -> tuple[bytes, bytes]:
        now: list[bytes] = []
        for index, event in enumerate(events):
            if event.startswith(self._wire.stream_ends):
                self._read_usage(event)
                self.is_whole = not event.startswith(FAILED)
                held = b"".join(each + b"\n\n" for each in events[index:])
                return b"".join(now), held
            self.events += 1
            if not (b'"usage"' in event and self._read_usage(event)):
                now.append(event + b"\n\n")
        return b"".join(now), b""

    def _read_usage(self, event: bytes) -> bool:
        """Whether the event must be hidden from the client."""
        data = event_data(event)
        if b'"usage"' not in data:
            return False
        try:
            usage = self._wire.event_usage(data, self.usage)
            is_new = usage is not self.usage
            self.usage, self.has_usage = usage, self.has_usage or is_new
            return self._hide_usage and is_new and not chat.has_choices(data)
        except UNREADABLE:
            return False
