"""Real runs to read: played by the scripted model, saved in folders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.endpoints.endpoint import SharedEndpoint
from proctor.evaluation.evaluate import prepare, run
from proctor.models.scripted import Scripted
from tests.server.postgres import Cluster, cluster

ENVIRONMENT = """
from proctor import Rubric, SingleTurnEnv, ToolEnv
from proctor.env.echo import repeats

def look_up(word: str) -> str:
    "Look a word up."
    return f"{word} means itself"

def load_environment(tools=False, tasks=4):
    rows = [{"question": f"say {n}", "answer": f"say {n}"} for n in range(tasks)]
    if tools:
        return ToolEnv(rows, tools=[look_up], rubric=Rubric(repeats))
    return SingleTurnEnv(rows, rubric=Rubric(repeats))
"""

Play = Callable[..., Path]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that runs are saved in."""
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """Plays an environment of four tasks with the scripted model and returns the run's folder."""
    source = tmp_path_factory.mktemp("environment") / "env.py"
    source.write_text(ENVIRONMENT)

    def play(base: Path, script: Any = (), **given: Any) -> Path:
        settings = {
            "env_id": str(source),
            "model": "scripted",
            "num_examples": 4,
            "rollouts_per_example": 2,
            "max_concurrent": 1,
            "output_dir": str(base),
            **given,
        }

        async def main() -> Path:
            prepared = prepare(settings, {})
            return (await run(prepared, service=SharedEndpoint(Scripted(script)))).folder

        return asyncio.run(main())

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield play


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    with cluster() as started:
        yield started
