from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.cli.app import run
from tests.conftest import Ran

MAIN = """
import json, os, time, urllib.request
from proctor import AgentWorkflow, Grader

class Solve(AgentWorkflow):
    def run(self, ctx):
        body = json.dumps({"model": ctx.model, "messages": ctx.prompt}).encode()
        headers = {"authorization": f"Bearer {ctx.api_key}", "content-type": "application/json"}
        request = urllib.request.Request(f"{ctx.chat_completions_url}/chat/completions", body, headers)
        with urllib.request.urlopen(request) as response:
            json.load(response)
        if os.environ.get("CRASH_ON") == ctx.prompt[-1]["content"]:
            raise ValueError("crashed as asked")

class Check(Grader):
    def grade(self, ctx):
        ctx.set_reward(1.0 if ctx.label in ctx.sample.text else 0.5)
"""
RECIPE = """\
[experiment]
rollout = "my-rollout"
entrypoint = "main.py"
model_path = "scripted"
dataset = "my-dataset"
"""


class MadeProject:
    """A project with one rollout, one recipe and one dataset of 30 rows."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rollout = root / "rollouts/my-rollout"
        self.dataset = root / "data/my-dataset.jsonl"
        self.recipe = root / "configs/eval/my.toml"
        for folder in (self.rollout, self.dataset.parent, self.recipe.parent):
            folder.mkdir(parents=True)
        (self.rollout / "main.py").write_text(MAIN)
        (self.rollout / "pyproject.toml").write_text('[project]\nname = "my-rollout"\nversion = "1"\n')
        rows = [{"user_prompt": f"say {number}", "ground_truth": f"say {number}"} for number in range(30)]
        self.dataset.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        self.write_recipe()

    def write_recipe(self, more: str = "") -> None:
        self.recipe.write_text(RECIPE + more)


@pytest.fixture
def project(tmp_path: Path) -> MadeProject:
    return MadeProject(tmp_path)


@pytest.fixture
def copied_example(tmp_path: Path) -> Callable[[str], Path]:
    examples = Path(__file__).parents[2] / "examples"

    def copy(name: str) -> Path:
        return Path(shutil.copytree(examples / name, tmp_path / name))

    return copy


@pytest.fixture
def say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Calls the command in this process, which is enough where no rollout is played."""
    monkeypatch.chdir(tmp_path)

    def say(*words: str) -> Ran:
        with pytest.raises(SystemExit) as left:
            run(words)
        out, err = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Ran(left.value.code, out, err, tmp_path)

    return say
