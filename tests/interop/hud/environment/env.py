"""Letters, as HUD's documentation teaches environments: templates, a grade with subscores, a tool server."""

import os

from hud.environment import Environment
from hud.graders import EvaluationResult, SubScore

env = Environment("letters", version="1.2.0")
visits = []


@env.template(description="Counts letters.")
async def count(word: str, letter: str = "r"):
    visits.append(word)
    answer = yield f"Visit {len(visits)}: how many '{letter}'s are in '{word}'?"
    yield 1.0 if str(word.count(letter)) in (answer or "") else 0.0


@env.template(id="graded")
async def graded():
    answer = yield [{"role": "user", "content": "Say pear."}]
    right = float("pear" in answer)
    yield EvaluationResult(
        reward=right * 0.5 + 0.25,
        content="looked",
        info={"length": len(answer)},
        subscores=[
            SubScore(name="pear", value=right, weight=0.5),
            SubScore(name="base", value=0.5, weight=0.5),
        ],
    )


@env.template()
async def broken():
    yield "Anything."
    raise RuntimeError("no grade today")


@env.template()
async def dying():
    os._exit(7)
    yield "Anything."
