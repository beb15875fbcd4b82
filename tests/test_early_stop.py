"""Runs that end before their last task: enough is known, or enough was spent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from proctor import EchoEnvironment, Rubric, Scripted, SingleTurnEnv, evaluate
from proctor.config.endpoints import CUSTOM_CLIENT, Endpoint
from proctor.config.sources import resolve
from proctor.endpoints.endpoint import SharedEndpoint
from proctor.errors import ConfigError
from proctor.evaluation.budget import CostBudget
from proctor.evaluation.evaluate import Control, prepare, run
from proctor.evaluation.execute import Result
from proctor.events import Event, PlanCounted, RolloutsFinished
from proctor.store.folder import read_metadata
from proctor.store.index import run_folders, search_folders
from proctor.store.scores import read_scores

if TYPE_CHECKING:
    from tests.conftest import Ran

pytestmark = pytest.mark.usefixtures("home")

TASKS = 200
ENVIRONMENT = """
from proctor import EchoEnvironment, Rubric, SingleTurnEnv

def right(completion, answer) -> float:
    return float(answer)

def load_environment(every=3, tasks=200):
    rows = [{"question": f"say {n}", "answer": str(int(n % every == 0))} for n in range(tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(right))
"""


def right(answer: str) -> float:
    return float(answer)


def env_of(every: int = 3, tasks: int = TASKS) -> SingleTurnEnv:
    """Every third task passes, always."""
    rows = [{"question": f"say {n}", "answer": str(int(n % every == 0))} for n in range(tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(right))


def play(
    environment: SingleTurnEnv | EchoEnvironment, model: Scripted | None = None, **settings: Any
) -> Result:
    return asyncio.run(evaluate(environment, model or Scripted(), **settings))


def task_order(folder: Path) -> list[int]:
    return [json.loads(line)["example_id"] for line in (folder / "results.jsonl").read_bytes().splitlines()]


# Enough is known


def test_a_run_stops_once_the_mean_is_known_well_enough() -> None:
    result = play(env_of(), until_halfwidth=0.2, max_concurrent=1)
    stop, summary = result.early_stop, result.summary

    assert result.run.status == "finished"
    assert stop is not None
    assert stop.interval is not None
    assert stop.mean is not None
    assert (stop.reached, stop.available) == (True, TASKS)
    assert stop.interval.high - stop.mean <= 0.2
    assert stop.tasks <= summary.tasks < TASKS
    assert summary.planned == summary.tasks
    assert summary.coverage == 1.0
    assert result.run.note == stop.text
    assert "--until-halfwidth 0.2 was reached" in stop.text


def test_the_metadata_says_so_too() -> None:
    result = play(env_of(), until_halfwidth=0.2, max_concurrent=1)
    stored = read_metadata(result.folder)

    assert stored["early_stop"]["text"] == stored["note"]
    assert stored["planned"] == stored["settled"] == result.summary.planned
    assert "played in random order (seed 0) until --until-halfwidth is reached" in stored["selection"]


def test_a_precision_that_is_never_reached_plays_everything() -> None:
    result = play(env_of(tasks=30), until_halfwidth=0.01)

    assert result.early_stop is not None
    assert not result.early_stop.reached
    assert "not reached after 30 of 30 tasks" in result.early_stop.text
    assert (result.summary.planned, result.run.note) == (30, "")


def test_tasks_come_in_a_seeded_random_order() -> None:
    orders = [
        task_order(play(env_of(), until_halfwidth=0.2, max_concurrent=1, seed=seed).folder)[:40]
        for seed in (1, 1, 2)
    ]

    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_a_stop_waits_for_slow_tasks_that_came_before_quick_ones() -> None:
    """With many at once, the tasks that count are still the first of the order, all of them."""
    at_once = play(env_of(), until_halfwidth=0.2, max_concurrent=16).early_stop
    one_by_one = play(env_of(), until_halfwidth=0.2, max_concurrent=1).early_stop

    assert at_once == one_by_one


def test_started_tasks_are_played_with_all_their_rollouts() -> None:
    result = play(env_of(), until_halfwidth=0.2, rollouts_per_example=3, max_concurrent=7)
    order = task_order(result.folder)

    assert all(order.count(task) == 3 for task in set(order))
    assert result.summary.coverage == 1.0


def test_a_run_stops_once_it_is_decided_against_its_baseline() -> None:
    baseline = play(env_of(every=1))

    worse = play(env_of(every=3), until_decided=str(baseline.folder), max_concurrent=1)
    same = play(env_of(every=1), until_decided=str(baseline.folder))

    assert worse.early_stop is not None
    assert same.early_stop is not None
    assert (worse.early_stop.verdict, worse.early_stop.baseline) == ("worse", baseline.run.id)
    assert worse.summary.tasks < TASKS
    assert f"worse than {baseline.run.id} after" in worse.early_stop.text
    assert (same.early_stop.reached, same.early_stop.verdict) == (False, None)
    assert same.summary.tasks == TASKS


def test_a_comparison_names_the_early_stop_of_a_run() -> None:
    baseline = play(env_of(every=1))
    worse = play(env_of(every=3), until_decided=str(baseline.folder))

    settings = read_scores(worse.folder, "worse").settings

    assert "worse than" in settings["early_stop"]
    assert "early_stop" not in read_scores(baseline.folder, "baseline").settings


def test_a_baseline_of_other_tasks_is_refused() -> None:
    other = SingleTurnEnv([{"question": "else", "answer": "1", "example_id": "x"}], rubric=Rubric(right))
    baseline = play(other)

    with pytest.raises(ConfigError, match="scored none of these 200 tasks"):
        play(env_of(), until_decided=str(baseline.folder))


def stopped_after(count: int, folder: Path | None = None, **settings: Any) -> Result:
    """Evaluate ./env.py until so many rollouts have ended, or to its end."""
    control, ended = Control(), 0

    def listen(event: Event) -> None:
        nonlocal ended
        if isinstance(event, RolloutsFinished):
            ended += len(event.rollouts)
            if ended >= count:
                control.stop()

    given = {
        "env_id": "./env.py",
        "model": "scripted",
        "num_examples": -1,
        "rollouts_per_example": 1,
        "max_concurrent": 2,
        "save_results": True,
        **settings,
    }

    async def main() -> Result:
        model = SharedEndpoint(Scripted())
        where = None if folder is None else str(folder)
        return await run(prepare(given, {}), [listen], control=control, service=model, resume=where)

    return asyncio.run(main())


def test_an_interrupted_run_resumes_and_stops_where_it_would_have(home: Path) -> None:
    (home / "env.py").write_text(ENVIRONMENT)
    whole = stopped_after(10**6, until_halfwidth=0.2)
    part = stopped_after(10, until_halfwidth=0.2)
    assert part.run.status == "stopped"

    resumed = stopped_after(10**6, part.folder, until_halfwidth=0.2)

    assert resumed.run.status == "finished"
    assert resumed.early_stop == whole.early_stop
    assert len(task_order(resumed.folder)) == len(set(task_order(resumed.folder)))


def test_a_stopped_run_resumes_with_nothing_to_play_and_further_with_a_finer_wish(home: Path) -> None:
    (home / "env.py").write_text(ENVIRONMENT)
    first = stopped_after(10**6, until_halfwidth=0.2)

    again = stopped_after(10**6, first.folder, until_halfwidth=0.2)
    assert again.summary == first.summary
    assert again.early_stop == first.early_stop
    finer = stopped_after(10**6, first.folder, until_halfwidth=0.15)
    everything = stopped_after(10**6, first.folder)

    assert finer.early_stop is not None
    assert first.summary.tasks < finer.summary.tasks < TASKS
    assert everything.summary.tasks == TASKS
    assert everything.early_stop is None


def test_listeners_learn_how_many_rollouts_there_are_after_all() -> None:
    counted: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, PlanCounted):
            counted.append(event.planned)

    result = play(env_of(), until_halfwidth=0.2, max_concurrent=1, listeners=[listen])

    assert counted == [result.summary.planned]


def test_rescoring_a_stopped_run_keeps_all_its_tasks() -> None:
    from proctor.evaluation.prepare_objects import prepare_instance
    from proctor.evaluation.reuse import plan_rescore

    first = play(env_of(), until_halfwidth=0.2)
    given = {"num_examples": -1, "rollouts_per_example": 1, "until_halfwidth": 0.9}
    prepared = prepare_instance(env_of(), given, Scripted())

    again = asyncio.run(
        run(prepared, service=SharedEndpoint(Scripted()), reuse=plan_rescore(prepared, first.folder))
    )

    assert again.summary.tasks == first.summary.tasks


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"until_halfwidth": 0.1, "until_decided": "latest"}, "two rules to stop by"),
        ({"until_halfwidth": 0.1, "no_interleave_scoring": True}, "could stop nothing"),
        ({"max_cost": 1.0, "no_interleave_scoring": True}, "--max-cost could stop nothing"),
        ({"until_halfwidth": 0.0}, "half the width"),
        ({"max_cost": -1.0}, "dollars above 0"),
        ({"max_cost": float("nan")}, "must be a finite number"),
        ({"until_halfwith": 0.1}, "There is no setting 'until_halfwith'; did you mean 'until_halfwidth'"),
        ({"sampling_args": {"top_p": float("nan")}}, "must hold finite numbers, but 'top_p' is nan"),
    ],
)
def test_rules_that_make_no_sense_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        resolve({"env_id": "echo", **settings}, {})


def test_the_command_stops_with_workers_and_says_why(home: Path, proctor: Callable[..., Ran]) -> None:
    (home / "env.py").write_text(ENVIRONMENT)
    words = ("env.py", "-m", "scripted", "-n", "-1", "-r", "1", "--until-halfwidth", "0.2", "-w", "2")

    done = proctor("eval", "run", *words, "--json", cwd=home)
    shown = proctor("eval", "run", *words, "-A", cwd=home)

    document = json.loads(done.stdout)
    assert done.code == 0
    assert document["early_stop"]["reached"] is True
    assert document["summary"]["planned"] < TASKS
    assert "--until-halfwidth 0.2 was reached" in " ".join(shown.stdout.split())
    assert "allows for looking after every task" in " ".join(shown.stdout.split())


# Enough was spent


def spend(max_cost: float, folder: Path | None = None) -> Result:
    """Evaluate ./env.py on 40 tasks with a model that has a list price."""
    given = {"env_id": "./env.py", "num_examples": 40, "rollouts_per_example": 1, "max_concurrent": 4}
    prepared = prepare({**given, "model": "scripted", "save_results": True, "max_cost": max_cost}, {})
    prepared = replace(prepared, endpoint=Endpoint(model="gpt-4.1", client_type=CUSTOM_CLIENT))
    service = SharedEndpoint(Scripted(name="gpt-4.1"))
    where = None if folder is None else str(folder)
    return asyncio.run(run(prepared, service=service, resume=where))


def test_a_run_stops_before_it_costs_more_than_allowed_and_resumes_with_a_larger_budget(home: Path) -> None:
    (home / "env.py").write_text(ENVIRONMENT)
    each = (2 * 2.0 + 2 * 8.0) / 1e6  # two tokens in and two out, at the list price

    first = spend(20 * each)
    more = spend(30 * each, first.folder)
    enough = spend(1.0, first.folder)

    assert [result.run.status for result in (first, more, enough)] == ["stopped", "stopped", "finished"]
    assert [result.summary.finished for result in (first, more, enough)] == [20, 30, 40]
    assert first.summary.cost_usd == pytest.approx(20 * each)
    assert "might have cost more than --max-cost" in first.run.note


def test_a_budget_that_suffices_changes_nothing() -> None:
    result = play(env_of(tasks=10), Scripted(name="gpt-4.1"), max_cost=1.0)

    assert (result.run.status, result.summary.finished) == ("finished", 10)


def test_a_model_without_a_price_cannot_have_a_budget() -> None:
    with pytest.raises(ConfigError, match="price of nobody-knows"):
        play(env_of(tasks=2), Scripted(name="nobody-knows"), max_cost=1.0)


class Spent:
    """A run whose rollouts end when it is told."""

    def __init__(self, each_usd: float) -> None:
        self.ended, self.waiting, self._each = 0, 0, each_usd

    def spent_usd(self) -> float:
        return self.ended * self._each

    def count_ended(self) -> int:
        return self.ended

    def flush(self) -> None:
        self.ended, self.waiting = self.ended + self.waiting, 0


def test_a_budget_starts_few_before_it_knows_what_one_costs() -> None:
    budget = CostBudget(1.0, Spent(0.1))

    assert [budget.may_start() for _ in range(6)] == [True] * 4 + [False] * 2
    assert not budget.is_exhausted


def test_a_budget_counts_what_is_in_flight_and_admits_again_when_it_ended_cheaply() -> None:
    run = Spent(0.1)
    budget = CostBudget(1.0, run)
    assert budget.may_start()
    run.waiting = 1

    admitted = [budget.may_start() for _ in range(20)]

    assert admitted.count(True) == 9
    run.waiting = 9
    assert not budget.may_start()
    assert budget.is_exhausted


def test_the_latest_run_can_be_the_baseline() -> None:
    baseline = play(env_of(every=1), max_concurrent=1)

    worse = play(env_of(every=3), until_decided="latest", max_concurrent=1)

    assert worse.early_stop is not None
    assert (worse.early_stop.baseline, worse.early_stop.verdict) == (baseline.run.id, "worse")
    assert read_metadata(worse.folder)["config"]["until_decided"] == baseline.run.id


def test_a_baseline_that_is_refused_leaves_no_run_behind() -> None:
    baseline = play(env_of(tasks=20))

    with pytest.raises(ConfigError, match="scored none of these"):
        play(
            SingleTurnEnv([{"question": "other", "example_id": 777}], rubric=Rubric(lambda: 1.0)),
            until_decided="latest",
        )
    with pytest.raises(ConfigError, match="No run 'nope'"):
        play(env_of(tasks=20), until_decided="nope")

    assert run_folders(search_folders()) == [baseline.folder]
