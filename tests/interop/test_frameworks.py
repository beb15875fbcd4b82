"""Real agent frameworks inside a workflow, from the index, and the unmodified classes of osmosis_ai."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dialects.killing import kill_run

if TYPE_CHECKING:
    from tests.conftest import Provider

pytestmark = pytest.mark.interop

REPOSITORY = Path(__file__).parents[2]
INSTALL_SECONDS = 900
CAPITALS = [{"when": "France", "text": "Paris"}, {"when": "Japan", "text": "Kyoto"}]
WITH_TOOL: list[dict[str, Any]] = [
    {"when": "France", "text": "Paris"},
    {"when": "Japan", "tool_calls": [{"name": "look_up", "arguments": {"country": "Japan"}}]},
    {"when": "Japan", "text": "It is Tokyo."},
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPOSITORY / "examples/workspace", tmp_path / "workspace"))


def run(python: str | Path, workspace: Path, recipe: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    script = workspace / "script.jsonl"
    script.write_text("".join(f"{json.dumps(step)}\n" for step in steps))
    words = ("eval", "run", f"configs/eval/{recipe}.toml", "-m", "scripted", "-b", str(script), "--json")
    done = subprocess.run(
        [str(python), "-m", "proctor", *words],
        cwd=workspace,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if "cannot be installed" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def read_rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    lines = (Path(document["folder"]) / "results.jsonl").read_text().splitlines()
    return sorted(map(json.loads, lines), key=lambda row: int(row["example_id"]))


def test_the_openai_sdk_works_inside_a_workflow(workspace: Path) -> None:
    document = run(sys.executable, workspace, "with-openai", CAPITALS)

    assert [row["reward"] for row in read_rows(document)] == [1.0, 0.0]
    assert document["summary"]["usage"]["output_tokens"] > 0


def test_an_agent_of_openai_agents_uses_its_tool_inside_a_workflow(workspace: Path) -> None:
    document = run(sys.executable, workspace, "with-openai-agents", WITH_TOOL)

    france, japan = read_rows(document)
    assert (france["reward"], japan["reward"]) == (1.0, 1.0)
    assert japan["metrics"]["tool_calls"] == 1
    assert [message["role"] for message in japan["completion"]] == ["assistant", "tool", "assistant"]
    assert "Honshu" in japan["completion"][1]["content"]


OSMOSIS_MAIN = """
import os
import httpx
import uvicorn
from osmosis_ai.rollout import AgentWorkflow, Grader, LocalBackend, get_rollout_context
from osmosis_ai.rollout.server import create_rollout_server


class Ask(AgentWorkflow):
    async def run(self, ctx):
        rollout = get_rollout_context()
        async with httpx.AsyncClient(timeout=60) as client:
            answer = await client.post(
                f"{rollout.chat_completions_url}/chat/completions",
                json={"model": "any", "messages": ctx.prompt},
                headers={"authorization": f"Bearer {rollout.api_key}"},
            )
        if "Italy" in ctx.prompt[-1]["content"]:
            raise ValueError("crashed as asked")
        return [*ctx.prompt, answer.json()["choices"][0]["message"]]


class Check(Grader):
    async def grade(self, ctx):
        if ctx.label == "Madrid":
            raise RuntimeError("no rubric")
        ctx.set_reward(1.0 if ctx.label in ctx.sample.messages[-1]["content"] else 0.0)


app = create_rollout_server(backend=LocalBackend(workflow=Ask, grader=Check))

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["_OSMOSIS_ROLLOUT_PORT"]), log_level="warning")
"""


def find_python() -> str | None:
    """A Python that osmosis_ai accepts."""
    installed = sorted((Path.home() / ".pyenv/versions").glob("3.1[23]*/bin/python"))
    named = [shutil.which(f"python3.{minor}") for minor in (12, 13)]
    for each in (sys.executable, *map(str, installed), *filter(None, named)):
        probe = [each, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]
        if subprocess.run(probe, check=False, capture_output=True).returncode == 0:
            return each
    return None


@pytest.mark.parametrize("version", ["==0.3.0", "==0.3.7"], ids=["calls back", "is polled"])
def test_the_unmodified_classes_of_osmosis_ai_are_played_at_their_own_server(
    version: str, workspace: Path, tmp_path: Path
) -> None:
    python = find_python()
    if python is None:
        pytest.skip("osmosis_ai needs Python 3.12 or newer")
    own = tmp_path / "venv"
    subprocess.run([python, "-m", "venv", str(own)], check=True)
    install = [str(own / "bin/pip"), "install", "--quiet", str(REPOSITORY), f"osmosis-ai[server]{version}"]
    if subprocess.run(install, timeout=INSTALL_SECONDS, check=False).returncode:
        pytest.skip("osmosis-ai cannot be installed")
    folder = workspace / "rollouts/theirs"
    folder.mkdir()
    (folder / "main.py").write_text(OSMOSIS_MAIN)
    recipe = (workspace / "configs/eval/with-openai.toml").read_text()
    recipe = recipe.replace("with_openai", "theirs").replace("limit = 2", "limit = 4")
    (workspace / "configs/eval/theirs.toml").write_text(recipe)

    rows = read_rows(run(own / "bin/python", workspace, "theirs", [*CAPITALS, {"text": "?"}]))

    assert [(row["outcome"], row["reward"]) for row in rows] == [
        ("scored", 1.0),
        ("scored", 0.0),
        ("agent_error", None),
        ("grader_error", None),
    ]
    assert "crashed as asked" in rows[2]["error"]["message"]
    assert "no rubric" in rows[3]["error"]["message"]


def write_osmosis_rollout(workspace: Path) -> None:
    """A rollout that says itself what it requires, and its recipe."""
    if find_python() is None:
        pytest.skip("osmosis_ai needs Python 3.12 or newer")
    folder = workspace / "rollouts/theirs"
    folder.mkdir()
    (folder / "main.py").write_text(OSMOSIS_MAIN)
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "theirs"\nversion = "0"\nrequires-python = ">=3.12"\n'
        'dependencies = ["osmosis-ai[server]==0.3.7"]\n'
    )
    recipe = (workspace / "configs/eval/with-openai.toml").read_text()
    recipe = recipe.replace("with_openai", "theirs").replace("limit = 2", "limit = 4")
    (workspace / "configs/eval/theirs.toml").write_text(recipe)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_killed_run_of_an_osmosis_rollout_resumes_and_leaves_no_process(
    workers: str, workspace: Path, provider: Callable[..., Provider]
) -> None:
    write_osmosis_rollout(workspace)
    said = {"France": "Paris", "Japan": [{"hangs": True}, "Kyoto"], "Italy": "?", "Spain": "?"}
    words = ["eval", "run", "configs/eval/theirs.toml", "-m", "m", "-b", provider(said).url, "-s", "--json"]
    words += ["-o", "out", "-w", workers]
    folder = kill_run(words, workspace, {}, workspace / "out", rows=3)
    done = subprocess.run(
        [sys.executable, "-m", "proctor", *words, "--resume", str(folder), "--min-coverage", "0.1"],
        cwd=workspace,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert [row["reward"] for row in read_rows(json.loads(done.stdout))] == [1.0, 0.0, None, None]


def test_an_osmosis_rollout_gets_a_python_of_its_own(workspace: Path) -> None:
    """Proctor's own Python may be too old for osmosis_ai, and does not have it."""
    write_osmosis_rollout(workspace)

    rows = read_rows(run(sys.executable, workspace, "theirs", [*CAPITALS, {"text": "?"}]))

    assert [(row["outcome"], row["reward"]) for row in rows] == [
        ("scored", 1.0),
        ("scored", 0.0),
        ("agent_error", None),
        ("grader_error", None),
    ]
