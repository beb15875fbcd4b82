"""Scoring a run again from its record: what moves, what is asked, and what cannot be done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import (
    EnvGroup,
    Environment,
    JudgeRubric,
    MultiTurnEnv,
    Rubric,
    Scripted,
    SingleTurnEnv,
    Step,
    ToolEnv,
    evaluate,
    rescore,
)
from proctor.contracts import EnvironmentProtocol
from proctor.endpoints.endpoint import SharedEndpoint
from proctor.env.state import State
from proctor.errors import ConfigError
from proctor.evaluation.evaluate import run
from proctor.evaluation.execute import Result
from proctor.evaluation.prepare_objects import prepare_instance
from proctor.evaluation.rescore import Rescored
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


def score_again(folder: Path, environment: EnvironmentProtocol | None = None, **settings: Any) -> Rescored:
    return asyncio.run(rescore(folder, environment, **settings))


def play(environment: EnvironmentProtocol, script: Any = (), **settings: Any) -> Result:
    return asyncio.run(evaluate(environment, Scripted(script), **settings))


def rows_of(result: Result) -> dict[tuple[Any, int], dict[str, Any]]:
    lines = (result.folder / "results.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return {(row["example_id"], row["rollout"]): row for row in rows}


def test_a_changed_rubric_moves_rewards_without_asking_the_model() -> None:
    first = play(SingleTurnEnv(ROWS, rubric=Rubric(exact)), {"say 1": "say one"}, rollouts_per_example=2)

    again = score_again(first.folder, SingleTurnEnv(ROWS, rubric=Rubric(lenient)))

    assert first.summary.reward.mean == pytest.approx(2 / 3)
    assert again.result.summary.reward.mean == 1.0
    (move,) = again.moves.tasks
    assert (move.task, move.before, move.after, move.moved) == (1, 0.0, 1.0, 2)
    assert (again.moves.rollouts, again.moves.up, again.moves.down) == (6, 2, 0)
    assert again.result.folder != first.folder
    assert read_metadata(again.result.folder)["origin"] == {
        "kind": "rescore",
        "run_id": first.run.id,
        "folder": str(first.folder.resolve()),
    }


def test_what_was_said_and_done_is_taken_over_as_it_was() -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(exact))
    first = play(env, [Step(text="say 0", finish_reason="length", reasoning="hm")])

    again = score_again(first.folder, env)

    before, after = rows_of(first), rows_of(again.result)
    same = ("prompt", "completion", "stop_condition", "is_truncated", "token_usage", "reward", "outcome")
    for key, row in before.items():
        assert {name: row[name] for name in same} == {name: after[key][name] for name in same}
        (call,), (call_again,) = row["model_calls"], after[key]["model_calls"]
        assert call_again == {**call, "reused": True}
    assert again.moves.moved == 0


def test_scoring_again_costs_nothing_and_says_what_that_saved() -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(exact))
    first = asyncio.run(evaluate(env, Scripted(name="gpt-4.1")))

    again = score_again(first.folder, env).result.summary

    assert first.summary.cost_usd
    assert again.cost_usd == pytest.approx(0.0, abs=1e-12)
    assert again.saved_usd == pytest.approx(first.summary.cost_usd)
    assert again.reused_replies["gpt-4.1"].calls == 3
    assert again.usage == first.summary.usage


def test_a_judge_is_asked_again_only_where_its_question_changed() -> None:
    def judging(judge: Scripted, rows: Sequence[Mapping[str, Any]]) -> SingleTurnEnv:
        return SingleTurnEnv(rows, rubric=JudgeRubric(judge=judge))

    first = play(judging(Scripted(["yes"], name="judge"), ROWS))
    silent, asked = Scripted(["no"], name="judge"), Scripted(["no"], name="judge")
    corrected = [*ROWS[:2], {**ROWS[2], "answer": "say three"}]

    unchanged = score_again(first.folder, judging(silent, ROWS))
    changed = score_again(first.folder, judging(asked, corrected))

    assert silent.requests == []
    assert unchanged.moves.moved == 0
    assert unchanged.result.summary.reused_replies["judge"].calls == 3
    assert len(asked.requests) == 1
    assert [(move.task, move.after) for move in changed.moves.tasks] == [(2, 0.0)]


def test_a_judge_with_another_model_or_sampling_is_asked_again() -> None:
    first = play(SingleTurnEnv(ROWS, rubric=JudgeRubric(judge=Scripted(["yes"], name="old"))))
    other, warmer = Scripted(["no"], name="new"), Scripted(["no"], name="old")

    score_again(first.folder, SingleTurnEnv(ROWS, rubric=JudgeRubric(judge=other)))
    hot = JudgeRubric(judge=warmer, judge_sampling_args={"temperature": 1})
    score_again(first.folder, SingleTurnEnv(ROWS, rubric=hot))

    assert (len(other.requests), len(warmer.requests)) == (3, 3)


def test_rollouts_that_failed_before_they_could_be_scored_are_kept_as_they_are() -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(exact))
    first = play(env, {"say 1": Step(error="refused", text="no")})

    again = score_again(first.folder, env)

    row = rows_of(again.result)[1, 0]
    assert (row["outcome"], row["error"]["message"], row["reused_from"]) == (
        "model_error",
        "no",
        first.run.id,
    )
    assert again.result.summary.coverage == pytest.approx(2 / 3)
    assert again.moves.rollouts == 2


def test_a_grader_that_failed_is_given_another_chance() -> None:
    def broken(completion: list[Message]) -> float:
        raise ValueError("oops")

    first = play(SingleTurnEnv(ROWS, rubric=Rubric(broken)))

    again = score_again(first.folder, SingleTurnEnv(ROWS, rubric=Rubric(exact)))

    assert first.summary.scored == 0
    assert again.result.summary.reward.mean == 1.0
    assert again.moves.newly_scored == 3


def test_groups_are_scored_again_as_groups() -> None:
    def best(completions: list[Any], answer: str) -> list[float]:
        texts = [text_of(each[-1]) for each in completions]
        return [float(len(text) == max(map(len, texts))) for text in texts]

    script = {"say 0": ["a", "bb"], "say 1": ["dd", "c"], "say 2": ["e", Step(error="refused")]}
    first = play(SingleTurnEnv(ROWS, rubric=Rubric(best)), script, rollouts_per_example=2, max_concurrent=1)

    def worst(completions: list[Any]) -> list[float]:
        texts = [text_of(each[-1]) for each in completions]
        return [float(len(text) == min(map(len, texts))) for text in texts]

    again = score_again(first.folder, SingleTurnEnv(ROWS, rubric=Rubric(worst)))

    assert again.moves.moved == 4
    rewards = {key: row["reward"] for key, row in rows_of(again.result).items()}
    assert sorted(rewards) == sorted(rows_of(first))
    assert rewards[2, 0] == 1.0  # alone in its group, as it was
    assert rewards[2, 1] is None


def test_several_turns_and_tools_are_scored_from_the_conversation() -> None:
    def look_up(word: str) -> str:
        "Look a word up."
        return word.upper()

    def calls(total_tool_calls: Any = None, **state: Any) -> float:
        return float(sum(message["role"] == "tool" for message in state["completion"]))

    steps = [Step(tool_calls=[{"name": "look_up", "arguments": {"word": "a"}}]), "A"]
    first = play(ToolEnv(ROWS[:1], tools=[look_up], rubric=Rubric(exact)), steps)

    again = score_again(first.folder, ToolEnv(ROWS[:1], tools=[look_up], rubric=Rubric(calls)))

    metrics = rows_of(again.result)[0, 0]["metrics"]
    assert metrics["calls"] == 1.0
    kept = ("num_turns", "total_tool_calls", "tool_errors")
    assert {name: metrics[name] for name in kept} == {
        name: rows_of(first)[0, 0]["metrics"][name] for name in kept
    }


class Counting(MultiTurnEnv):
    """Keeps state of its own."""

    async def setup_state(self, state: State) -> None:
        state["secret"] = 7

    async def env_response(self, messages: list[Message], state: State) -> str:
        return "go on"


def guessed(state: State) -> float:
    return float(state.get("secret", 0))


def test_state_that_was_saved_is_there_again() -> None:
    env = Counting(ROWS[:1], rubric=Rubric(guessed), max_turns=2)
    first = play(env, state_columns=("secret",))

    assert score_again(first.folder, env).result.summary.reward.mean == 7.0


def test_state_that_was_not_saved_is_an_error_that_names_it_and_never_a_default() -> None:
    env = Counting(ROWS[:1], rubric=Rubric(guessed), max_turns=2)
    first = play(env)

    again = score_again(first.folder, env)

    row = rows_of(again.result)[0, 0]
    assert (row["outcome"], row["reward"]) == ("grader_error", None)
    assert "'secret'" in row["error"]["message"]
    assert "-C secret" in row["error"]["message"]


def asking(grade: Callable[[str], float], question: str = "Say {}") -> Environment:
    env = Environment("asking")

    @env.template()
    async def repeat(word: str) -> Any:
        answer = yield question.format(word)
        yield grade(answer) * (word in answer)

    repeat(word="a")
    repeat(word="b")
    return env


def test_a_template_runs_again_with_the_recorded_answers() -> None:
    first = play(asking(lambda answer: 1.0), {"Say a": "a", "Say b": "x"})

    again = score_again(first.folder, asking(lambda answer: 0.5))

    assert (first.summary.reward.mean, again.result.summary.reward.mean) == (0.5, 0.25)


def test_a_template_of_several_turns_gets_its_answers_in_order() -> None:
    def talking(good: str) -> Environment:
        env = Environment("talking")

        @env.template()
        async def talk() -> Any:
            first = yield "one"
            second = yield "two"
            yield float(f"{first} {second}" == good)

        talk()
        return env

    first = play(talking("one two"))

    assert first.summary.reward.mean == 1.0
    assert score_again(first.folder, talking("two one")).result.summary.reward.mean == 0.0
    assert score_again(first.folder, talking("one two")).moves.moved == 0


def test_the_answer_of_an_agent_counts_and_not_its_last_message() -> None:
    async def shouting(desk: Any) -> str:
        reply = await desk.ask()
        return f"{reply.text.upper()}!"

    env = asking(lambda answer: float(answer.endswith("!")))
    first = asyncio.run(evaluate(env, Scripted({"Say a": "a"}), agent=shouting))
    after = score_again(first.folder, env)

    assert after.moves.moved == 0
    assert rows_of(after.result)["repeat-" + first.rollouts[0].task.slug.partition("-")[2], 0]["answers"]


def test_a_prompt_that_changed_is_not_scored_with_answers_to_another_question() -> None:
    first = play(asking(lambda answer: 1.0))

    again = score_again(first.folder, asking(lambda answer: 1.0, "Please say {}"))

    assert again.result.summary.scored == 0
    (error,) = again.result.summary.errors
    assert "played again" in error.sample


def test_members_of_a_group_are_scored_by_their_own_rubrics() -> None:
    def group(rubric: Rubric) -> EnvGroup:
        one = SingleTurnEnv(ROWS[:1], rubric=Rubric(exact), name="one")
        return EnvGroup([one, SingleTurnEnv(ROWS[1:], rubric=rubric, name="two")])

    first = play(group(Rubric(exact)), {"say 0": "no", "say": "say what"})

    again = score_again(first.folder, group(Rubric(lenient)))

    assert {name: member.reward.mean for name, member in again.result.summary.members.items()} == {
        "one": 0.0,
        "two": 1.0,
    }


def test_a_workspace_cannot_be_scored_from_a_record_and_one_sentence_says_why() -> None:
    env = Environment("files")
    env.workspace()
    first = play(asking(lambda answer: 1.0))

    with pytest.raises(ConfigError, match=r"workspace, and that folder is gone.*eval rerun"):
        score_again(first.folder, env)


def test_a_scored_run_cannot_be_resumed_as_if_it_had_been_played() -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(exact))
    again = score_again(play(env).folder, env)

    prepared = prepare_instance(env, {"num_examples": 3, "rollouts_per_example": 1}, Scripted())
    with pytest.raises(ConfigError, match="nothing to play"):
        asyncio.run(run(prepared, resume=str(again.result.folder), service=SharedEndpoint(Scripted())))


ENVIRONMENT = """
from proctor import Rubric, SingleTurnEnv

def right(completion, answer):
    return float(completion[-1]["content"] == answer)

def load_environment(tasks=3):
    rows = [{"question": f"say {n}", "answer": f"say {n}"} for n in range(tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(right))
"""


def test_the_command_scores_with_the_code_as_it_is_now_and_shows_what_moved(
    proctor: Callable[..., Ran], home: Path
) -> None:
    (home / "env.py").write_text(ENVIRONMENT)
    proctor("eval", "run", "./env.py", "-m", "scripted", "-n", "3", "-r", "2", "-s")
    changed = ENVIRONMENT.replace("== answer", '== "say 1"')
    (home / "env.py").write_text(f"print('not part of the JSON'){changed}")

    shown = proctor("eval", "rescore", "latest")
    told = json.loads(proctor("eval", "rescore", "latest", "--json").stdout)

    assert shown.code == 0, shown.stderr
    assert "4 of 6 rollouts in 2 tasks: 4 down" in shown.stdout
    assert "reward 1.000 → 0.333" in shown.stdout
    assert told["moved"]["moved"] == 0  # the latest is the one just scored
    assert told["origin"]["kind"] == "rescore"
