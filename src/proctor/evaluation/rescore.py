"""Score a run again from its record, in Python. The command line does the same, with a display."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.contracts import EnvironmentProtocol, Listener
from proctor.endpoints.endpoint import SharedEndpoint
from proctor.evaluation.evaluate import close_quietly, run
from proctor.evaluation.execute import Result
from proctor.evaluation.recorded_settings import prepare_rescoring, read_recorded_settings
from proctor.evaluation.reuse import plan_rescore
from proctor.evaluation.score_moves import ScoreMoves, find_moves
from proctor.store.index import find_run, search_folders


class Rescored(msgspec.Struct, frozen=True):
    """A run that was scored again, and what moved."""

    result: Result
    moves: ScoreMoves


async def rescore(
    of: str | Path,
    environment: EnvironmentProtocol | str | None = None,
    *,
    listeners: Sequence[Listener] = (),
    **settings: Any,
) -> Rescored:
    """Score the rollouts of a run again, from what was recorded; the evaluated model is not called.

    again = await rescore("latest", SingleTurnEnv(rows, rubric=Rubric(stricter)))
    print(again.moves.before, again.moves.after)

    The run is named by its id, its folder or 'latest'. Without an environment, the run's own is loaded again;
    `settings` are those of EvalConfig that are to differ from the run's.
    """
    folder = find_run(str(of), search_folders())
    overrides = {**settings, **({"env_id": environment} if isinstance(environment, str) else {})}
    made = None if environment is None or isinstance(environment, str) else environment
    prepared, model = prepare_rescoring(read_recorded_settings(folder), overrides, os.environ, made)
    plan = plan_rescore(prepared, folder)
    try:
        result = await run(prepared, listeners, service=SharedEndpoint(model), reuse=plan)
        return Rescored(result, find_moves(plan, result.folder))
    finally:
        await close_quietly(model.close)
        plan.plays.close()
