"""Taking from an earlier run what is still valid, and running a recorded evaluation again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import Environment, Rubric, Scripted, SingleTurnEnv, Step, evaluate
from proctor.contracts import EnvironmentProtocol
from proctor.errors import ConfigError
from proctor.evaluation.execute import Result
from proctor.evaluation.prepare_objects import prepare_instance
from proctor.evaluation.reuse import Decision, plan_reuse
from proctor.optional_contracts import get_fingerprint
from proctor.store.folder import read_metadata
from proctor.trace import Message, text_of

if TYPE_CHECKING:
    from tests.conftest import Ran

pytestmark = pytest.mark.usefixtures("home")

ROWS = [{"question": f"say {number}", "answer": f"say {number}"} for number in range(3)]


def exact(completion: list[Message], answer: str) -> float:
    return float(text_of(completion[-1]) == answer)


def lenient(completion: list[Message]) -> float:
    return float(text_of(completion[-1]).startswith("say"))


def env_of(*rows: dict[str, Any], rubric: Rubric | None = None, **settings: Any) -> SingleTurnEnv:
    return SingleTurnEnv(list(rows or ROWS), rubric=rubric or Rubric(exact), **settings)


def play(
    environment: EnvironmentProtocol, model: Scripted | None = None, **settings: Any
) -> tuple[Result, list[str]]:
    """The result, and what the model was asked."""
    model = model or Scripted()
    result = asyncio.run(evaluate(environment, model, **settings))
    return result, sorted(text_of(request.messages[-1]) for request in model.requests)


def decide(folder: Path, environment: EnvironmentProtocol, **settings: Any) -> list[Decision]:
    given = {"num_examples": -1, "rollouts_per_example": 1, **settings}
    return list(plan_reuse(prepare_instance(environment, given, Scripted()), folder).decisions)


def actions(folder: Path, environment: EnvironmentProtocol, **settings: Any) -> dict[Any, str]:
    return {each.task: each.action for each in decide(folder, environment, **settings)}


def test_nothing_is_played_again_when_nothing_has_changed() -> None:
    first, _ = play(env_of())

    second, asked = play(env_of(), reuse=first.folder)

    assert asked == []
    assert second.run.id != first.run.id
    assert second.summary.reward == first.summary.reward
    assert second.summary.reused_replies["scripted"].calls == 3
    assert read_metadata(second.folder)["origin"]["kind"] == "reuse"


def test_a_changed_rubric_is_scored_again_and_nothing_is_played() -> None:
    first, _ = play(env_of())

    second, asked = play(env_of(rubric=Rubric(lenient)), reuse=first.folder)

    assert actions(first.folder, env_of(rubric=Rubric(lenient))) == {0: "rescore", 1: "rescore", 2: "rescore"}
    assert asked == []
    assert list(second.summary.metrics) == ["lenient"]


def test_new_tasks_and_more_rollouts_are_played_and_the_others_kept() -> None:
    first, _ = play(env_of(*ROWS[:2]))

    second, asked = play(env_of(), reuse=first.folder, rollouts_per_example=2)

    assert asked == ["say 0", "say 1", "say 2", "say 2"]
    assert (second.summary.scored, second.summary.coverage) == (6, 1.0)


def test_rows_that_moved_are_found_by_their_content() -> None:
    first, _ = play(env_of())
    inserted = {"question": "say new", "answer": "say new"}

    second, asked = play(env_of(inserted, *ROWS), reuse=first.folder)

    assert asked == ["say new"]
    assert sorted(rollout["example_id"] for rollout in rows_in(second.folder)) == [0, 1, 2, 3]


def test_a_corrected_answer_is_scored_again_and_a_changed_question_played_again() -> None:
    first, _ = play(env_of())
    corrected, rewritten = {**ROWS[1], "answer": "no"}, {**ROWS[2], "question": "say please"}

    decided = decide(first.folder, env_of(ROWS[0], corrected, rewritten))

    assert [(each.action, each.reason) for each in decided] == [
        ("reuse", "nothing has changed"),
        ("rescore", "the task's answer or info has changed"),
        ("rerun", "the task has changed"),
    ]


def test_another_temperature_is_another_play_and_the_reason_says_so() -> None:
    first, _ = play(env_of())

    decided = decide(first.folder, env_of(), temperature=0.5)

    assert {each.action for each in decided} == {"rerun"}
    assert "temperature was not set and is now 0.5" in decided[0].reason


def test_failed_rollouts_are_played_again_and_ungraded_ones_scored_again() -> None:
    def picky(completion: list[Message]) -> float:
        if text_of(completion[-1]) == "say 1":
            raise ValueError("no")
        return 1.0

    first, _ = play(env_of(rubric=Rubric(picky)), Scripted({"say 2": Step(error="refused", text="no")}))

    assert actions(first.folder, env_of(rubric=Rubric(picky))) == {0: "reuse", 1: "rescore", 2: "rerun"}


def test_a_group_of_which_one_must_be_played_is_scored_whole() -> None:
    def best(completions: list[Any]) -> list[float]:
        return [float(len(completions))] * len(completions)

    env = env_of(ROWS[0], rubric=Rubric(best))
    first, _ = play(env, rollouts_per_example=2)

    second, asked = play(env, reuse=first.folder, rollouts_per_example=3)

    assert asked == ["say 0"]
    assert second.summary.reward.mean == 3.0
    assert [each.action for each in decide(first.folder, env, rollouts_per_example=3)] == [
        "rescore",
        "rescore",
        "rerun",
    ]


def test_a_copied_row_costs_nothing_and_names_the_run_it_is_from() -> None:
    first = asyncio.run(evaluate(env_of(), Scripted(name="gpt-4.1")))
    second = asyncio.run(evaluate(env_of(), Scripted(name="gpt-4.1"), reuse=first.folder))
    third = asyncio.run(evaluate(env_of(), Scripted(name="gpt-4.1"), reuse=second.folder))

    assert first.summary.cost_usd
    assert second.summary.cost_usd == pytest.approx(0.0, abs=1e-12)
    assert {row["reused_from"] for row in rows_in(third.folder)} == {first.run.id}


def test_a_template_that_asks_the_same_is_scored_again_after_its_code_changed() -> None:
    def asking(worth: float) -> Environment:
        env = Environment("asking")

        @env.template()
        async def repeat(word: str) -> Any:
            answer = yield f"Say {word}"
            yield worth * (word in answer)

        repeat(word="a")
        return env

    first, _ = play(asking(1.0))

    second, asked = play(asking(0.5), reuse=first.folder)

    assert asked == []
    assert second.summary.reward.mean == 0.5


def test_a_run_of_unknown_code_is_played_again_rather_than_trusted() -> None:
    class Opaque(SingleTurnEnv):
        def fingerprint(self) -> Any:
            raise NotImplementedError

    first, _ = play(Opaque(ROWS, rubric=Rubric(exact)))

    decided = decide(first.folder, Opaque(ROWS, rubric=Rubric(exact)))

    assert {(each.action, each.reason) for each in decided} == {
        ("rerun", "whether the environment's code has changed is not known")
    }


# Hashes


def test_a_fingerprint_follows_the_helpers_and_constants_that_a_reward_uses() -> None:
    def scoring(threshold: float) -> str:
        def is_good(text: str) -> bool:
            return len(text) > threshold

        def good(completion: list[Message]) -> float:
            return float(is_good(text_of(completion[-1])))

        found = get_fingerprint(env_of(rubric=Rubric(good)))
        assert found is not None
        return found.scoring

    assert scoring(1) == scoring(1)
    assert scoring(1) != scoring(2)


def test_weights_belong_to_scoring_and_turns_to_play() -> None:
    plain, heavy = env_of(), env_of(rubric=Rubric(exact, weights=[2.0]))
    longer = env_of()
    longer.max_turns = 2
    one, two, three = (each.fingerprint() for each in (plain, heavy, longer))

    assert (one.play == two.play, one.scoring == two.scoring) == (True, False)
    assert (one.play == three.play, one.scoring == three.scoring) == (False, True)


# The commands


ENVIRONMENT = """
from proctor import Rubric, SingleTurnEnv

def right(completion, answer):
    return float(completion[-1]["content"] == answer)

def load_environment(tasks=3):
    rows = [{"question": f"say {n}", "answer": f"say {n}"} for n in range(tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(right))
"""


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_rerun_uses_the_recorded_settings_and_changed_says_what_still_holds(
    proctor: Callable[..., Ran], home: Path
) -> None:
    (home / "env.py").write_text(ENVIRONMENT)
    words = ("-m", "scripted", "-n", "2", "-r", "2", "-t", "7", "-s", "--json")
    first = proctor("eval", "run", "./env.py", *words)
    again = proctor("eval", "rerun", first.folder.name, "-r", "3", "--json")
    (home / "env.py").write_text(ENVIRONMENT.replace("== answer", "!= answer"))
    changed = proctor("eval", "changed", first.folder.name)

    assert again.code == 0, again.stderr
    assert again.metadata["sampling_args"] == {"max_tokens": 7}
    assert (again.summary["tasks"], again.summary["scored"]) == (2, 6)
    assert "reuse 0, re-score 4, re-run 0 of 4 rollouts" in changed.stdout
    assert "the code that scores has changed" in changed.stdout


def test_reuse_and_resume_exclude_each_other(proctor: Callable[..., Ran]) -> None:
    ran = proctor("eval", "run", "echo", "-m", "scripted", "--reuse", "latest", "--resume")

    assert ran.code == 2
    assert "give one of them" in ran.stderr


def test_a_run_whose_environment_is_gone_asks_for_it_by_name(tmp_path: Path) -> None:
    from proctor.evaluation.recorded_settings import prepare_again, read_recorded_settings

    first, _ = play(env_of())

    with pytest.raises(ConfigError, match=r"--env|made in Python"):
        prepare_again(read_recorded_settings(first.folder), {}, {})
