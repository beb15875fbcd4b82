"""Every shape of a prompt, an answer and a grade that HUD's documentation shows."""

from hud import Environment
from hud.graders import (
    BashGrader,
    EvaluationResult,
    SubScore,
    combine,
    contains,
    contains_all,
    contains_any,
    exact_match,
    f1_score,
    normalize,
    numeric_match,
)
from pydantic import BaseModel

env = Environment("shapes")


class Point(BaseModel):
    x: int
    y: int


@env.template()
async def number(kind: str):
    yield f"A grade of kind {kind}."
    grades = {
        "int": 1,
        "float": 0.3,
        "bool": True,
        "more": 2.5,
        "less": -0.5,
        "dict": {"score": 0.4, "content": "fine", "info": {"a": 1}},
        "dict bool": {"score": True},
        "result": EvaluationResult(reward=0.6, done=True),
        "unfinished": EvaluationResult(reward=0.7, done=False),
        "failed": EvaluationResult(reward=0.9, isError=True, content="it broke"),
        "text": "1.0",
        "nothing": None,
        "nan": float("nan"),
    }
    yield grades[kind]


@env.template()
async def silent():
    yield "No second yield."


@env.template()
async def parts():
    answer = yield "Name a fruit and a color."
    yield await combine(
        SubScore(name="fruit", value=contains(answer, "pear"), weight=0.5),
        SubScore(name="color", value=contains_any(answer, ["green", "red"]), weight=0.3),
        SubScore(name="rude", value=contains(answer, "damn"), weight=-0.2),
        BashGrader.grade(weight=0.2, command="test 1 = 1"),
    )


@env.template()
async def text(question: str, expected: str):
    answer = yield question
    yield await combine(
        SubScore(name="exact", value=exact_match(answer, expected), weight=0.25),
        SubScore(name="f1", value=f1_score(answer, expected), weight=0.25),
        SubScore(name="all", value=contains_all(answer, expected.split()), weight=0.25),
        SubScore(name="normal", value=float(normalize(answer) == normalize(expected)), weight=0.25),
    )


@env.template()
async def sum_of(a: int, b: int = 2):
    answer = yield f"What is {a} + {b}?"
    yield numeric_match(answer, a + b)


@env.template(returns=Point)
async def point():
    answer = yield "A point as JSON."
    good = isinstance(answer.content, Point)
    yield 0.5 * good + (0.5 if good and answer.content.x == 3 else 0.0) + (0.1 if answer.raw == "" else 0.0)


@env.template()
async def dialogue():
    answer = yield [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Say the magic word."},
    ]
    yield float(answer == "please") + 0.25 * len(answer)


@env.template()
async def blocks():
    answer = yield [
        {"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]}
    ]
    yield float("two" in answer)


@env.template()
async def framed():
    answer = yield {"prompt": "In a frame.", "extra": 1}
    yield float(bool(answer))


@env.template()
async def type_of():
    answer = yield "Answer nothing."
    yield {"str": 0.25, "NoneType": 0.5}.get(type(answer).__name__, 0.75) + (0.1 if answer == "" else 0.0)


@env.template()
async def spaces():
    answer = yield "Answer with spaces."
    yield len(answer) / 10


@env.template()
async def odd(kind: str):
    prompts = {
        "empty": "",
        "nothing": None,
        "number": 7,
        "texts": ["One.", "Two."],
        "anonymous": [{"content": "Who?"}],
        "developer": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Who?"}],
        "speechless": [{"role": "user"}],
        "object": [{"role": "user", "content": {"type": "text", "text": "Who?"}}],
    }
    answer = yield prompts[kind]
    yield len(answer or "") / 100
