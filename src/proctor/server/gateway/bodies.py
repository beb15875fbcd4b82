"""Read a request's body without blocking other requests.

A body costs time by its bytes and by its values: many small messages take a hundred times as long to decode
as one long text. Both are bounded while the body arrives, before any of it is decoded, and any body that is
not small is decoded and walked in a thread. Knows nothing of wires or money.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import msgspec
from litestar.types import Receive

from proctor.gateway.failures import TOO_LARGE
from proctor.server.gateway.asgi import ClientGoneError
from proctor.support.json_values import ValueCounter
from proctor.wires.codec import UNREADABLE, encode_json
from proctor.wires.errors import GatewayRefusedError, Refusal, malformed_error

LARGEST_REQUEST = 32 * 2**20
INLINE_BYTES = 256 * 2**10
"""Bodies up to this size are decoded on the event loop: none takes longer than a few milliseconds."""
MOST_VALUES = 200_000
"""Objects, lists, texts and numbers in one body. Decoding this many takes about 40 ms."""
MOST_MESSAGES = 20_000
MOST_TOOLS = 1_024
COUNTED_LISTS = {"messages": MOST_MESSAGES, "input": MOST_MESSAGES, "tools": MOST_TOOLS}

P = ParamSpec("P")
T = TypeVar("T")
JsonObject = dict[str, Any]

_decode = msgspec.json.Decoder(JsonObject).decode


async def receive_body(receive: Receive, largest: int) -> bytes:
    """The whole body; refused if it is larger, or has more values, than a request may."""
    pieces: list[bytes] = []
    size, counted, counter = 0, 0, ValueCounter()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGoneError
        piece = message["body"]
        size += len(piece)
        if size > largest:
            raise too_large(f"The request is larger than {largest // 2**20} MiB.")
        pieces.append(piece)
        while size > INLINE_BYTES and counted < len(pieces):
            if counter.values <= MOST_VALUES:
                counter.feed(pieces[counted])
            counted += 1
        if counter.values > MOST_VALUES:
            pieces.clear()  # keep receiving: a client that is still sending would not read the refusal
            counted = 0
        if not message["more_body"]:
            break
    if counter.values > MOST_VALUES:
        raise too_large(
            f"The request holds more than {MOST_VALUES:,} JSON values; send fewer messages or parts."
        )
    return b"".join(pieces)


def too_large(message: str) -> GatewayRefusedError:
    return GatewayRefusedError(Refusal(TOO_LARGE.status, TOO_LARGE.code, message))


async def off_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Work on a body: here if it is small, else in a thread."""
    if size <= INLINE_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


def decode_object(content: bytes) -> JsonObject:
    """A body as one object. Of a name that occurs twice, the last value counts."""
    try:
        body = _decode(content)
    except UNREADABLE as error:
        raise malformed_error(f"The request cannot be read: {error}") from error
    for name, most in COUNTED_LISTS.items():
        listed = body.get(name)
        if isinstance(listed, list) and len(listed) > most:
            raise too_large(f"{name} has {len(listed):,} items; one request may have {most:,}.")
    return body


def encode_object(body: JsonObject) -> bytes:
    """The body to forward, encoded anew, so that the provider reads exactly what was checked."""
    try:
        return encode_json(body)
    except (OverflowError, UnicodeEncodeError, RecursionError) as error:
        raise malformed_error(f"The request cannot be forwarded: {error}") from error
