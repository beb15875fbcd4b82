"""Several evaluations at once: each with its own run, and one budget for all that ask the same endpoint.

One that fails leaves the others alone. Knows nothing of files they are described in, or of terminals.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

import msgspec

from proctor.contracts import Listener
from proctor.endpoints.endpoint import Services, Wish, place_of
from proctor.errors import ProctorError
from proctor.evaluation.evaluate import Control, Prepared, Result, closed, run
from proctor.events import RunEnded
from proctor.run import Run
from proctor.support.logs import PLACE


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of a suite."""

    prepared: Prepared
    listeners: Sequence[Listener] = ()
    control: Control
    resume: str | None = None


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What one evaluation came to: a result, or why there is none."""

    prepared: Prepared
    result: Result | None = None
    error: ProctorError | None = None


async def run_all(members: Sequence[Member]) -> list[Ended]:
    """Run them side by side, in the order given."""
    members = [
        msgspec.structs.replace(member, prepared=prepared)
        for member, prepared in zip(members, side_by_side([each.prepared for each in members]), strict=True)
    ]
    services = Services(wish_of(member.prepared) for member in members)
    try:
        async with asyncio.TaskGroup() as group:
            runs = [
                group.create_task(run_one(place, member, services)) for place, member in enumerate(members)
            ]
    finally:
        await closed(services.close)
    return [each.result() for each in runs]


def side_by_side(prepared: Sequence[Prepared]) -> list[Prepared]:
    """The same evaluations, each knowing how many others ask its endpoint."""
    places = Counter(place_of(each.endpoint) for each in prepared)
    return [msgspec.structs.replace(each, sharers=places[place_of(each.endpoint)]) for each in prepared]


def wish_of(prepared: Prepared) -> Wish:
    return Wish(prepared.endpoint, prepared.rules().at_once, prepared.workers() > 1)


async def run_one(place: int, member: Member, services: Services) -> Ended:
    PLACE.set(place)
    prepared = member.prepared
    try:
        service = services.of(prepared.endpoint)
        result = await run(
            prepared, member.listeners, control=member.control, resume=member.resume, service=service
        )
    except ProctorError as error:
        tell_failed(member, str(error))
        return Ended(prepared=prepared, error=error)
    return Ended(prepared=prepared, result=result)


def tell_failed(member: Member, reason: str) -> None:
    """Listeners may not have heard of the run at all."""
    prepared = member.prepared
    failed = Run(
        id="",
        env_id=prepared.name,
        model=prepared.endpoint.model,
        label=prepared.config.label,
        status="failed",
        ended_at=time.time(),
        note=reason,
    )
    for listener in member.listeners:
        listener(RunEnded(failed))
