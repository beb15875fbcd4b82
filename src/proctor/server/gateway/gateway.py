"""The server's gateway to every model: callers are known by their Proctor tokens and pay for actual usage.

Who calls, what they may spend, and which endpoint answers are settled here. If the provider speaks the wire
that the client uses, its answer is forwarded as it is (`native_answers.py`); otherwise the request is
translated (`translated_answers.py`). Knows nothing of accounts except whether a payer may spend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar.types import HTTPScope, Receive, Send

from proctor.api.runs import Cause
from proctor.errors import ConfigError, ModelError
from proctor.gateway.failures import BROKEN, NOT_FOUND, refusal_of
from proctor.gateway.server import describe_model
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.gateway import asgi
from proctor.server.gateway.asgi import ResponseSender
from proctor.server.gateway.bodies import LARGEST_REQUEST, JsonObject, decode_object, off_loop, receive_body
from proctor.server.gateway.models import ModelRoute
from proctor.server.gateway.native_answers import pass_answer
from proctor.server.gateway.own_endpoints import OwnEndpoints
from proctor.server.gateway.requests import (
    GatewayRequest,
    RequestHead,
    count_calls,
    encode_for_own_endpoint,
    encode_for_provider,
    is_free,
    need_price,
    parse_head,
)
from proctor.server.gateway.translated_answers import translate_answer
from proctor.server.ledger.records import Standing
from proctor.server.ledger.reservations import Reservation
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import RETRY_SECONDS, ApiError, PaymentError, UnauthenticatedError
from proctor.server.requests import caller_from_token
from proctor.support.logs import log
from proctor.wires import anthropic_server, chat_server, responses_server
from proctor.wires.codec import encode_json
from proctor.wires.errors import GatewayRefusedError, Refusal
from proctor.wires.wire import Wire

CALL_PATIENCE_SECONDS = 120.0
"""How long a model call waits for a database that is away; any other request gives up sooner."""
WIRES = {wire.path: wire for wire in (chat_server.WIRE, responses_server.WIRE, anthropic_server.WIRE)}
COUNT_TOKENS = "/messages/count_tokens"
ANSWER_TOKENS = 16_384
"""The limit of an answer for a payer with a limit, if neither the request nor the registry sets one."""


class ServerGateway:
    """The handler of everything under `/v1`."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._own_endpoints = OwnEndpoints(platform)
        self._ids = count_calls()

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        path = asgi.wire_path(scope["path"])
        wire = WIRES.get(path) or (
            anthropic_server.WIRE if is_anthropic_request(scope, path) else chat_server.WIRE
        )
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
            await availability.wait(CALL_PATIENCE_SECONDS)
        caller = await caller_from_token(self._platform, headers.token)
        caller.need("inference")
        if scope["method"] == "GET":
            await asgi.send_response(send, encode_json(self._listing(path)))
            return
        if scope["method"] == "POST" and (path == COUNT_TOKENS or path in WIRES):
            largest = min(self._platform.settings.largest_body, LARGEST_REQUEST)
            content = await receive_body(receive, largest)
            if path not in WIRES:
                counted = await off_loop(len(content), count_tokens, content)
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
            forward = pass_answer if request.is_native else translate_answer
            forwarding = forward(self._platform.meter, request, wire, send)
            if request.is_own:  # this server pays nothing for the rest, and the endpoint may stream forever
                await asgi.unless_gone(receive, forwarding)
            else:
                await forwarding
        finally:
            self._platform.reserver.release(request.id)  # does nothing if it was booked

    def _listing(self, path: str) -> dict[str, object]:
        if path == "/models":
            listed = [describe_model(model.id) for model in self._platform.models.list_models()]
            ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
            return {"object": "list", "data": listed, "has_more": False, **ends}
        if path.startswith("/models/"):
            return describe_model(self._platform.models.resolve(path.removeprefix("/models/")).name)
        raise GatewayRefusedError(NOT_FOUND)

    async def _prepare(
        self, caller: Caller, wire: Wire, content: bytes, headers: Mapping[str, str] | None
    ) -> GatewayRequest:
        body = await off_loop(len(content), decode_object, content)
        head = parse_head(body)
        own = await self._own_endpoints.find(caller.run_id) if caller.run_id else None
        standing = await self._platform.meter.standing(caller.user, caller.run_id)
        if own is None or head.model not in (None, own.model):
            await self._check_may_spend(caller, standing)
            decoded = DecodedRequest(body, head, len(content), headers)
            return await self._prepare_for_provider(caller, standing, wire, decoded)
        assert caller.run_id is not None
        upstream = await self._own_endpoints.open(caller.run_id, own)
        provider = self._platform.models.route_to(upstream.endpoint).provider
        route = ModelRoute(name=own.model, endpoint=upstream.endpoint, provider=provider, price=None)
        is_native = upstream.speaks(wire.client_type)
        return GatewayRequest(
            id=next(self._ids),
            caller=caller,
            payer=standing.payer,
            route=route,
            upstream=upstream,
            head=head,
            content=await off_loop(
                len(content),
                encode_for_own_endpoint,
                body,
                head,
                wire,
                route.endpoint.model,
                is_native=is_native,
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
            encode_for_provider,
            decoded.body,
            decoded.head,
            wire,
            route,
            is_native=is_native,
            answer_limit=limit,
        )
        return GatewayRequest(
            id=next(self._ids),
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


class DecodedRequest(msgspec.Struct, frozen=True):
    """A decoded request whose endpoint is not yet known."""

    body: JsonObject
    head: RequestHead
    size: int
    headers: Mapping[str, str] | None


def is_anthropic_request(scope: HTTPScope, path: str) -> bool:
    """Whether a request to a path that all wires share comes from a client of Anthropic's."""
    return path.startswith("/messages") or any(name == b"anthropic-version" for name, _ in scope["headers"])


def count_tokens(content: bytes) -> dict[str, Any]:
    decode_object(content)  # refuses more messages than a request may have
    return anthropic_server.count_tokens(anthropic_server.decode_request(content))


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
