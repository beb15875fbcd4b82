"""Answers of a provider that speaks its client's wire, forwarded as they come.

A call is booked before its answer, or the end of its stream, is forwarded. Knows nothing of accounts.
"""

from __future__ import annotations

import asyncio

from proctor.errors import RequestRefusedError
from proctor.models.http_client import error_text, retry_after
from proctor.models.http_pool import HttpResponse
from proctor.server.gateway import asgi
from proctor.server.gateway.asgi import ResponseSender
from proctor.server.gateway.booking import book_answer, book_call
from proctor.server.gateway.meter import UsageMeter
from proctor.server.gateway.provider_refusals import PAYMENT_REQUIRED, key_refusal, payment_refusal
from proctor.server.gateway.requests import GatewayRequest, hides_usage
from proctor.trace import Usage
from proctor.wires.codec import UNREADABLE
from proctor.wires.errors import GatewayRefusedError, Refusal, has_error
from proctor.wires.stream import MeteredStream
from proctor.wires.wire import Wire

LARGEST_EVENT = 64 * 2**20
FORWARDED_HEADERS = ("retry-after", "retry-after-ms", "request-id", "x-request-id")
"""The provider's headers that a client sees; the gateway sets the content type itself."""


async def pass_answer(meter: UsageMeter, request: GatewayRequest, wire: Wire, send: ResponseSender) -> None:
    async with request.upstream.passing(wire.path, request.content, request.headers) as response:
        if not 200 <= response.status < 300:
            await pass_refusal(request, wire, response, send)
        elif response.content_type == "text/event-stream":
            stream = MeteredStream(wire, hides_usage(wire, request.head))
            await pass_stream(meter, request, stream, response, send)
        else:
            content = await request.upstream.whole(response)
            await book_answer(meter, request, parse_usage(wire, content), len(content))
            await asgi.send_response(
                send, content, response.status, [*asgi.JSON, *forwarded_headers(response)]
            )


async def pass_stream(
    meter: UsageMeter,
    request: GatewayRequest,
    stream: MeteredStream,
    response: HttpResponse,
    send: ResponseSender,
) -> None:
    """Forward a stream. If the client disconnects, the stream is still read to its end, for its usage."""
    await asgi.start_response(send, response.status, [*asgi.STREAM, *forwarded_headers(response)])
    held, size = bytearray(), 0
    try:
        async for chunk in response.content.iter_any():
            size += len(chunk)
            request.upstream.check_size(size)
            now, ending = stream.feed(chunk)
            if now:
                await asgi.send_chunk(send, now)
            held += ending
            if len(held) + stream.waiting > LARGEST_EVENT:
                raise RequestRefusedError(
                    f"{request.route.provider} sent an event of more than {LARGEST_EVENT // 2**20} MiB.",
                    status=502,
                )
            await asyncio.sleep(0)  # a small compressed stream is decompressed at once, all of it
        now, ending = stream.end()
        held += now + ending
    finally:
        # Booked even if the stream breaks off or the server stops: it was used as far as it came.
        await book_call(meter, request, stream.spent, is_reported=stream.is_metered, is_whole=stream.is_whole)
    await asgi.send_chunk(send, bytes(held), is_last=True)


async def pass_refusal(
    request: GatewayRequest,
    wire: Wire,
    response: HttpResponse,
    send: ResponseSender,
) -> None:
    """Forward the provider's error, unchanged if it has the wire's shape, but never a key."""
    content = request.upstream.without_keys(await request.upstream.whole(response))
    status = response.status
    if status in (401, 403):
        raise GatewayRefusedError(key_refusal(request))
    if status == PAYMENT_REQUIRED:
        raise GatewayRefusedError(payment_refusal(request))
    if status < 400:
        raise RequestRefusedError(
            f"{request.route.provider} answered {status}, a redirect, which the gateway does not follow.",
            status=502,
        )
    if has_error(content):
        status = asgi.known_status(status)
        await asgi.send_response(send, content, status, [*asgi.JSON, *forwarded_headers(response)])
        return
    text, code = error_text(content)
    message = f"{request.route.provider} answered {status}: {text}"
    refusal = Refusal(status, code.strip() or "provider_error", message, retry_after(response.headers))
    await asgi.send_refusal(send, wire, refusal)


def parse_usage(wire: Wire, content: bytes) -> Usage:
    try:
        return wire.reply_usage(content)
    except UNREADABLE:  # forwarded all the same: its client may understand it
        return Usage()


def forwarded_headers(response: HttpResponse) -> asgi.Headers:
    headers = response.headers
    return [
        (name.encode(), asgi.header_value(headers[name])) for name in FORWARDED_HEADERS if name in headers
    ]
