"""The server's gateway to every model: callers are known by their Proctor tokens and pay for actual usage.

If the provider speaks the wire that the client uses, its answer is forwarded as it is; otherwise the request
is translated. Either way the call is booked before its answer, or the end of its stream, is forwarded. Knows
nothing of accounts except whether a payer may spend.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec
from litestar.types import HTTPScope, Message, Receive, Send
from msgspec.structs import replace
from sqlalchemy import Connection, select

from proctor.api.runs import Cause
from proctor.config.endpoints import Endpoint
from proctor.config.providers import CHAT as CHAT_CLIENT
from proctor.contracts import Request
from proctor.errors import AuthError, ConfigError, MalformedReplyError, ModelError, RequestRefusedError
from proctor.gateway.failures import BROKEN, NOT_FOUND, refusal_of
from proctor.gateway.live import PieceQueue, stream_answer
from proctor.gateway.server import describe_model
from proctor.models.http_client import error_text, retry_after
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.tables import runs
from proctor.server.gateway import asgi
from proctor.server.gateway.bodies import LARGEST_REQUEST, JsonObject, decode_object, off_loop, receive_body
from proctor.server.gateway.models import REQUEST_SECONDS, ModelRoute
from proctor.server.gateway.requests import (
    BYTES_PER_TOKEN,
    GatewayRequest,
    OwnEndpoint,
    RequestHead,
    encode_for_own_endpoint,
    encode_for_provider,
    hides_usage,
    is_free,
    need_price,
    parse_head,
)
from proctor.server.gateway.upstreams import Upstream
from proctor.server.ledger.calls import LedgerCall
from proctor.server.ledger.records import Standing, millionths
from proctor.server.ledger.reservations import Reservation
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import RETRY_SECONDS, ApiError, PaymentError, UnauthenticatedError
from proctor.server.requests import caller_from_token
from proctor.support.logs import log
from proctor.trace import Reply, Usage
from proctor.wires import chat, messages, responses
from proctor.wires.codec import UNREADABLE, encode_json
from proctor.wires.errors import GatewayRefusedError, Refusal, has_error, malformed_error
from proctor.wires.stream import MeteredStream
from proctor.wires.wire import Answer, ModelRequest, Wire, blank_answer

LARGEST_EVENT = 64 * 2**20
AWAY_SECONDS = 120.0
"""How long calls wait for a database that is away, before anything else waits for it."""
FORWARDED_HEADERS = ("retry-after", "retry-after-ms", "request-id", "x-request-id")
"""The provider's headers that a client sees; the gateway sets the content type itself."""
WIRES = {wire.path: wire for wire in (chat.WIRE, responses.WIRE, messages.WIRE)}
COUNT_TOKENS = "/messages/count_tokens"
ANSWER_TOKENS = 16_384
"""The limit of an answer for a payer with a limit, if neither the request nor the registry sets one."""
MOST_TOKENS = 10**9
"""The most that is booked for one call, whatever its provider reports: billions of these fit in a column."""
PROVIDER_KEY = Refusal(
    403,
    "provider_key",
    "The provider refused the server's own key for this model; tell the server's operator.",
)
OWN_KEY = Refusal(
    403, "provider_key", "The run's own endpoint refused its key; check the secret that api_key_var names."
)
PAYMENT_REQUIRED = 402
"""Only this server sends it, about its own accounts: a run that receives it stops calling."""
PROVIDER_PAYMENT = Refusal(
    403,
    "provider_payment",
    "The provider of this model demands payment from the server; tell the server's operator.",
)
OWN_PAYMENT = Refusal(
    403,
    "provider_payment",
    "The run's own endpoint demands payment; check the account that its key belongs to.",
)


class ServerGateway:
    """The handler of everything under `/v1`."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._own: dict[str, OwnEndpoint | None] = {}

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        path = asgi.wire_path(scope["path"])
        wire = WIRES.get(path) or (messages.WIRE if is_anthropic_request(scope, path) else chat.WIRE)
        sender = ResponseSender(send)
        try:
            await self._answer(path, wire, scope, receive, sender)
        except asgi.ClientGoneError:
            return
        except GatewayRefusedError as error:
            await sender.refuse(wire, error.refusal)
        except ModelError as error:
            await sender.refuse(wire, refusal_of(error))
        except ApiError as error:
            code = "key" if isinstance(error, UnauthenticatedError) else error.code
            await sender.refuse(wire, Refusal(error.status, code, str(error)))
        except DatabaseAwayError as error:
            await sender.refuse(wire, Refusal(503, "database_away", str(error), RETRY_SECONDS))
        except ConfigError as error:
            await sender.refuse(wire, Refusal(422, "invalid", str(error)))
        except Exception:
            log.exception("the gateway failed on %s %s", scope["method"], path)
            await sender.refuse(wire, BROKEN)

    async def _answer(
        self, path: str, wire: Wire, scope: HTTPScope, receive: Receive, send: ResponseSender
    ) -> None:
        headers = asgi.read_request_headers(scope, wire)
        if not headers.token:
            raise UnauthenticatedError("Send a token of this server as the API key.")
        availability = self._platform.database.availability
        if availability.reason is not None:  # a run's calls wait as they do for a server that restarts
            await availability.wait(AWAY_SECONDS)
        caller = await caller_from_token(self._platform, headers.token)
        caller.need("inference")
        if scope["method"] == "GET":
            await asgi.send_response(send, encode_json(self._listing(path)))
            return
        if scope["method"] == "POST" and (path == COUNT_TOKENS or path in WIRES):
            largest = min(self._platform.settings.largest_body, LARGEST_REQUEST)
            content = await receive_body(receive, largest)
            if path not in WIRES:
                counted = await off_loop(len(content), lambda: count_tokens(content))
                await asgi.send_response(send, encode_json(counted))
                return
            request = await self._prepare(caller, wire, content, headers.forwarded)
            await self._forward(request, wire, receive, send)
            return
        raise GatewayRefusedError(NOT_FOUND)

    async def _forward(
        self, request: GatewayRequest, wire: Wire, receive: Receive, send: ResponseSender
    ) -> None:
        try:
            await self._reserve(request, receive)
            forward = self._pass if request.is_native else self._translate
            forwarding = forward(request, wire, send)
            if request.is_own:  # nobody here pays for the rest, and the endpoint may go on forever
                await asgi.unless_gone(receive, forwarding)
            else:
                await forwarding
        finally:
            self._platform.reserver.release(request.id)  # does nothing if it was booked

    def _listing(self, path: str) -> dict[str, object]:
        if path == "/models":
            listed = [describe_model(model.id) for model in self._platform.models.listed()]
            ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
            return {"object": "list", "data": listed, "has_more": False, **ends}
        if path.startswith("/models/"):
            return describe_model(self._platform.models.resolve(path.removeprefix("/models/")).name)
        raise GatewayRefusedError(NOT_FOUND)

    # Before

    async def _prepare(
        self, caller: Caller, wire: Wire, content: bytes, headers: Mapping[str, str] | None
    ) -> GatewayRequest:
        body = await off_loop(len(content), lambda: decode_object(content))
        head = parse_head(body)
        own = await self._own_endpoint(caller.run_id) if caller.run_id else None
        standing = await self._platform.meter.standing(caller.user, caller.run_id)
        if own is None or head.model not in (None, own.model):
            await self._check_may_spend(caller, standing)
            decoded = DecodedRequest(body, head, len(content), headers)
            return await self._prepare_for_provider(caller, standing, wire, decoded)
        assert caller.run_id is not None
        upstream = await self._open_own(caller.run_id, own)
        provider = self._platform.models.route_to(upstream.endpoint).provider
        route = ModelRoute(name=own.model, endpoint=upstream.endpoint, provider=provider, price=None)
        is_native = upstream.speaks(wire.client_type)
        return GatewayRequest(
            id=secrets.token_hex(10),
            caller=caller,
            payer=standing.payer,
            route=route,
            upstream=upstream,
            head=head,
            content=await off_loop(
                len(content),
                lambda: encode_for_own_endpoint(body, head, wire, route.endpoint.model, is_native=is_native),
            ),
            headers=headers,
            is_own=True,
            is_native=is_native,
        )

    async def _prepare_for_provider(
        self, caller: Caller, standing: Standing, wire: Wire, decoded: DecodedRequest
    ) -> GatewayRequest:
        """A request to one of the server's endpoints, and the most it can take."""
        platform = self._platform
        route = platform.models.resolve(decoded.head.model)
        is_bounded = standing.is_limited and not is_free(need_price(route, standing.payer))
        upstream = await platform.upstreams.of(route.name, route.endpoint)
        is_native = upstream.speaks(wire.client_type)
        limit = (route.endpoint.max_output_tokens or ANSWER_TOKENS) if is_bounded else None
        content, bound = await off_loop(
            decoded.size,
            lambda: encode_for_provider(
                decoded.body, decoded.head, wire, route, is_native=is_native, answer_limit=limit
            ),
        )
        return GatewayRequest(
            id=secrets.token_hex(10),
            caller=caller,
            payer=standing.payer,
            route=route,
            upstream=upstream,
            head=decoded.head,
            content=content,
            headers=decoded.headers,
            is_native=is_native,
            bound=bound,
        )

    async def _reserve(self, request: GatewayRequest, receive: Receive) -> None:
        """Reserve the worst case; stops waiting if the client disconnects."""
        amount = request.worst_cost
        if not amount:
            return
        run_id = request.caller.run_id
        wanted = Reservation(id=request.id, payer=request.payer, run_id=run_id, amount=amount)
        try:
            await asgi.unless_gone(receive, self._platform.reserver.reserve(wanted))
        except PaymentError as refusal:
            if run_id is not None:
                await self._platform.runs.stop(run_id, payment_cause(refusal))
            raise

    async def _check_may_spend(self, caller: Caller, standing: Standing) -> None:
        refusal = standing.refusal
        if refusal is None:
            return
        if caller.run_id is not None:
            await self._platform.runs.stop(caller.run_id, payment_cause(refusal))
        raise refusal

    async def _own_endpoint(self, run_id: str) -> OwnEndpoint | None:
        if run_id not in self._own:
            if len(self._own) > 4096:
                self._own.clear()
            self._own[run_id] = await self._platform.database.read(load_own_endpoint, run_id)
        return self._own[run_id]

    async def _open_own(self, run_id: str, own: OwnEndpoint) -> Upstream:
        platform = self._platform
        if opened := platform.upstreams.own(run_id):
            return opened
        endpoint = Endpoint(
            model=own.model,
            client_type=own.client_type,
            url=own.url,
            key_var=own.key_var,
            headers=own.headers,
            request_seconds=REQUEST_SECONDS,
        )
        variables = await platform.runs.variables(run_id)
        if own.key_var and not variables.get(own.key_var):
            raise ConfigError(
                f"The run has no secret {own.key_var}, which api_key_var names; add it and start again."
            )
        return await platform.upstreams.open_own(run_id, endpoint, variables)

    # Answers in the provider's own wire

    async def _pass(self, request: GatewayRequest, wire: Wire, send: ResponseSender) -> None:
        async with request.upstream.passing(wire.path, request.content, request.headers) as response:
            if not 200 <= response.status < 300:
                await self._refused(request, wire, response, send)
            elif response.content_type == "text/event-stream":
                stream = MeteredStream(wire, hides_usage(wire, request.head))
                await self._pass_stream(request, stream, response, send)
            else:
                content = await request.upstream.whole(response)
                await self._book_answer(request, parse_usage(wire, content), len(content))
                await asgi.send_response(
                    send, content, response.status, [*asgi.JSON, *forwarded_headers(response)]
                )

    async def _pass_stream(
        self,
        request: GatewayRequest,
        stream: MeteredStream,
        response: aiohttp.ClientResponse,
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
            await self._book(request, stream.spent, is_reported=stream.is_metered, is_whole=stream.is_whole)
        await asgi.send_chunk(send, bytes(held), is_last=True)

    async def _refused(
        self,
        request: GatewayRequest,
        wire: Wire,
        response: aiohttp.ClientResponse,
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

    # Between two wires

    async def _translate(self, request: GatewayRequest, wire: Wire, send: ResponseSender) -> None:
        translated = await off_loop(len(request.content), lambda: wire.decode_request(request.content))
        if translated.previous is not None:
            raise malformed_error(
                "previous_response_id: this server stores no answers; send the whole conversation."
            )
        blank, pieces = blank_answer(request.route.name), PieceQueue()
        wanted = pieces if translated.stream else None
        pending = asyncio.ensure_future(self._complete(request, translated, blank, wanted))
        try:
            if translated.stream:
                await send_stream(stream_answer(wire, translated, blank, pending, pieces), send)
            else:
                await asgi.send_response(send, encode_json(wire.encode_reply(translated, await pending)))
        finally:
            if request.is_own:
                pending.cancel()

    async def _complete(
        self, request: GatewayRequest, translated: ModelRequest, blank: Answer, pieces: PieceQueue | None
    ) -> Answer:
        neutral = Request(translated.messages, translated.tools, translated.sampling, {}, pieces=pieces)
        try:
            reply: Reply = await request.upstream.model.complete(neutral)
        except ModelError as error:
            if pieces is not None and pieces.is_begun:  # it was used as far as it came
                spent = Usage(output_tokens=pieces.count)
                await self._book(request, spent, is_reported=False, is_whole=False)
            elif isinstance(error, MalformedReplyError):  # it answered, and will bill that
                await self._book(request, Usage(), is_reported=False)
            if (refusal := refusal_of_provider(request, error)) is not None:
                raise refusal from error
            raise
        await self._book_answer(request, reply.usage, len(reply.text))
        return replace(blank, reply=reply)

    # After

    async def _book_answer(self, request: GatewayRequest, usage: Usage, size: int) -> None:
        """Book a whole answer of this many bytes."""
        is_reported = bool(usage.input_tokens or usage.output_tokens)
        written = usage if is_reported else Usage(output_tokens=-(-size // BYTES_PER_TOKEN))
        await self._book(request, written, is_reported=is_reported)

    async def _book(
        self, request: GatewayRequest, usage: Usage, *, is_reported: bool, is_whole: bool = True
    ) -> None:
        """Book a call. If the provider did not report the usage of a whole answer, it costs what was reserved
        for it, or else an estimate from its bytes; one that broke off costs an estimate of what came."""
        price, reserved = request.route.price, request.worst_cost
        usage = plausible(usage)
        if not is_reported:
            usage = replace(usage, input_tokens=max(usage.input_tokens, request.prompt_estimate))
        cost = None if price is None else millionths(price.of(usage))
        if reserved and cost is not None and not is_reported:
            cost = reserved if is_whole else min(cost, reserved)
        call = LedgerCall(
            id=request.id,
            at=time.time(),
            owner=request.payer,
            user=request.caller.user,
            run_id=request.caller.run_id,
            model=request.route.name,
            provider=request.route.provider,
            usage=usage,
            cost=cost,
            is_estimate=not is_reported,
            is_reserved=bool(reserved),
        )
        await self._platform.meter.book(call)


class DecodedRequest(msgspec.Struct, frozen=True):
    """A decoded request whose endpoint is not yet known."""

    body: JsonObject
    head: RequestHead
    size: int
    headers: Mapping[str, str] | None


class ResponseSender:
    """Sends a response, and knows whether it has begun: after that, no status can be sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_begun = False

    async def __call__(self, message: Message) -> None:
        self.is_begun = True
        await self._send(message)

    async def refuse(self, wire: Wire, refusal: Refusal) -> None:
        if self.is_begun:
            await asgi.send_chunk(self, wire.encode_broken_stream(refusal), is_last=True)
        else:
            await asgi.send_refusal(self, wire, refusal)


def is_anthropic_request(scope: HTTPScope, path: str) -> bool:
    """Whether a request to a path that all wires share comes from a client of Anthropic's."""
    return path.startswith("/messages") or any(name == b"anthropic-version" for name, _ in scope["headers"])


async def send_stream(events: AsyncIterator[bytes], send: ResponseSender) -> None:
    """Send events as they come; what fails before the first one still has a status of its own."""
    async for event in events:
        if not send.is_begun:
            await asgi.start_response(send, 200, asgi.STREAM)
        await asgi.send_chunk(send, event)
    await asgi.send_chunk(send, b"", is_last=True)


def refusal_of_provider(request: GatewayRequest, error: ModelError) -> GatewayRefusedError | None:
    """What a client reads where the provider refuses the key or demands payment, on every wire the same."""
    if isinstance(error, AuthError):
        return GatewayRefusedError(key_refusal(request))
    if error.status == PAYMENT_REQUIRED:
        return GatewayRefusedError(payment_refusal(request))
    return None


def key_refusal(request: GatewayRequest) -> Refusal:
    return OWN_KEY if request.is_own else PROVIDER_KEY


def payment_refusal(request: GatewayRequest) -> Refusal:
    return OWN_PAYMENT if request.is_own else PROVIDER_PAYMENT


def parse_usage(wire: Wire, content: bytes) -> Usage:
    try:
        return wire.reply_usage(content)
    except UNREADABLE:  # forwarded all the same: its client may understand it
        return Usage()


def plausible(usage: Usage) -> Usage:
    """A usage without negative numbers, which would give money back, and none too large to be summed up."""
    read, written = (min(max(0, each), MOST_TOKENS) for each in (usage.input_tokens, usage.output_tokens))
    cached = min(max(0, usage.cached_tokens), read)
    return replace(usage, input_tokens=read, output_tokens=written, cached_tokens=cached)


def count_tokens(content: bytes) -> dict[str, Any]:
    decode_object(content)  # refuses more messages than a request may have
    return messages.count_tokens(messages.decode_request(content))


def forwarded_headers(response: aiohttp.ClientResponse) -> asgi.Headers:
    headers = response.headers
    return [
        (name.encode(), asgi.header_value(headers[name])) for name in FORWARDED_HEADERS if name in headers
    ]


def payment_cause(refusal: PaymentError) -> Cause:
    if refusal.code == "budget":
        return Cause(
            code="budget",
            message="The rest of the run's max_cost does not cover the next call; "
            "finished rollouts are kept.",
        )
    return Cause(
        code="balance",
        message="The balance of the account that pays for the run does not cover the next call; "
        "finished rollouts are kept.",
    )


def load_own_endpoint(connection: Connection, run_id: str) -> OwnEndpoint | None:
    run = connection.execute(select(runs.c.model, runs.c.settings).where(runs.c.id == run_id)).one()
    url = run.settings.get("api_base_url")
    if not url:
        return None
    return OwnEndpoint(
        model=run.model,
        url=url.rstrip("/"),
        key_var=run.settings.get("api_key_var") or None,
        client_type=run.settings.get("api_client_type") or CHAT_CLIENT,
        headers=run.settings.get("headers") or {},
    )
