"""Several evaluations at once: each with its own run, and one budget for all that share an endpoint.

One that fails leaves the others alone. Knows nothing of files they are described in, or of terminals.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

import msgspec

from proctor.contracts import Listener
from proctor.endpoints.endpoint import EndpointDemand, SharedEndpoint, SharedEndpoints, capacity_key
from proctor.errors import ProctorError
from proctor.evaluation.evaluate import Control, Prepared, Result, close_quietly, run
from proctor.evaluation.reuse import ReusePlan
from proctor.events import RunEnded
from proctor.run import Run, new_run_id
from proctor.support.logs import RUN_INDEX


class SuiteMember(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of a suite."""

    prepared: Prepared
    listeners: Sequence[Listener] = ()
    control: Control
    resume: str | None = None
    accept_changed: Sequence[str] = ()
    reuse: ReusePlan | None = None
    service: SharedEndpoint | None = None
    """Instead of one that evaluations share; closed with the evaluation."""


class EvaluationOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one evaluation: a result, or the error that prevented it."""

    prepared: Prepared
    result: Result | None = None
    error: ProctorError | None = None


async def run_all(members: Sequence[SuiteMember]) -> list[EvaluationOutcome]:
    """Run them side by side, in the order given. Several get the id of a new suite."""
    suite = new_run_id() if len(members) > 1 else ""
    members = [
        msgspec.structs.replace(member, prepared=msgspec.structs.replace(prepared, suite=suite))
        for member, prepared in zip(
            members, count_endpoint_sharers([each.prepared for each in members]), strict=True
        )
    ]
    services = SharedEndpoints(endpoint_demand(member.prepared) for member in members)
    try:
        async with asyncio.TaskGroup() as group:
            runs = [
                group.create_task(run_one(index, member, services)) for index, member in enumerate(members)
            ]
    finally:
        await close_quietly(services.close)
    return [each.result() for each in runs]


def count_endpoint_sharers(prepared: Sequence[Prepared]) -> list[Prepared]:
    """The same evaluations, each with the number of evaluations that share its endpoint."""
    sharers = Counter(capacity_key(each.endpoint) for each in prepared)
    return [msgspec.structs.replace(each, sharers=sharers[capacity_key(each.endpoint)]) for each in prepared]


def endpoint_demand(prepared: Prepared) -> EndpointDemand:
    return EndpointDemand(prepared.endpoint, prepared.rules().at_once, prepared.plays_in_workers)


async def run_one(index: int, member: SuiteMember, services: SharedEndpoints) -> EvaluationOutcome:
    RUN_INDEX.set(index)
    prepared = member.prepared
    try:
        service = member.service or services.of(prepared.endpoint)
        result = await run(
            prepared,
            member.listeners,
            control=member.control,
            resume=member.resume,
            accept_changed=member.accept_changed,
            service=service,
            reuse=member.reuse,
        )
    except ProctorError as error:
        report_failure(member, str(error))
        return EvaluationOutcome(prepared=prepared, error=error)
    finally:
        if member.service is not None:
            await close_quietly(member.service.close)
    return EvaluationOutcome(prepared=prepared, result=result)


def report_failure(member: SuiteMember, reason: str) -> None:
    """Report the end to listeners, which may have missed the run's start."""
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
