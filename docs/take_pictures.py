"""Take the screenshots of the dashboard that README and docs show: `make pictures`.

Two scripted models of known strength play one environment, `proctor view` shows their runs, and Chromium
opens the pages in both themes.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, async_playwright

from proctor import Rubric, Scripted, SingleTurnEnv, evaluate
from proctor.models.scripted import Step

PICTURES = Path(__file__).parent / "pictures"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PROGRAMS = ("chromium-headless-shell", "chromium")
TASKS, ROLLOUTS = 120, 4
FRUIT = ("apples", "pears", "plums", "figs", "limes")


def write_problem(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    bought, eaten, fruit = chance.randint(20, 90), chance.randint(2, 19), chance.choice(FRUIT)
    question = f"Ada buys {bought} {fruit} and eats {eaten}. How many {fruit} are left?"
    return {"question": question, "answer": str(bought - eaten), "difficulty": chance.random()}


def correct(completion: Any, answer: str) -> float:
    return float(completion[-1]["content"].rstrip(".").endswith(f" {answer}"))


def words(completion: Any) -> float:
    return float(len(completion[-1]["content"].split()))


def script_model(name: str, strength: float) -> Scripted:
    """A model that solves easy problems more often than hard ones."""
    chance = random.Random(name)
    script: dict[str, list[Any]] = {}
    for problem in map(write_problem, range(TASKS)):
        rate = min(0.98, max(0.02, strength + 0.9 * (0.5 - problem["difficulty"])))
        script[problem["question"]] = [
            write_answer(problem["answer"], chance.random() < rate, chance) for _ in range(ROLLOUTS)
        ]
    return Scripted(script, name)


def write_answer(answer: str, is_right: bool, chance: random.Random) -> Step:
    given = answer if is_right else str(int(answer) + chance.choice((-10, -1, 1, 10)))
    start = chance.choice(("Subtract what was eaten:", "What is left is", "So the answer is"))
    return Step(text=f"{start} {given}.", delay_seconds=chance.uniform(0.05, 0.4))


async def play_runs(folder: Path) -> tuple[str, str]:
    """The ids of two runs, baseline first."""
    found = []
    for name, strength in (("tutor-7b", 0.55), ("tutor-7b-rl", 0.68)):
        environment = SingleTurnEnv(
            [write_problem(number) for number in range(TASKS)],
            rubric=Rubric(correct, words, weights=[1.0, 0.0]),
            system_prompt="Solve the problem. End with the number.",
            env_id="word-problems",
        )
        result = await evaluate(
            environment,
            script_model(name, strength),
            num_examples=-1,
            rollouts_per_example=ROLLOUTS,
            save_results=True,
            output_dir=str(folder),
        )
        assert result.folder
        found.append(result.folder.name)
    return found[0], found[1]


@contextmanager
def viewing(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "proctor", "view", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as view:
        assert view.stdout
        try:
            yield json.loads(view.stdout.readline())["url"]
        finally:
            view.terminate()


async def take_picture(browser: Browser, url: str, name: str, theme: Literal["light", "dark"]) -> None:
    page = await browser.new_page(
        viewport={"width": 1280, "height": 800}, device_scale_factor=1.5, color_scheme=theme
    )
    await page.goto(url, wait_until="load")
    await page.wait_for_timeout(1_500)  # for charts that are drawn after the data has arrived
    await page.screenshot(path=PICTURES / f"{name}-{theme}.png")
    await page.close()


async def main() -> None:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        sys.exit("Install Chromium first.")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        baseline, candidate = await play_runs(Path(folder))
        pages = {"run": f"/runs/{candidate}", "compare": f"/compare?runs={baseline},{candidate}"}
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            with viewing(Path(folder)) as url:
                for theme in THEMES:
                    for name, path in pages.items():
                        await take_picture(browser, url + path, name, theme)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
