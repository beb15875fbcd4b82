"""What an author whose rubric asks a model would notice."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.engine.seat import RunContext
from proctor.env.judge import JudgeRubric
from proctor.env.multi_turn import SingleTurnEnv
from proctor.env.parsers import Parser, ThinkParser, extract_boxed
from proctor.env.rubric import Rubric, RubricGroup
from proctor.errors import ConfigError, ModelTimeoutError, RequestRefusedError
from proctor.models.scripted import Script, Scripted
from proctor.rollout import Rollout
from proctor.trace import Usage
from tests.env.playing import played, reward

CAPITALS = [
    {"question": "Capital of France?", "answer": "Paris"},
    {"question": "Capital of Italy?", "answer": "Rome"},
]


def judged(
    rubric: Rubric,
    subject: Script = ("Paris",),
    rows: Sequence[Mapping[str, Any]] = CAPITALS[:1],
    rules: Mapping[str, Any] | None = None,
    **settings: Any,
) -> list[Rollout]:
    env = SingleTurnEnv(rows, rubric=rubric, **settings)
    return played(env, RunContext(Scripted(subject, name="subject")), **(rules or {}))


def asked(judge: Scripted) -> str:
    """What the judge was last asked."""
    text = judge.requests[-1].messages[-1]["content"]
    assert isinstance(text, str)
    return text


def test_a_yes_is_worth_one_and_a_no_nothing() -> None:
    judge = Scripted({"Capital of France": "It is.\nyes", "Capital of Italy": "It is Rome.\nno"})

    france, italy = judged(JudgeRubric(judge=judge), rows=CAPITALS)

    assert reward(france) == 1.0
    assert reward(italy) == 0.0
    assert france.score is not None
    assert france.score.metrics == {"judged": 1.0}


@pytest.mark.parametrize("text", ["yes", "Yes.", "**YES**", "No doubt:\n\n`yes`\n", "<think>no\n</think>yes"])
def test_a_verdict_may_be_decorated(text: str) -> None:
    (rollout,) = judged(JudgeRubric(judge=Scripted([text])))

    assert reward(rollout) == 1.0


@pytest.mark.parametrize(
    "text", ["maybe", "", "yes and no", "yes\nI am sure", "<think>yes\n</think>", "not yes"]
)
def test_a_verdict_that_is_neither_is_no_zero_but_a_grader_error(text: str) -> None:
    (rollout,) = judged(JudgeRubric(judge=Scripted([text])))

    assert rollout.outcome == "grader_error"
    assert rollout.score is None
    assert rollout.failure is not None
    assert "yes or no" in rollout.failure.message


def test_the_judges_call_is_recorded_with_its_usage() -> None:
    (rollout,) = judged(JudgeRubric(judge=Scripted(["quite so\nyes"], name="strict-judge")))

    agent_call, judge_call = rollout.trace.calls
    assert (agent_call.role, agent_call.model) == ("agent", "subject")
    assert (judge_call.role, judge_call.model) == ("judge", "strict-judge")
    assert rollout.trace.usage("judge").output_tokens == 3
    assert rollout.trace.usage("judge").input_tokens > 50
    assert rollout.trace.usage() == Usage(input_tokens=3, output_tokens=1)


def test_the_judge_sees_the_question_the_right_answer_and_the_response() -> None:
    judge = Scripted(["yes"])
    shown = [{"role": "user", "content": "Capital of Spain?"}, {"role": "assistant", "content": "Madrid"}]

    judged(
        JudgeRubric(judge=judge, judge_prompt="Q={question} A={answer} R={response}"),
        subject=["Lutetia"],
        system_prompt="Be brief.",
        few_shot=shown,
    )

    assert asked(judge) == "Q=Capital of France? A=Paris R=Lutetia"


def test_the_question_may_have_parts_and_the_right_answer_may_be_a_number() -> None:
    judge = Scripted(["yes"])
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    question = {"role": "user", "content": [{"type": "text", "text": "How many?"}, picture]}

    judged(
        JudgeRubric(judge=judge, judge_prompt="{question} {answer} {response}"),
        subject=["three"],
        rows=[{"prompt": [question], "answer": 3}],
    )

    assert asked(judge) == "How many? 3 three"


def test_the_response_is_what_the_parser_reads() -> None:
    judge = Scripted(["yes"])

    judged(
        JudgeRubric(judge=judge, judge_prompt="[{response}]"),
        subject=[r"Surely \boxed{Paris}."],
        parser=Parser(extract_boxed),
    )

    assert asked(judge) == "[Paris]"


def test_the_response_is_the_whole_text_if_the_parser_reads_nothing() -> None:
    judge = Scripted(["yes"])

    judged(JudgeRubric(judge=judge, judge_prompt="[{response}]", parser=ThinkParser()), subject=["Paris"])

    assert asked(judge) == "[Paris]"


def test_braces_in_what_is_judged_are_left_alone() -> None:
    judge = Scripted(["yes"])

    judged(
        JudgeRubric(judge=judge, judge_prompt="{question}|{answer}|{response}"),
        subject=["{answer} {0} }{"],
        rows=[{"question": r"\frac{1}{2} and {response}", "answer": "{question} {{x}}"}],
    )

    assert asked(judge) == r"\frac{1}{2} and {response}|{question} {{x}}|{answer} {0} }{"


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ('{response} as {"verdict": "yes"}', 'Paris as {"verdict": "yes"}'),
        ('{response} as {{"verdict": "yes"}}', 'Paris as {"verdict": "yes"}'),
        ('{"a": {"response": "{response}"}}', '{"a": {"response": "Paris"}}'),
        (r"{} \d{3} {{x}} { {response}", r"{} \d{3} {x} { Paris"),
        (r"\boxed{{{response}}}", r"\boxed{Paris}"),
    ],
)
def test_a_prompt_may_show_json_with_doubled_or_bare_braces(template: str, shown: str) -> None:
    judge = Scripted(["yes"])

    judged(JudgeRubric(judge=judge, judge_prompt=template))

    assert asked(judge) == shown


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("{response} {gold}", r"asks for \{gold\}; it may ask for \{question\}"),
        ("{response} {question!r}", r"asks for \{question!r\}"),
        ("{response:>10}", r"asks for \{response:>10\}"),
        ("Is it right?", r"no \{response\}"),
        ("{{response}}", r"no \{response\}"),
        ('{"a": 1} {{response}}', "double all or none"),
    ],
)
def test_a_prompt_that_cannot_be_filled_is_refused_at_once(template: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        JudgeRubric(judge_prompt=template)


def test_functions_share_one_answer_of_the_judge() -> None:
    judge = Scripted(["7", "another"])

    async def grade(judge: Any, prompt: Any, completion: Any, answer: str, state: Any) -> float:
        return float(await judge(prompt, completion, answer, state))

    async def tenth(judge: Any, prompt: Any, completion: Any, answer: str, state: Any) -> float:
        return float(await judge(prompt, completion, answer, state)) / 10

    rubric = JudgeRubric(grade, tenth, weights=[0, 1], judge=judge, judge_prompt="Rate {response}")

    (rollout,) = judged(rubric, rules={"columns": ("judge_response",)})

    assert reward(rollout) == 0.7
    assert len(judge.requests) == 1
    assert rollout.columns == {"judge_response": {"Rate Paris": "7"}}


def test_two_judges_who_are_asked_the_same_both_answer() -> None:
    kind, strict = JudgeRubric(judge=Scripted(["yes"])), JudgeRubric(judge=Scripted(["no"]))

    (rollout,) = judged(RubricGroup([kind, strict]))

    assert rollout.score is not None
    assert rollout.score.metrics == {"judged": 1.0, "judged_2": 0.0}


def test_a_judge_that_fails_is_a_grader_error_and_leaves_siblings_alone() -> None:
    judge = Scripted({"Capital of France": RequestRefusedError("no opinion"), "Capital of Italy": "yes"})

    france, italy = judged(JudgeRubric(judge=judge), rows=CAPITALS)

    assert france.outcome == "grader_error"
    assert france.failure is not None
    assert (france.failure.kind, france.failure.message) == ("RequestRefusedError", "no opinion")
    assert france.trace.calls[-1].failure is not None
    assert reward(italy) == 1.0


def test_a_judge_that_recovers_is_asked_again_without_playing_again() -> None:
    judge = Scripted([ModelTimeoutError("busy"), "yes"])

    (rollout,) = judged(JudgeRubric(judge=judge), rules={"max_retries": 1, "first_wait_seconds": 0.01})

    assert reward(rollout) == 1.0
    assert [call.role for call in rollout.trace.calls] == ["agent", "judge", "judge"]
    assert [attempt.outcome for attempt in rollout.earlier] == ["grader_error"]


def test_without_a_judge_the_evaluated_model_judges_itself() -> None:
    (rollout,) = judged(JudgeRubric(), subject={"<response>": "yes", "Capital": "Paris"})

    assert reward(rollout) == 1.0
    assert [(call.role, call.model) for call in rollout.trace.calls] == [
        ("agent", "subject"),
        ("judge", "subject"),
    ]


def test_the_judge_is_asked_at_temperature_zero_unless_told_otherwise() -> None:
    cold, warm = Scripted(["yes"]), Scripted(["yes"])

    judged(JudgeRubric(judge=cold))
    judged(JudgeRubric(judge=warm, judge_sampling_args={"seed": 1}))

    assert cold.requests[0].sampling == {"temperature": 0}
    assert warm.requests[0].sampling == {"seed": 1}


def test_a_named_judge_is_opened_when_asked_and_closed_with_the_rubric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    async def close(self: Scripted) -> None:
        closed.append(self.name)

    monkeypatch.setattr(Scripted, "close", close)
    script = tmp_path / "judge.jsonl"
    rubric = JudgeRubric(judge="scripted", judge_base_url=str(script))
    script.write_text(json.dumps("yes"))

    (rollout,) = judged(rubric)
    asyncio.run(rubric.close())
    asyncio.run(rubric.close())

    assert reward(rollout) == 1.0
    assert closed == ["scripted"]
    assert reward(judged(rubric)[0]) == 1.0


class ClosingModel(Scripted):
    """Remembers that it was closed."""

    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


def test_a_judge_that_was_given_stays_open() -> None:
    judge = ClosingModel(["yes"])
    rubric = JudgeRubric(judge=judge)

    judged(rubric)
    asyncio.run(rubric.close())

    assert not judge.is_closed


def test_a_named_judge_without_a_key_says_which_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PRIME_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        judged(JudgeRubric(judge="gpt-4.1-mini"))


def test_an_address_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="judge="):
        JudgeRubric(judge_base_url="http://localhost:8000/v1")


def test_a_reward_function_takes_the_place_of_the_default_and_a_metric_does_not() -> None:
    def short(completion: Any) -> float:
        return 0.25

    measured, replaced = JudgeRubric(judge=Scripted(["yes"])), JudgeRubric(judge=Scripted(["yes"]))
    measured.add_metric(short)
    replaced.add_reward_func(short)

    assert reward(judged(measured)[0]) == 1.0
    assert reward(judged(replaced)[0]) == 0.25
