"""A request as the provider will receive it: checked, bounded, and encoded anew.

The gateway forwards what it parsed, never the bytes that came, so that a provider cannot read another model,
or another limit, than the one that was checked and reserved. Knows nothing of HTTP.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proctor.config.prices import Price
from proctor.server.gateway.bodies import JsonObject, encode_object
from proctor.server.gateway.bounds import Bound, limit_answer, prompt_bound
from proctor.server.gateway.models import ModelRoute
from proctor.server.gateway.parameters import check_parameters, check_stored, leave_out_providers_tools
from proctor.server.gateway.upstreams import Upstream
from proctor.server.people.tokens import Caller
from proctor.server.problems import ForbiddenError
from proctor.wires import chat_server, responses_server
from proctor.wires.errors import malformed_error
from proctor.wires.wire import Wire

BYTES_PER_TOKEN = 4
"""Of ordinary text; used where a provider reports no usage."""


class RequestHead(msgspec.Struct):
    """The fields that decide how a request is forwarded."""

    model: str | None = None
    stream: bool | None = None
    stream_options: chat_server.StreamOptions | None = None


class GatewayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and everything that is known about it before it is sent."""

    id: str
    caller: Caller
    payer: str
    route: ModelRoute
    upstream: Upstream
    head: RequestHead
    content: bytes
    headers: Mapping[str, str] | None = None
    is_own: bool = False
    """It goes to the run's own endpoint, which the run's owner pays for directly."""
    is_native: bool = False
    """The provider speaks the wire that it came in."""
    bound: Bound | None = None
    """The most tokens it can take, if the payer or the run has a limit."""

    @property
    def worst_cost(self) -> int:
        """The amount to reserve, in millionths of a dollar."""
        price = self.route.price
        return 0 if self.bound is None or price is None else self.bound.cost(price)

    @property
    def prompt_estimate(self) -> int:
        tokens = -(-len(self.content) // BYTES_PER_TOKEN)
        return tokens if self.bound is None else min(tokens, self.bound.prompt)


def count_calls() -> Iterator[str]:
    """Ids of one server's calls: counted after a random beginning, so that the database adds them at one end
    of its indexes. Ids that are random throughout would change a page each."""
    beginning = secrets.token_hex(8)
    return (f"{beginning}{number:012x}" for number in itertools.count())


def parse_head(body: Mapping[str, Any]) -> RequestHead:
    try:
        return msgspec.convert(body, RequestHead)
    except msgspec.ValidationError as error:
        raise malformed_error(f"The request cannot be read: {error}") from error


def hides_usage(wire: Wire, head: RequestHead) -> bool:
    """Whether a stream must report its usage although its client did not ask for it."""
    is_wanted = head.stream_options is not None and head.stream_options.include_usage
    return wire is chat_server.WIRE and bool(head.stream) and not is_wanted


def encode_for_own_endpoint(
    body: JsonObject, head: RequestHead, wire: Wire, model: str, *, is_native: bool
) -> bytes:
    """A request to a run's own endpoint, which receives all parameters unchecked."""
    if is_native:
        set_for_provider(body, head, wire, model)
    return encode_object(body)


def encode_for_provider(
    body: JsonObject,
    head: RequestHead,
    wire: Wire,
    route: ModelRoute,
    *,
    is_native: bool,
    answer_limit: int | None,
) -> tuple[bytes, Bound | None]:
    """A request to one of the server's endpoints, and, if the answer has a limit, the most it can take."""
    check_parameters(wire.path, body)
    leave_out_providers_tools(body)
    endpoint = route.endpoint
    answer = 0
    if answer_limit is not None:
        answer = limit_answer(wire.path, body, answer_limit, endpoint.url)
    if is_native:
        set_for_provider(body, head, wire, endpoint.model)
        if wire is responses_server.WIRE and body.get("store") is None:
            body["store"] = False  # stored by default, under a key that all users of this server share
    content = encode_object(body)
    check_stored(body, content)
    if answer_limit is None:
        return content, None
    return content, Bound(prompt_bound(body, len(content), endpoint.model), answer)


def set_for_provider(body: JsonObject, head: RequestHead, wire: Wire, model: str) -> None:
    """Use the provider's name for the model, and have every stream report its usage."""
    body["model"] = model
    if hides_usage(wire, head):
        body["stream_options"] = {"include_usage": True}


def need_price(route: ModelRoute, payer: str) -> Price:
    """The price of a model; a payer with a limit cannot use a model without one."""
    if route.price is None:
        raise ForbiddenError(
            f"No price is known for {route.name}, so {payer}, whose spending is limited, cannot use it; "
            f"an admin can set one with `proctor wallet price {route.name} INPUT OUTPUT`.",
            code="no_price",
            field="model",
        )
    return route.price


def is_free(price: Price) -> bool:
    return not (price.input or price.output or price.cached)
