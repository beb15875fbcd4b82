"""Answers of a provider that speaks another wire than its client, translated between the two.

A call is booked before its answer, or the end of its stream, is sent. Knows nothing of accounts.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from proctor.contracts import Request
from proctor.errors import MalformedReplyError, ModelError
from proctor.gateway.live import PieceQueue, stream_answer
from proctor.server.gateway import asgi
from proctor.server.gateway.asgi import ResponseSender
from proctor.server.gateway.bodies import off_loop
from proctor.server.gateway.booking import book_answer, book_call
from proctor.server.gateway.meter import UsageMeter
from proctor.server.gateway.provider_refusals import refusal_of_provider
from proctor.server.gateway.requests import GatewayRequest
from proctor.trace import Reply, Usage
from proctor.wires.codec import encode_json
from proctor.wires.errors import malformed_error
from proctor.wires.wire import Answer, ModelRequest, Wire, blank_answer


async def translate_answer(
    meter: UsageMeter, request: GatewayRequest, wire: Wire, send: ResponseSender
) -> None:
    translated = await off_loop(len(request.content), wire.decode_request, request.content)
    if translated.previous is not None:
        raise malformed_error(
            "previous_response_id: this server stores no answers; send the whole conversation."
        )
    blank, pieces = blank_answer(request.route.name), PieceQueue()
    wanted = pieces if translated.stream else None
    pending = asyncio.ensure_future(complete(meter, request, translated, blank, wanted))
    try:
        if translated.stream:
            await asgi.send_stream(stream_answer(wire, translated, blank, pending, pieces), send)
        else:
            await asgi.send_response(send, encode_json(wire.encode_reply(translated, await pending)))
    finally:
        if request.is_own:
            pending.cancel()


async def complete(
    meter: UsageMeter,
    request: GatewayRequest,
    translated: ModelRequest,
    blank: Answer,
    pieces: PieceQueue | None,
) -> Answer:
    neutral = Request(translated.messages, translated.tools, translated.sampling, {}, pieces=pieces)
    try:
        reply: Reply = await request.upstream.model.complete(neutral)
    except ModelError as error:
        if pieces is not None and pieces.is_begun:  # it was used as far as it came
            spent = Usage(output_tokens=pieces.count)
            await book_call(meter, request, spent, is_reported=False, is_whole=False)
        elif isinstance(error, MalformedReplyError):  # it answered, and will bill that
            await book_call(meter, request, Usage(), is_reported=False)
        if (refusal := refusal_of_provider(request, error)) is not None:
            raise refusal from error
        raise
    await book_answer(meter, request, reply.usage, len(reply.text))
    return replace(blank, reply=reply)
