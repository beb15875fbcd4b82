"""Ask the server you are logged in to which models it offers.

Answers are kept for a few seconds: a suite asks once for every evaluation. Knows nothing of which endpoint is
chosen in the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from proctor.api.common import Page
from proctor.api.ledger import ModelInfo
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context
from proctor.config.endpoint_choice import ServerAnswer, assume_offered

T = TypeVar("T")

ANSWER_SECONDS = 5.0
KEPT_SECONDS = 10.0
TRIES = 2
NOT_OFFERED = frozenset({"model_not_found", "no_model"})
UNKNOWN_ROUTE = 404

_kept: dict[tuple[str, str, str | None], tuple[float, ServerAnswer]] = {}


def ask_for_model(context: Context, model: str | None) -> ServerAnswer:
    key = (context.url, context.token, model)
    at, answer = _kept.get(key, (0.0, ServerAnswer()))
    if time.monotonic() > at + KEPT_SECONDS or key not in _kept:
        answer = fetch_answer(context, model)
        _kept[key] = (time.monotonic(), answer)
    return answer


def fetch_answer(context: Context, model: str | None) -> ServerAnswer:
    try:
        found = call_in_thread(context, lambda server: server.get("/models/resolve", ModelInfo, name=model))
    except ServerError as error:
        if error.code in NOT_OFFERED:
            what = "no models" if error.code == "no_model" else f"no model {model!r}"
            return ServerAnswer(problem=f"has {what}")
        if error.status == UNKNOWN_ROUTE:  # an older server
            return assume_offered(model)
        if error.status is None:
            return ServerAnswer(problem="does not answer")
        return ServerAnswer(problem=f"refused to say which models it has ({error})")
    return ServerAnswer(model=found.id)


def list_server_models(context: Context) -> list[ModelInfo]:
    """The models of a server; raises ServerError if it does not answer."""
    page = call_in_thread(context, lambda server: server.get("/models", Page[ModelInfo]))
    return page.items


def call_in_thread(context: Context, work: Callable[[ServerConnection], Awaitable[T]]) -> T:
    """Make a request and wait for it, whether or not this thread runs an event loop."""

    async def main() -> T:
        async with ServerConnection(context, tries=TRIES, request_seconds=ANSWER_SECONDS) as server:
            return await work(server)

    with ThreadPoolExecutor(1, "server-models") as thread:
        return thread.submit(asyncio.run, main()).result()
