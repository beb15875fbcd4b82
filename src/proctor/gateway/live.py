"""An answer as a stream, on every wire, while the model is still writing it.

A stream begins with the first piece, or after a while without any, so that an early failure still has a
status of its own. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from proctor.trace import Piece
from proctor.wires.encoders import open_encoder
from proctor.wires.wire import Answer, ModelRequest, Wire

QUIET_SECONDS = 15.0
"""How long a stream may be silent before the gateway sends a sign of life."""


class PieceQueue:
    """Holds the pieces of one answer until they are sent."""

    def __init__(self) -> None:
        self.is_begun = False
        self.count = 0
        self._waiting: asyncio.Queue[Piece | None] = asyncio.Queue()

    def __call__(self, piece: Piece) -> None:
        self.is_begun = True
        self.count += 1
        self._waiting.put_nowait(piece)

    def end(self) -> None:
        self._waiting.put_nowait(None)

    async def next(self) -> Piece | None:
        """The next piece; None when no more will come."""
        return await self._waiting.get()


async def stream_answer(
    wire: Wire, request: ModelRequest, blank: Answer, pending: asyncio.Future[Answer], pieces: PieceQueue
) -> AsyncIterator[bytes]:
    """The events of an answer as they come; raises what failed."""
    encoder = open_encoder(wire, request, blank)
    pending.add_done_callback(lambda _: pieces.end())
    while True:
        try:
            piece = await asyncio.wait_for(pieces.next(), QUIET_SECONDS)
        except TimeoutError:
            yield wire.keep_alive
            continue
        if piece is None:
            break
        if event := encoder.add(piece):
            yield event
    yield encoder.end(await pending)
