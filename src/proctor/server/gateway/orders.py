"""A request as it will be asked: checked, bounded, and written anew.

What is passed on is encoded from what was parsed, never the bytes that came, so that a provider cannot read
another model, or another limit, than the one that was checked and reserved. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from proctor.config.prices import Price
from proctor.server.gateway.bodies import JsonObject, encode_object
from proctor.server.gateway.bounds import Bound, limit_answer, prompt_bound
from proctor.server.gateway.models import ModelRoute
from proctor.server.gateway.native import NativeWire, RequestHead, hides_usage
from proctor.server.gateway.parameters import check_parameters, check_stored, leave_out_providers_tools
from proctor.server.gateway.upstreams import Upstream
from proctor.server.people.tokens import Caller
from proctor.server.problems import ForbiddenError

BYTES_PER_TOKEN = 4
"""Of ordinary text; used where a provider reports no usage."""


class OwnEndpoint(msgspec.Struct, frozen=True):
    """What a run's settings say of an endpoint of its own."""

    model: str
    url: str
    key_var: str | None
    client_type: str
    headers: Mapping[str, str]


class GatewayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and everything that was found out about it before it is asked."""

    id: str
    caller: Caller
    payer: str
    route: ModelRoute
    upstream: Upstream
    head: RequestHead
    content: bytes
    headers: Mapping[str, str] | None = None
    is_own: bool = False
    """It is asked at the run's own endpoint, which its owner pays themselves."""
    is_native: bool = False
    """It is asked in the wire it came in."""
    bound: Bound | None = None
    """The most it can take, where the payer or the run has a limit."""

    @property
    def worst_cost(self) -> int:
        """What has to be reserved, in millionths of a dollar."""
        price = self.route.price
        return 0 if self.bound is None or price is None else self.bound.cost(price)

    @property
    def prompt_estimate(self) -> int:
        tokens = -(-len(self.content) // BYTES_PER_TOKEN)
        return tokens if self.bound is None else min(tokens, self.bound.prompt)


def write_own(
    body: JsonObject, head: RequestHead, native: NativeWire, model: str, *, is_native: bool
) -> bytes:
    """A request to an endpoint that a run brought along: whatever it says is between the two."""
    if is_native:
        set_for_provider(body, head, native, model)
    return encode_object(body)


def write_order(
    body: JsonObject,
    head: RequestHead,
    native: NativeWire,
    route: ModelRoute,
    *,
    is_native: bool,
    answer_limit: int | None,
) -> tuple[bytes, Bound | None]:
    """A request to one of the server's endpoints; with a limit, also the most that it can take."""
    check_parameters(native.path, body)
    leave_out_providers_tools(body)
    endpoint = route.endpoint
    answer = 0
    if answer_limit is not None:
        answer = limit_answer(native.path, body, answer_limit, endpoint.url)
    if is_native:
        set_for_provider(body, head, native, endpoint.model)
        if native.path == "/responses" and body.get("store") is None:
            body["store"] = False  # kept by default, under a key that all users of this server share
    content = encode_object(body)
    check_stored(body, content)
    if answer_limit is None:
        return content, None
    return content, Bound(prompt_bound(body, len(content), endpoint.model), answer)


def set_for_provider(body: JsonObject, head: RequestHead, native: NativeWire, model: str) -> None:
    """The model under the name that its provider knows, and the usage of every stream."""
    body["model"] = model
    if hides_usage(native, head):
        body["stream_options"] = {"include_usage": True}


def need_price(route: ModelRoute, payer: str) -> Price:
    """The price of a model that somebody with a limit asks."""
    if route.price is None:
        raise ForbiddenError(
            f"No price is known for {route.name}, so {payer}, whose spending is limited, cannot use it; "
            f"an admin can set one with `proctor wallet price {route.name} INPUT OUTPUT`.",
            code="no_price",
        )
    return route.price


def is_free(price: Price) -> bool:
    return not (price.input or price.output or price.cached)
