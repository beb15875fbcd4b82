"""The entry of a call in the ledger: what it used and what it costs, as reported or as estimated.

Knows nothing of HTTP, nor of the wire that the answer came in.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable

from msgspec.structs import replace

from proctor.server.gateway.meter import UsageMeter
from proctor.server.gateway.requests import BYTES_PER_TOKEN, GatewayRequest
from proctor.server.ledger.calls import LedgerCall
from proctor.server.ledger.records import millionths
from proctor.trace import Usage

MOST_TOKENS = 10**9
"""The most that is booked for one call, whatever its provider reports: billions of these fit in a column."""


def book_answer(meter: UsageMeter, request: GatewayRequest, usage: Usage, size: int) -> Awaitable[None]:
    """Book a whole answer of this many bytes."""
    is_reported = bool(usage.input_tokens or usage.output_tokens)
    written = usage if is_reported else Usage(output_tokens=-(-size // BYTES_PER_TOKEN))
    return book_call(meter, request, written, is_reported=is_reported)


def book_call(
    meter: UsageMeter,
    request: GatewayRequest,
    usage: Usage,
    *,
    is_reported: bool,
    is_whole: bool = True,
) -> Awaitable[None]:
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
    return meter.book(call)


def plausible(usage: Usage) -> Usage:
    """A usage without negative numbers, which would give money back, and none too large to be summed up."""
    read = min(max(0, usage.input_tokens), MOST_TOKENS)
    written = min(max(0, usage.output_tokens), MOST_TOKENS)
    cached = min(max(0, usage.cached_tokens), read)
    if (read, written, cached) == (usage.input_tokens, usage.output_tokens, usage.cached_tokens):
        return usage
    return replace(usage, input_tokens=read, output_tokens=written, cached_tokens=cached)
