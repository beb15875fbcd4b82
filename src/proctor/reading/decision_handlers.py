"""Handlers of the routes that say what a run decides: gate, plan and history. The arithmetic is that of
`proctor eval gate`, `plan` and `history`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from proctor.api.decisions import GateQuery, HistoryQuery, PlanQuery, RunHistory
from proctor.api.refusals import InvalidError
from proctor.api.run_list import RunListQuery
from proctor.comparison.design import DesignGoal, EvaluationDesign, design_evaluation, measure_cost
from proctor.comparison.gate import GateInput, GateResult, decide_gate
from proctor.comparison.gate_policy import GatePolicy, parse_policy
from proctor.comparison.scores import RunScores
from proctor.config.toml_file import parse_toml
from proctor.errors import FileError
from proctor.reading.compared_runs import collect_scores
from proctor.reading.exchange import ReadRequest
from proctor.reading.library import RunLibrary, RunReader
from proctor.report.summary import Summary

POLICY = Path("policy")
"""What the problems of a policy are reported under, with their lines."""
GOALS = ("halfwidth", "difference", "budget", "rollouts")


async def get_gate(library: RunLibrary, request: ReadRequest) -> GateResult:
    query: GateQuery = request.query
    policy = read_policy(query.policy)
    reader = await library.open(request.path["run_id"])
    given = GateInput(
        candidate=[await read_run_scores(reader)],
        summaries=[await read_booked_summary(reader)],
        baseline=await read_other(library, reader, query.baseline, "baseline"),
    )
    result = await asyncio.to_thread(decide_gate, policy, given)
    if result.comparison is None:
        return result
    without_tasks = msgspec.structs.replace(result.comparison, tasks=())
    return msgspec.structs.replace(result, comparison=without_tasks)


def read_policy(text: str) -> GatePolicy:
    try:
        return parse_policy(parse_toml(text.replace("\r\n", "\n"), POLICY))
    except FileError as error:
        raise InvalidError(str(error), field="policy", problems=list(error.problems)) from error


async def get_plan(library: RunLibrary, request: ReadRequest) -> EvaluationDesign:
    query: PlanQuery = request.query
    reader = await library.open(request.path["run_id"])
    scores = await read_run_scores(reader)
    against = await read_other(library, reader, query.against, "against")
    cost = measure_cost([await read_booked_summary(reader)])
    goal = choose_goal(query, scores)
    try:
        return await asyncio.to_thread(design_evaluation, [scores], against, cost, goal)
    except ValueError as error:
        raise InvalidError(f"{reader.id}: {error}.") from error


def choose_goal(query: PlanQuery, scores: RunScores) -> DesignGoal:
    wanted = {name: getattr(query, name) for name in GOALS if getattr(query, name) is not None}
    if len(wanted) > 1:
        raise InvalidError(
            f"{' and '.join(wanted)} are two goals; give one of them.", field=next(iter(wanted))
        )
    kind, amount = next(iter(wanted.items()), ("rollouts", scores.scored))
    return DesignGoal(
        kind=kind,  # type: ignore[arg-type]
        amount=amount,
        level=query.level,
        power=query.power,
        correlation=query.correlation,
        most_tasks=query.most_tasks,
        rollouts=tuple(sorted(set(query.rollouts_per_task))),
    )


async def get_history(library: RunLibrary, request: ReadRequest) -> RunHistory:
    """Runs belong together if their recipe differs in nothing but the commit or the branch; of a run without
    a recipe, if environment, model and agent are the same."""
    query: HistoryQuery = request.query
    run = await (await library.open(request.path["run_id"])).info()
    origin = run.origin
    if origin is not None:
        wanted = RunListQuery(config_hash=origin.config_hash, repository=origin.repository, limit=query.limit)
    else:
        agent = [run.agent] if run.agent else []
        wanted = RunListQuery(
            environment=[run.environment], model=[run.model], agent=agent, limit=query.limit
        )
    page = await library.list_runs(wanted)
    return RunHistory(
        by="environment" if origin is None else "recipe",
        config_hash=None if origin is None else origin.config_hash,
        environment=run.environment,
        model=run.model,
        items=page.items,
        total=page.total,
    )


# What they are computed from


async def read_run_scores(reader: RunReader) -> RunScores:
    index, metadata = await reader.index(whole=True), await reader.metadata()
    return await asyncio.to_thread(collect_scores, index, reader.id, metadata)


async def read_other(
    library: RunLibrary, reader: RunReader, other: str | None, field: str
) -> list[RunScores]:
    if other is None:
        return []
    if other == reader.id:
        raise InvalidError(f"{other} is the run itself; name another one.", field=field)
    return [await read_run_scores(await library.open(other))]


async def read_booked_summary(reader: RunReader) -> Summary:
    """The report, with the cost that was booked while it was played, if it was."""
    summary, booked = await reader.summary(), (await reader.info()).cost_usd
    return summary if booked is None else msgspec.structs.replace(summary, cost_usd=booked)
