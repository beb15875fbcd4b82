"""One door to every model: who asks is known by their Proctor token, and pays for what was really used.

Where a client speaks its provider's own wire, bytes are passed on as they are; otherwise the request is read
and asked in neutral words. Either way the call is booked before its answer, or the end of its stream, is
passed on. Knows nothing of accounts but whether somebody may spend.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
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
from proctor.errors import ConfigError, MalformedReplyError, ModelError, RequestRefusedError
from proctor.gateway import messages_wire
from proctor.gateway.failures import BROKEN, NOT_FOUND, refusal_of
from proctor.gateway.server import describe_model
from proctor.gateway.wire import (
    Answer,
    GatewayRefusedError,
    ModelRequest,
    Refusal,
    Wire,
    encode_json,
    malformed_error,
)
from proctor.models.http_client import UNREADABLE, error_text, retry_after
from proctor.server.db.tables import runs
from proctor.server.gateway import asgi
from proctor.server.gateway.bodies import LARGEST_REQUEST, JsonObject, decode_object, off_loop, receive_body
from proctor.server.gateway.models import REQUEST_SECONDS, ModelRoute
from proctor.server.gateway.native import (
    CHAT,
    MESSAGES,
    RESPONSES,
    NativeWire,
    RequestHead,
    StreamTap,
    has_error,
    hides_usage,
    parse_head,
)
from proctor.server.gateway.orders import (
    BYTES_PER_TOKEN,
    GatewayRequest,
    OwnEndpoint,
    is_free,
    need_price,
    write_order,
    write_own,
)
from proctor.server.gateway.upstreams import Upstream
from proctor.server.ledger.calls import LedgerCall
from proctor.server.ledger.records import Standing, millionths
from proctor.server.ledger.reservations import Reservation
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ApiError, PaymentError, UnauthenticatedError
from proctor.server.requests import caller_from_token
from proctor.support.logs import log
from proctor.trace import Reply, Usage

LARGEST_EVENT = 64 * 2**20
QUIET_SECONDS = 15.0
"""How long a stream may say nothing before it shows that somebody is still there."""
FORWARDED_HEADERS = ("retry-after", "retry-after-ms", "request-id", "x-request-id")
"""What a client sees of its provider's headers; of which type an answer is, the gateway knows itself."""
WIRES = {"/chat/completions": CHAT, "/responses": RESPONSES, "/messages": MESSAGES}
COUNT_TOKENS = "/messages/count_tokens"
ANSWER_TOKENS = 16_384
"""The limit of an answer that has to be paid from a limited sum, where neither its request names one nor the
registry."""
MOST_TOKENS = 10**9
"""Of one call, whatever its provider says; billions of these still fit into a column."""
PROVIDER_KEY = Refusal(
    403, "provider_key", "The provider refused the server's own key for this model; tell its operator."
)
OWN_KEY = Refusal(
    403, "provider_key", "The run's own endpoint refused its key; check the secret that api_key_var names."
)
PAYMENT_REQUIRED = 402
"""Said by this server alone, of its own accounts: a run that hears it stops asking."""
PROVIDER_PAYMENT = Refusal(
    403, "provider_payment", "The provider of this model wants to be paid by the server; tell its operator."
)
OWN_PAYMENT = Refusal(
    403, "provider_payment", "The run's own endpoint wants to be paid; check the account that its key is of."
)


class ServerGateway:
    """The handler of everything under `/v1`."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._own: dict[str, OwnEndpoint | None] = {}

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix("/v1").rstrip("/")
        native = WIRES.get(path) or (MESSAGES if is_anthropic_request(scope, path) else CHAT)
        begun = ResponseSender(send)
        try:
            await self._answer(path, native, scope, receive, begun)
        except asgi.ClientGoneError:
            return
        except GatewayRefusedError as error:
            await begun.refuse(native.wire, error.refusal)
        except ModelError as error:
            await begun.refuse(native.wire, refusal_of(error))
        except ApiError as error:
            code = "key" if isinstance(error, UnauthenticatedError) else error.code
            await begun.refuse(native.wire, Refusal(error.status, code, str(error)))
        except ConfigError as error:
            await begun.refuse(native.wire, Refusal(422, "invalid", str(error)))
        except Exception:
            log.exception("the gateway broke over %s %s", scope["method"], path)
            await begun.refuse(native.wire, BROKEN)

    async def _answer(
        self, path: str, native: NativeWire, scope: HTTPScope, receive: Receive, send: ResponseSender
    ) -> None:
        asking = asgi.read_request_headers(scope, native.passed)
        if not asking.token:
            raise UnauthenticatedError("This needs a token of this server, as the API key.")
        caller = await caller_from_token(self._platform, asking.token)
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
            order = await self._order(caller, native, content, asking.passed)
            await self._ask(order, native, receive, send)
            return
        raise GatewayRefusedError(NOT_FOUND)

    async def _ask(
        self, order: GatewayRequest, native: NativeWire, receive: Receive, send: ResponseSender
    ) -> None:
        try:
            await self._reserve(order, receive)
            asking = (
                self._pass(order, native, send)
                if order.is_native
                else self._translate(order, native.wire, send)
            )
            if order.is_own:  # nobody here pays for the rest, and its endpoint may go on for ever
                await asgi.unless_gone(receive, asking)
            else:
                await asking
        finally:
            self._platform.reserver.release(order.id)  # unless it was booked

    def _listing(self, path: str) -> dict[str, object]:
        if path == "/models":
            listed = [describe_model(model.id) for model in self._platform.models.listed()]
            ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
            return {"object": "list", "data": listed, "has_more": False, **ends}
        if path.startswith("/models/"):
            return describe_model(self._platform.models.resolve(path.removeprefix("/models/")).name)
        raise GatewayRefusedError(NOT_FOUND)

    # Before

    async def _order(
        self, caller: Caller, native: NativeWire, content: bytes, headers: Mapping[str, str] | None
    ) -> GatewayRequest:
        body = await off_loop(len(content), lambda: decode_object(content))
        head = parse_head(body)
        own = await self._own_endpoint(caller.run_id) if caller.run_id else None
        standing = await self._platform.meter.standing(caller.user, caller.run_id)
        if own is None or head.model not in (None, own.model):
            await self._check_may_spend(caller, standing)
            return await self._server_order(
                caller, standing, native, DecodedRequest(body, head, len(content), headers)
            )
        assert caller.run_id is not None
        upstream = await self._open_own(caller.run_id, own)
        provider = self._platform.models.route_to(upstream.endpoint).provider
        route = ModelRoute(name=own.model, endpoint=upstream.endpoint, provider=provider, price=None)
        is_native = upstream.speaks(native.client_type)
        return GatewayRequest(
            id=secrets.token_hex(10),
            caller=caller,
            payer=standing.payer,
            route=route,
            upstream=upstream,
            head=head,
            content=await off_loop(
                len(content),
                lambda: write_own(body, head, native, route.endpoint.model, is_native=is_native),
            ),
            headers=headers,
            is_own=True,
            is_native=is_native,
        )

    async def _server_order(
        self, caller: Caller, standing: Standing, native: NativeWire, asked: DecodedRequest
    ) -> GatewayRequest:
        """A request to one of the server's own endpoints, and what has to be reserved for it."""
        platform = self._platform
        route = platform.models.resolve(asked.head.model)
        is_bounded = standing.is_limited and not is_free(need_price(route, standing.payer))
        upstream = await platform.upstreams.of(route.name, route.endpoint)
        is_native = upstream.speaks(native.client_type)
        limit = (route.endpoint.max_output_tokens or ANSWER_TOKENS) if is_bounded else None
        content, bound = await off_loop(
            asked.size,
            lambda: write_order(
                asked.body, asked.head, native, route, is_native=is_native, answer_limit=limit
            ),
        )
        return GatewayRequest(
            id=secrets.token_hex(10),
            caller=caller,
            payer=standing.payer,
            route=route,
            upstream=upstream,
            head=asked.head,
            content=content,
            headers=asked.headers,
            is_native=is_native,
            bound=bound,
        )

    async def _reserve(self, order: GatewayRequest, receive: Receive) -> None:
        """Set the worst case aside; a client that leaves while it waits for that is not waited for."""
        amount = order.worst_cost
        if not amount:
            return
        run_id = order.caller.run_id
        wanted = Reservation(id=order.id, payer=order.payer, run_id=run_id, amount=amount)
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

    # Bytes in the provider's own wire

    async def _pass(self, order: GatewayRequest, native: NativeWire, send: ResponseSender) -> None:
        async with order.upstream.passing(native.path, order.content, order.headers) as response:
            if not 200 <= response.status < 300:
                await self._refused(order, native, response, send)
            elif response.content_type == "text/event-stream":
                await self._pass_stream(
                    order, StreamTap(native, hides_usage(native, order.head)), response, send
                )
            else:
                content = await order.upstream.whole(response)
                await self._book_answer(order, parse_usage(native, content), len(content))
                await asgi.send_response(
                    send, content, response.status, [*asgi.JSON, *forwarded_headers(response)]
                )

    async def _pass_stream(
        self, order: GatewayRequest, tap: StreamTap, response: aiohttp.ClientResponse, send: ResponseSender
    ) -> None:
        """A client that leaves is not waited for, but what it asked for is read to its end, for its usage."""
        await asgi.start_response(send, response.status, [*asgi.STREAM, *forwarded_headers(response)])
        held, size = bytearray(), 0
        try:
            async for chunk in response.content.iter_any():
                size += len(chunk)
                order.upstream.check_size(size)
                now, ending = tap.feed(chunk)
                if now:
                    await asgi.send_chunk(send, now)
                held += ending
                if len(held) + tap.waiting > LARGEST_EVENT:
                    raise RequestRefusedError(
                        f"{order.route.provider} sends an event that does not end.", status=502
                    )
                await asyncio.sleep(0)  # what is unpacked from few bytes is there at once, all of it
            now, ending = tap.end()
            held += now + ending
        finally:
            # Booked even where the stream breaks off or the server ends: whatever is known was used.
            await self._book(order, tap.spent, is_told=tap.is_metered, is_whole=tap.is_whole)
        await asgi.send_chunk(send, bytes(held), is_last=True)

    async def _refused(
        self,
        order: GatewayRequest,
        native: NativeWire,
        response: aiohttp.ClientResponse,
        send: ResponseSender,
    ) -> None:
        """What the provider says, in its own words where they have the wire's shape; nothing of any key."""
        content = order.upstream.without_keys(await order.upstream.whole(response))
        status = response.status
        if status in (401, 403):
            raise GatewayRefusedError(OWN_KEY if order.is_own else PROVIDER_KEY)
        if status == PAYMENT_REQUIRED:
            raise GatewayRefusedError(payment_refusal(order))
        if status < 400:
            raise RequestRefusedError(
                f"{order.route.provider} answered {status} and points elsewhere, where nobody follows.",
                status=502,
            )
        if has_error(content):
            status = asgi.known_status(status)
            await asgi.send_response(send, content, status, [*asgi.JSON, *forwarded_headers(response)])
            return
        text, code = error_text(content)
        said = f"{order.route.provider} answered {status}: {text}"
        why = Refusal(status, code.strip() or "provider_error", said, retry_after(response.headers))
        await asgi.send_refusal(send, native.wire, why)

    # Between two wires

    async def _translate(self, order: GatewayRequest, wire: Wire, send: ResponseSender) -> None:
        asked = await off_loop(len(order.content), lambda: wire.read(order.content))
        if asked.previous is not None:
            raise malformed_error(
                "previous_response_id: this model keeps no answers; send all that was said."
            )
        asking = asyncio.ensure_future(self._complete(order, asked))
        try:
            await self._tell(asked, asking, wire, send)
        finally:
            if order.is_own:
                asking.cancel()

    async def _tell(
        self, asked: ModelRequest, asking: asyncio.Future[Answer], wire: Wire, send: ResponseSender
    ) -> None:
        """Pass an answer on once it is there, and show until then that somebody is."""
        if not asked.stream:
            told = await asking
            await asgi.send_response(send, encode_json(wire.answer(asked, told)))
            return
        await asyncio.wait({asking}, timeout=QUIET_SECONDS)
        if asking.done():
            asking.result()  # a failure still has a status of its own
        await asgi.start_response(send, 200, asgi.STREAM)
        while not asking.done():
            await asgi.send_chunk(send, wire.KEEP_ALIVE)
            await asyncio.wait({asking}, timeout=QUIET_SECONDS)
        for event in wire.events(asked, wire.answer(asked, asking.result())):
            await asgi.send_chunk(send, event)
        await asgi.send_chunk(send, b"", is_last=True)

    async def _complete(self, order: GatewayRequest, asked: ModelRequest) -> Answer:
        request = Request(asked.messages, asked.tools, asked.sampling, {})
        try:
            reply: Reply = await order.upstream.model.complete(request)
        except ModelError as error:
            if error.status == PAYMENT_REQUIRED:
                raise GatewayRefusedError(payment_refusal(order)) from error
            if isinstance(error, MalformedReplyError):  # it answered, and will want to be paid for that
                await self._book(order, Usage(), is_told=False)
            raise
        await self._book_answer(order, reply.usage, len(reply.text))
        return Answer(reply=reply, model=order.route.name, id=secrets.token_hex(12), at=int(time.time()))

    # After

    async def _book_answer(self, order: GatewayRequest, usage: Usage, size: int) -> None:
        """Book a whole answer, of so many bytes."""
        is_told = bool(usage.input_tokens or usage.output_tokens)
        written = usage if is_told else Usage(output_tokens=-(-size // BYTES_PER_TOKEN))
        await self._book(order, written, is_told=is_told)

    async def _book(
        self, order: GatewayRequest, usage: Usage, *, is_told: bool, is_whole: bool = True
    ) -> None:
        """A whole answer without the provider's word costs what was reserved for it, else what its bytes come
        to; one that broke off costs what came of it."""
        price, reserved = order.route.price, order.worst_cost
        usage = plausible(usage)
        if not is_told:
            usage = replace(usage, input_tokens=max(usage.input_tokens, order.prompt_estimate))
        cost = None if price is None else millionths(price.of(usage))
        if reserved and cost is not None and not is_told:
            cost = reserved if is_whole else min(cost, reserved)
        call = LedgerCall(
            id=order.id,
            at=time.time(),
            owner=order.payer,
            user=order.caller.user,
            run_id=order.caller.run_id,
            model=order.route.name,
            provider=order.route.provider,
            usage=usage,
            cost=cost,
            is_estimate=not is_told,
            is_reserved=bool(reserved),
        )
        await self._platform.meter.book(call)


class DecodedRequest(msgspec.Struct, frozen=True):
    """A request that was decoded, before anybody knows who answers it."""

    body: JsonObject
    head: RequestHead
    size: int
    headers: Mapping[str, str] | None


class ResponseSender:
    """A way to answer that knows whether the answer has begun: then no status can be told any more."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_begun = False

    async def __call__(self, message: Message) -> None:
        self.is_begun = True
        await self._send(message)

    async def refuse(self, wire: Wire, why: Refusal) -> None:
        if self.is_begun:
            await asgi.send_chunk(self, wire.broken_off(why), is_last=True)
        else:
            await asgi.send_refusal(self, wire, why)


def is_anthropic_request(scope: HTTPScope, path: str) -> bool:
    """Which wire a request means that is for none of them in particular."""
    return path.startswith("/messages") or any(name == b"anthropic-version" for name, _ in scope["headers"])


def payment_refusal(order: GatewayRequest) -> Refusal:
    return OWN_PAYMENT if order.is_own else PROVIDER_PAYMENT


def parse_usage(native: NativeWire, content: bytes) -> Usage:
    try:
        return native.usage(content)
    except UNREADABLE:  # passed on all the same: its client may make sense of it
        return Usage()


def plausible(usage: Usage) -> Usage:
    """A usage without numbers that would give money back, or that no sum of them could hold."""
    read, written = (min(max(0, each), MOST_TOKENS) for each in (usage.input_tokens, usage.output_tokens))
    cached = min(max(0, usage.cached_tokens), read)
    return replace(usage, input_tokens=read, output_tokens=written, cached_tokens=cached)


def count_tokens(content: bytes) -> dict[str, Any]:
    decode_object(content)  # refuses more messages than a request may have
    return messages_wire.count_tokens(messages_wire.read(content))


def forwarded_headers(response: aiohttp.ClientResponse) -> asgi.Headers:
    headers = response.headers
    return [
        (name.encode(), asgi.header_value(headers[name])) for name in FORWARDED_HEADERS if name in headers
    ]


def payment_cause(refusal: PaymentError) -> Cause:
    if refusal.code == "budget":
        return Cause(
            code="budget",
            message="What is left of the run's max_cost does not cover the next call; "
            "what it had finished is kept.",
        )
    return Cause(
        code="balance",
        message="What is left in the account that pays for the run does not cover the next call; "
        "what it had finished is kept.",
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
