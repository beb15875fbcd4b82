"""An estimate before a run: from what was played, else from the prompts, else an honest nothing."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, create_engine, insert

from proctor.comparison.design import DesignGoal, RolloutCost, design_evaluation
from proctor.comparison.scores import RunScores, TaskScores
from proctor.config.prices import Price
from proctor.reading.entries import EntryRecord, StoredEntry
from proctor.server.db.tables import environments, metadata, rollout_entries, rollouts, runs, versions
from proctor.server.ledger.estimate import build_estimate
from proctor.server.ledger.past_rollouts import PlannedRun
from proctor.server.people.tokens import Caller
from proctor.stats.prediction import PredictedTotal
from tests.server.ledger.rows import add_run, set_up
from tests.server.serving import Served

PRICE = Price(1.0, 5.0)


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.begin() as connection:
        set_up(connection)
        add_environment(connection)
        yield connection
    engine.dispose()


def add_environment(connection: Connection, /, **changes: Any) -> None:
    texts = ["content_hash", "wheel_name", "wheel_sha256", "source_sha256", "requires_python"]
    row: dict[str, Any] = dict.fromkeys([*texts, "metadata_text", "check_message", "check_log"], "")
    row |= {"id": "ver-1", "environment_id": "env-1", "version": "0.1.0", "number": 1, "pushed_by": "ada"}
    row |= {"wheel_size": 1, "source_size": 1, "created_at": 1.0, "check_status": "passed"}
    row |= {"check_tasks": 10, "check_facts": {}, "dependencies": [], "secrets": [], "files": []} | changes
    connection.execute(
        insert(environments).values(
            id="env-1",
            owner="ada",
            name="sums",
            visibility="public",
            description="",
            tags=[],
            created_at=1.0,
            updated_at=1.0,
        )
    )
    connection.execute(insert(versions).values(row))


def change_version(connection: Connection, **changes: Any) -> None:
    connection.execute(versions.update().values(**changes))


def play(connection: Connection, run_id: str, model: str, tokens: list[tuple[int, int]]) -> None:
    add_run(connection, run_id, environment_id="env-1", model=model)
    for place, (read, written) in enumerate(tokens):
        row = {"run_id": run_id, "task": str(place), "number": 0, "place": place, "settled": True}
        used = {"input_tokens": read, "output_tokens": written}
        connection.execute(
            insert(rollouts).values(**row, **used, outcome="scored", reward=1.0, seconds=1.0, row=b"")
        )


def reader(user: str, *, is_admin: bool = False, **teams: str) -> Caller:
    return Caller(user=user, is_admin=is_admin, teams=teams, scopes=frozenset(), token_id="t")


def planned(by: Caller | None = None, /, **settings: Any) -> PlannedRun:
    return PlannedRun(
        environment_id="env-1",
        version_id="ver-1",
        model="m",
        price=PRICE,
        settings=settings,
        payer="ada",
        reader=by or reader("ada"),
    )


def test_earlier_rollouts_of_the_same_model_say_what_the_next_will_cost(connection: Connection) -> None:
    play(connection, "run-1", "m", [(1000, 200), (1200, 220), (800, 180)])
    play(connection, "run-2", "other", [(90_000, 90_000)])

    told = build_estimate(connection, planned(num_examples=5, rollouts_per_example=2))

    assert told.rollouts == 10
    assert told.likely_usd == pytest.approx(10 * 2000e-6)
    figures = [told.low_usd, told.likely_usd, told.high_usd]
    assert figures == sorted(set(figures), key=lambda figure: figure or 0.0)
    assert "3 earlier rollouts" in told.basis
    assert told.available_usd == pytest.approx(0.001)


def test_another_model_on_the_same_environment_is_better_than_nothing(connection: Connection) -> None:
    play(connection, "run-1", "other", [(1000, 200)])

    told = build_estimate(connection, planned(num_examples=1, rollouts_per_example=1))

    assert told.likely_usd == pytest.approx(2000e-6)
    assert (told.low_usd, told.high_usd) == (None, None)
    assert "1 earlier rollout of this environment by any model" in told.basis


def test_an_estimate_tells_a_stranger_nothing_of_others_runs(connection: Connection) -> None:
    play(connection, "run-1", "m", [(1000, 200), (1200, 220)])
    connection.execute(runs.update().values(team="lab", visibility="team"))

    for by in (reader("ada", lab="member"), reader("bob", lab="member"), reader("root", is_admin=True)):
        assert "2 earlier rollouts" in build_estimate(connection, planned(by)).basis
    for by in (reader("eve"), reader("eve", other="admin"), reader("nobody")):
        told = build_estimate(connection, planned(by))
        assert (told.low_usd, told.likely_usd, told.high_usd) == (None, None, None)
        assert "earlier rollouts" not in told.basis


def test_without_history_the_prompts_give_a_range(connection: Connection) -> None:
    change_version(connection, check_facts={"mean_prompt_characters": 400})

    told = build_estimate(connection, planned(num_examples=-1, rollouts_per_example=1, max_tokens=100))

    assert told.rollouts == 10
    assert told.low_usd == pytest.approx(10 * (100 + 16 * 5) / 1e6)
    assert told.high_usd == pytest.approx(10 * (100 + 100 * 5) / 1e6)


def test_where_nothing_is_known_nothing_is_claimed(connection: Connection) -> None:
    assert build_estimate(connection, planned()).likely_usd is None
    change_version(connection, check_tasks=None)
    told = build_estimate(connection, planned(num_examples=-1))
    assert (told.rollouts, told.likely_usd) == (None, None)
    assert "number of tasks" in told.basis


def test_more_tasks_are_not_played_than_there_are(connection: Connection) -> None:
    assert build_estimate(connection, planned(num_examples=50, rollouts_per_example=3)).rollouts == 30


def test_calls_tokens_and_minutes_come_from_earlier_rollouts(connection: Connection) -> None:
    play(connection, "run-1", "m", [(1000, 200), (1200, 220), (800, 180)])
    record = EntryRecord(task="0", number=0, outcome="scored", reward=1.0, turns=4)
    entry = msgspec.msgpack.encode(StoredEntry(record))
    connection.execute(
        insert(rollout_entries), [{"run_id": "run-1", "place": place, "entry": entry} for place in range(3)]
    )

    told = build_estimate(connection, planned(num_examples=5, rollouts_per_example=2, max_concurrent=2))

    assert (told.tasks, told.rollouts_per_task, told.rollouts) == (5, 2, 10)
    assert told.calls is not None
    assert told.calls.likely == 40
    assert told.input_tokens is not None
    assert told.output_tokens is not None
    assert (told.input_tokens.likely, told.output_tokens.likely) == pytest.approx((10_000, 2_000))
    assert told.minutes is not None
    assert told.minutes.likely == pytest.approx(10 / 2 / 60)
    assert told.available_usd is not None
    assert told.after_usd == pytest.approx(told.available_usd - 10 * 2000e-6)
    assert "3 earlier rollouts of this environment by m" in told.volume_basis


def test_without_history_calls_and_tokens_are_at_least_what_one_reply_takes(connection: Connection) -> None:
    change_version(connection, check_facts={"mean_prompt_characters": 400})

    told = build_estimate(connection, planned(num_examples=10, rollouts_per_example=1))

    assert told.calls == PredictedTotal(10, 10, None)
    assert told.input_tokens == PredictedTotal(1000, 1000, None)
    assert told.minutes is None
    assert "unknown" in told.volume_basis


def test_the_interval_is_as_wide_as_a_plan_from_the_same_rewards_says(connection: Connection) -> None:
    groups = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    play(connection, "run-1", "m", [(10, 10)] * 12)
    for place, reward in enumerate(each for group in groups for each in group):
        which = (rollouts.c.run_id == "run-1") & (rollouts.c.place == place)
        named = {"task": str(place // 2), "number": place % 2, "reward": reward}
        connection.execute(rollouts.update().where(which).values(**named))
    change_version(connection, check_tasks=400)
    runs_of = [
        RunScores(run="run-1", tasks=[TaskScores(id=n, rewards=tuple(g)) for n, g in enumerate(groups)])
    ]
    goal = DesignGoal(kind="rollouts", amount=1600, rollouts=(4,))
    (row,) = design_evaluation(runs_of, [], RolloutCost(), goal).rows

    told = build_estimate(connection, planned(num_examples=400, rollouts_per_example=4))

    assert (told.tasks, row.tasks) == (400, 400)
    assert told.halfwidth == pytest.approx(row.halfwidth)
    assert not told.halfwidth_is_bound
    assert "6 tasks that m played before" in told.halfwidth_basis


def test_where_no_reward_is_known_the_worst_case_is_said_to_be_one(connection: Connection) -> None:
    told = build_estimate(connection, planned(num_examples=10, rollouts_per_example=3))
    narrow = build_estimate(connection, planned(reader("ada"), num_examples=1))

    assert told.halfwidth == pytest.approx(2.262 * 0.5 / sqrt(10), rel=1e-3)
    assert told.halfwidth_is_bound
    assert "worst case" in told.halfwidth_basis
    assert (narrow.halfwidth, narrow.halfwidth_basis) == (
        None,
        "One task gives no interval; play two or more.",
    )


def test_truncated_rollouts_tell_how_wide_the_interval_will_be_as_they_are_in_the_mean(
    connection: Connection,
) -> None:
    play(connection, "run-1", "m", [(10, 10)] * 8)
    halves = (rollouts.c.run_id == "run-1") & (rollouts.c.place % 2 == 0)
    connection.execute(rollouts.update().where(halves).values(outcome="truncated", reward=0.0))

    told = build_estimate(connection, planned(num_examples=10, rollouts_per_example=1))

    assert told.halfwidth_basis == "From the rewards of 8 tasks that m played before."


def test_an_interval_of_rewards_from_0_to_1_is_never_wider_than_they_are(connection: Connection) -> None:
    told = build_estimate(connection, planned(num_examples=2, rollouts_per_example=1))

    assert told.halfwidth == 0.5


def test_rewards_that_never_differed_do_not_promise_certainty(connection: Connection) -> None:
    play(connection, "run-1", "m", [(10, 10)] * 8)

    told = build_estimate(connection, planned(num_examples=10, rollouts_per_example=1))

    assert told.halfwidth is not None
    assert 0.1 < told.halfwidth < 0.2
    assert "had the same reward" in told.halfwidth_basis


def test_named_tasks_are_counted_instead_of_the_first(connection: Connection) -> None:
    assert build_estimate(connection, planned(task_ids=["a", "b"], rollouts_per_example=4)).rollouts == 8


def test_an_estimate_is_given_to_who_may_read_the_environment(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    ada, eve = served.user("ada"), served.user("eve")
    served.platform.database.write_now(add_environment, check_facts={"mean_prompt_characters": 400})
    asked = {"environment": "ada/sums", "model": "gpt-4.1-mini", "settings": {"num_examples": -1}}

    assert ada.post("/runs/estimate", asked)["likely_usd"] > 0
    assert eve.post("/runs/estimate", asked)["rollouts"] == ada.post("/runs/estimate", asked)["rollouts"]
    hide = environments.update().values(visibility="private")
    served.platform.database.write_now(lambda connection: connection.execute(hide))
    assert eve("POST", "/runs/estimate", asked).status == 404
    assert ada("POST", "/runs/estimate", {**asked, "environment": "ada/sums@9"}).status == 404
