"""Real runs for the dashboard, in folders: played by the engine with the scripted and the embedded model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from proctor import Rubric, SingleTurnEnv, evaluate
from proctor.contracts import EnvironmentProtocol, Model
from proctor.evaluation.execute import Result
from proctor.models.scripted import Scripted, Step
from proctor.trace import text_of
from tests.web.hostile_content import HOSTILE_TEXTS

T = TypeVar("T")
EXAMPLES = Path(__file__).parents[2] / "examples"


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """In a thread of its own: Playwright may have left an event loop in this one."""
    kept: list[T] = []
    thread = threading.Thread(target=lambda: kept.append(asyncio.run(work)))
    thread.start()
    thread.join()
    return kept[0]


def play(environment: EnvironmentProtocol | str, model: Model | str, folder: Path, **settings: Any) -> Result:
    work = evaluate(environment, model, output_dir=str(folder), save_results=True, **settings)
    return run_async(work)


def equal(completion: Any, answer: str) -> float:
    return float(text_of(completion[-1]).strip() == answer)


def length(completion: Any) -> float:
    return float(len(text_of(completion[-1])))


def play_sums(folder: Path, model: str = "careful", *, mistakes: int = 1) -> Result:
    """12 sums, three rollouts each: most right, some wrong, one that the model never answers."""
    rows = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(1, 13)]
    script: dict[str, list[Any]] = {
        row["question"]: [row["answer"], row["answer"], "a guess" if n % 4 < mistakes else row["answer"]]
        for n, row in enumerate(rows)
    }
    script["What is 12 + 12?"] = [Step(error="refused")]
    rubric = Rubric(equal, length, weights=[1.0, 0.0])
    environment = SingleTurnEnv(rows, rubric=rubric, system_prompt="Answer with the number alone.")
    return play(environment, Scripted(script, model), folder, rollouts_per_example=3, max_retries=0)


def play_shop(folder: Path) -> Result:
    """An agent with tools: parallel calls, reasoning, a call that fails."""
    steps: list[str | Step | BaseException] = [
        Step(
            reasoning="I should look up both prices first.",
            tool_calls=[
                {"name": "price", "arguments": {"item": "apple"}},
                {"name": "price", "arguments": {"item": "caviar"}},
            ],
        ),
        Step(text="Now I buy.", tool_calls=[{"name": "buy", "arguments": {"item": "apple", "count": 2}}]),
        "Bought **two apples**, for `1.00`.",
    ]
    return play(str(EXAMPLES / "shop.py"), Scripted(steps, "shopper"), folder)


def play_hostile(folder: Path) -> Result:
    """Every hostile text as a question and, since nothing is scripted, as the answer."""
    rows = [
        {"question": text or " ", "answer": text, "info": {"kind": kind, "text": text}}
        for kind, text in HOSTILE_TEXTS.items()
    ]
    return play(SingleTurnEnv(rows, rubric=Rubric(equal)), Scripted((), "<b>parrot</b>"), folder)


def play_capitals(folder: Path) -> Result:
    """The embedded model, for real."""
    return play(
        str(EXAMPLES / "capitals.py"),
        "local",
        folder,
        num_examples=2,
        rollouts_per_example=2,
        max_tokens=4,
        temperature=0.7,
    )
