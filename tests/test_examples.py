"""Every example runs, by the command its own docstring gives, and comes to what it should."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.evaluation.evaluate import evaluate
from proctor.models.scripted import Scripted, Step

EXAMPLES = Path(__file__).parent.parent / "examples"
OFFERS = ("def load_environment", "tasks = [")
ENVIRONMENTS = sorted(
    path for path in EXAMPLES.glob("*.py") if any(offer in path.read_text() for offer in OFFERS)
)
WITH_TOOLS = "shop.py"


def rewards(example: str, model: Scripted, **settings: Any) -> list[float | None]:
    result = asyncio.run(evaluate(str(EXAMPLES / example), model, **settings))
    return [rollout.score.reward if rollout.score else None for rollout in result]


@pytest.mark.parametrize(
    "path", [path for path in ENVIRONMENTS if path.name != WITH_TOOLS], ids=lambda path: path.stem
)
def test_the_command_in_an_examples_docstring_works_with_the_embedded_model(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "env.workspace(" in path.read_text():
        request.getfixturevalue("sandboxes")
    command = re.search(r"^ *proctor (eval run .*)$", path.read_text(), re.MULTILINE)
    assert command, f"{path.name} does not say how it is run"
    words = command[1].replace("examples/", f"{EXAMPLES}/").split()

    done = subprocess.run(
        [sys.executable, "-m", "proctor", *words, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert summary["coverage"] == 1.0
    assert summary["usage"]["output_tokens"] > 0


def test_capitals_rewards_the_right_city() -> None:
    model = Scripted({"France": "It is Paris.", "Japan": "Kyoto"})

    assert rewards("capitals.py", model, num_examples=2) == [1.0, 0.0]


def test_guess_number_rewards_a_quick_guess_more() -> None:
    halving = Scripted(["10", "5", "7"])
    lucky = Scripted(["7"])

    assert rewards("guess_number.py", halving, num_examples=1) == [pytest.approx(1 + 0.5 * (1 - 2 / 6))]
    assert rewards("guess_number.py", lucky, num_examples=1) == [1.5]


def test_shop_rewards_the_right_basket_and_survives_a_wrong_item() -> None:
    model = Scripted(
        [
            Step(tool_calls=[{"name": "price", "arguments": {"item": "pear"}}]),
            Step(
                tool_calls=[
                    {"name": "buy", "arguments": {"item": "apple", "count": 2}},
                    {"name": "buy", "arguments": {"item": "bread"}},
                ]
            ),
            "Done.",
        ]
    )

    assert rewards("shop.py", model, num_examples=1) == [1.0]


def test_shortest_compares_the_answers_of_a_group() -> None:
    model = Scripted(["short", "a longer answer", "the longest answer of all three"])

    first, second, third = rewards(
        "shortest.py", model, num_examples=1, rollouts_per_example=3, max_concurrent=1
    )

    assert first == 1.0
    assert third == 0.5
    assert second is not None
    assert 0.5 < second < 1.0


def test_letters_rewards_counting_and_two_answers_in_a_row() -> None:
    spelling = Step(tool_calls=[{"name": "spell", "arguments": {"word": "strawberry"}}])
    model = Scripted(
        {
            "strawberry": [spelling, "s t r a w … so it is 3."],
            "banana": "There are 4.",
            "longest": "apple",
            "How many letters": "It has 4 of them.",
        }
    )

    assert rewards("letters.py", model) == [1.0, 0.0, pytest.approx(2 / 3)]


@pytest.mark.usefixtures("sandboxes")
def test_repairs_rewards_what_the_hidden_tests_accept() -> None:
    edit = {"path": "prices.py", "old": "sum(prices[1:])", "new": "sum(prices)"}
    model = Scripted(
        {
            "`total`": [
                Step(tool_calls=[{"name": "edit_file", "arguments": edit}]),
                "It skipped one.",
            ],
            "`reduced`": "I see nothing wrong.",
        }
    )

    assert rewards("repairs.py", model) == [1.0, 0.0]


README = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
CHECKED = {
    "add.py": re.search(r"```python\n([^`]*work\.check[^`]*)```", README),
    "prices.py": re.match("(.*)", (EXAMPLES / "repairs.py").read_text(), re.DOTALL),
}
"""The environments that we show to readers and that run an agent's module, by that module."""


@pytest.mark.usefixtures("sandboxes")
@pytest.mark.parametrize("module", CHECKED)
def test_no_check_that_we_show_is_satisfied_by_a_module_that_just_exits(module: str, tmp_path: Path) -> None:
    shown = CHECKED[module]
    assert shown
    (tmp_path / "repairs_starter").mkdir()
    (tmp_path / "shown.py").write_text(shown[1])
    forge = {"path": module, "content": "import os\nos._exit(0)\n"}
    model = Scripted([Step(tool_calls=[{"name": "write_file", "arguments": forge}]), "Done."] * 2)

    assert set(rewards(str(tmp_path / "shown.py"), model, max_concurrent=1)) == {0.0}


def test_the_python_example_prints_what_it_should(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "in_python.py"],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.splitlines()[:3] == [
        "say one → scored 1.0",
        "say two → scored 0.0",
        "say three → model_error None",
    ]


def test_a_scripted_step_reads_back_as_it_was_written() -> None:
    step = Step(text="4", delay_seconds=0.1)

    assert msgspec.json.decode(msgspec.json.encode(step), type=Step) == step


def test_the_example_project_runs_with_the_scripted_model(tmp_path: Path) -> None:
    project = Path(shutil.copytree(EXAMPLES / "workspace", tmp_path / "workspace"))
    steps = [
        {"when": "France", "text": "Paris"},
        {"when": "Japan", "text": "I think that it is Tokyo"},
        {"when": "Only the name", "text": "As I said, Tokyo"},
        {"when": "Italy", "error": "refused"},
        {"text": "Nowhere"},
    ]
    (project / "script.jsonl").write_text("".join(f"{json.dumps(step)}\n" for step in steps))
    words = ("eval", "run", "configs/eval/capitals.toml", "-m", "scripted", "-b", "script.jsonl", "--json")

    done = subprocess.run(
        [sys.executable, "-m", "proctor", *words], cwd=project, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 1, "coverage is below the minimum, because one row failed"
    document = json.loads(done.stdout)
    scores = document["summary"]["scores"]
    assert (scores["attempts"], scores["passed"], scores["failed"], scores["skipped"]) == (38, 2, 2, 2)
    assert document["summary"]["metrics"]["questions"]["mean"] > 1
    assert (Path(document["folder"]) / "artifacts/row_1_run_0/conversation.json").is_file()
