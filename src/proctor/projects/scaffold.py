"""The files of a new rollout, its first recipe and a small dataset. Knows nothing of terminals."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from proctor.errors import ConfigError
from proctor.projects.layout import DATA, RECIPES, ROLLOUTS

NAME = re.compile(r"[a-z][a-z0-9_-]*")
GITIGNORE = ".gitignore"
MAIN = '''\
"""{name}: the workflow that is evaluated, and the grader that rates it."""

from openai import AsyncOpenAI

from proctor import AgentWorkflow, AgentWorkflowContext, Grader, GraderContext, numeric


class Workflow(AgentWorkflow):
    """Works on one row. Use any framework here: point it to ctx.chat_completions_url with ctx.api_key."""

    async def run(self, ctx: AgentWorkflowContext) -> list[dict]:
        async with AsyncOpenAI(base_url=ctx.chat_completions_url, api_key=ctx.api_key) as client:
            answer = await client.chat.completions.create(model=ctx.model, messages=ctx.prompt)
        return [*ctx.prompt, {{"role": "assistant", "content": answer.choices[0].message.content}}]


class Check(Grader):
    """Rates what the workflow returned against the row's ground_truth."""

    async def grade(self, ctx: GraderContext) -> None:
        ctx.set_reward(numeric(ctx.sample.text, ctx.label).value)
'''
PYPROJECT = """\
[project]
name = "{name}"
version = "0.1.0"
requires-python = ">={python}"
dependencies = ["openai>=1.50"]
"""
RECIPE = """\
[experiment]
rollout = "{name}"
entrypoint = "main.py"
model_path = "openai/gpt-5-mini"
dataset = "{name}"

[evaluation]
limit = 5                        # the first 5 rows; "all" for every row; omit for a random 10%
# n = 1                          # attempts per row
# batch_size = 1                 # rows in flight at once
# pass_threshold = 1.0           # reward from which an attempt counts as passed
# agent_workflow_timeout_s = 450
# grader_timeout_s = 150

# [env]
# LOG_LEVEL = "info"

# [secrets]
# required = ["MY_API_KEY"]      # names of variables; values never stand in a file
"""


def plan_files(root: Path, name: str, *, force: bool = False) -> dict[Path, str]:
    """The files to write, by their paths, or a ConfigError that says why they cannot be."""
    if NAME.fullmatch(name) is None:
        raise ConfigError(f"{name!r} cannot be the name of a rollout; use small letters, digits and '-'.")
    folder = root / ROLLOUTS / name
    if folder.exists() and not force:
        raise ConfigError(f"{folder} already exists; choose another name, or overwrite it with --force.")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    files = {
        folder / "main.py": MAIN.format(name=name),
        folder / "pyproject.toml": PYPROJECT.format(name=name, python=python),
        root / RECIPES / f"{name}.toml": RECIPE.format(name=name),
        root / DATA / f"{name}.jsonl": sample_rows(),
        root / GITIGNORE: "outputs/\n__pycache__/\n",
    }
    return {path: text for path, text in files.items() if path.parent == folder or not path.exists()}


def sample_rows() -> str:
    rows = (
        {
            "system_prompt": "Answer with a number only.",
            "user_prompt": f"What is {left} + {left * 7}?",
            "ground_truth": str(left * 8),
        }
        for left in range(3, 23)
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def write_files(files: dict[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
