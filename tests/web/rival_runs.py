"""Runs to compare: of one environment, by models of known strength; and a sweep by the command line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.models.scripted import Scripted, Step
from tests.web.played_runs import play

TASKS = 24
ROLLOUTS = 2
CLI_SECONDS = 120

ENVIRONMENT = """
from proctor import Rubric, SingleTurnEnv
from proctor.trace import text_of


def equal(completion, answer):
    return float(text_of(completion[-1]).strip() == answer)


def length(completion):
    return float(len(text_of(completion[-1])))


def load_environment(first=0, tasks=24):
    rows = [{"question": f"Say word {n}.", "answer": f"w{n}"} for n in range(first, first + tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(equal, length, weights=[1.0, 0.0]))
"""

SUITE = """
env_id = "./words.py"
num_examples = 8
rollouts_per_example = 2
save_results = true

[[ablation]]
[ablation.sweep]
endpoint_id = ["weak", "strong"]
temperature = [0.0, 1.0]
"""


def write_environment(folder: Path, *, version: int = 1) -> Path:
    """Its content differs by version, so that its hash does."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "words.py"
    source.write_text(f"# version {version}\n{ENVIRONMENT}")
    return source


def answer_some(name: str, share: float, *, refused: int = 0) -> Scripted:
    """A model that answers a share of the questions, always the same ones; the last few it refuses."""
    chance = random.Random(name)
    script: dict[str, list[Any]] = {}
    for n in range(2 * TASKS):
        answers = [f"w{n}" if chance.random() < share else "no idea" for _ in range(ROLLOUTS)]
        script[f"Say word {n}."] = [Step(error="refused")] if TASKS - refused <= n < TASKS else [*answers]
    return Scripted(script, name)


def play_rivals(folder: Path) -> dict[str, str]:
    """`careful` and `careful again` are alike, `careless` is worse, `partial` lacks scores, `other` has some
    other tasks, and `newer` is of a newer version of the environment."""
    source = write_environment(folder / "environment")
    outputs = folder / "outputs"
    common: dict[str, Any] = {"num_examples": -1, "rollouts_per_example": ROLLOUTS, "max_retries": 0}
    played = {
        "careful": play(str(source), answer_some("careful", 0.85), outputs, **common),
        "careful again": play(str(source), answer_some("careful-again", 0.85), outputs, **common),
        "careless": play(str(source), answer_some("careless", 0.3), outputs, temperature=1.0, **common),
        "partial": play(str(source), answer_some("partial", 0.9, refused=6), outputs, **common),
        "other": play(
            str(source), answer_some("other", 0.8), outputs, env_args={"first": 12, "tasks": TASKS}, **common
        ),
    }
    write_environment(folder / "environment", version=2)
    played["newer"] = play(str(source), answer_some("careful", 0.95), outputs, **common)
    return {name: result.folder.name for name, result in played.items()}


def play_sweep(folder: Path) -> str:
    """Two models at two temperatures, by `proctor eval run`; the id of the suite."""
    write_environment(folder)
    (folder / "suite.toml").write_text(SUITE)
    (folder / "configs").mkdir()
    rows = []
    for name, share in (("weak", 0.4), ("strong", 0.9)):
        write_script(folder / f"{name}.jsonl", name, share)
        rows.append(f'[[endpoint]]\nendpoint_id = "{name}"\nmodel = "{name}"\ntype = "scripted"\n')
        rows.append(f'url = "{name}.jsonl"\n')
    (folder / "configs" / "endpoints.toml").write_text("".join(rows))
    command = [sys.executable, "-m", "proctor", "eval", "run", "suite.toml", "--disable-tui"]
    played = subprocess.run(
        command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, timeout=CLI_SECONDS
    )
    assert played.returncode == 0, played.stderr
    (suite,) = {read_metadata(path)["suite"] for path in folder.rglob("metadata.json")}
    return str(suite)


def write_script(path: Path, name: str, share: float) -> None:
    chance = random.Random(name)
    steps = [
        {"when": f"word {n}.", "text": f"w{n}" if chance.random() < share else "no idea"}
        for n in range(TASKS)
        for _ in range(ROLLOUTS)
    ]
    path.write_text("".join(json.dumps(step) + "\n" for step in steps))


def read_metadata(path: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(path.read_text())
    return found
