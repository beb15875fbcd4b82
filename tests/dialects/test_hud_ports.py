"""Environments and scripts of HUD with only the import changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

import proctor as hud
from proctor import Capability, Environment, EvaluationResult, Scripted, Subscore
from proctor.errors import ConfigError

env = Environment("letters")


@env.template()
async def count(word: str) -> AsyncGenerator[Any, str]:
    answer = yield f"How many r in {word}?"
    right = float(answer == str(word.count("r")))
    yield EvaluationResult(
        reward=right, content="counted", info={"length": len(word)}, subscores=[Subscore("right", right)]
    )


@env.template()
async def unlucky() -> AsyncGenerator[Any, str]:
    yield "Anything."
    yield EvaluationResult(reward=1.0, isError=True, content="the checker crashed")


def test_a_task_runs_by_itself_and_gives_a_job_with_runs(tmp_path: Path) -> None:
    job = asyncio.run(count(word="pear").run(model=Scripted("1"), group=2, output_dir=str(tmp_path)))

    assert isinstance(job, hud.Job)
    assert [run.reward for run in job.runs] == [1.0, 1.0]
    assert (job.reward, job.errors) == (1.0, [])
    assert job.runs[0].score is not None
    assert [part.name for part in job.runs[0].score.subscores] == ["right"]
    assert job.runs[0].score.metrics == {"length": 4.0}


def test_a_renamed_task_still_knows_its_environment(tmp_path: Path) -> None:
    job = asyncio.run(count(word="pear").with_slug("easy").run(model=Scripted("9"), output_dir=str(tmp_path)))

    assert {slug: [run.reward for run in runs] for slug, runs in job.results.items()} == {"easy": [0.0]}


def test_an_evaluation_that_failed_is_not_a_reward(tmp_path: Path) -> None:
    job = asyncio.run(unlucky().run(model=Scripted("hm"), output_dir=str(tmp_path)))

    assert (job.reward, job.runs[0].reward, job.runs[0].outcome) == (None, None, "grader_error")
    assert "the checker crashed" in str(job.runs[0].failure)


def test_a_capability_is_an_mcp_server_of_the_environment() -> None:
    pytest.importorskip("mcp")
    offering = Environment("tools", capabilities=[Capability.mcp(url="http://127.0.0.1:1/mcp")])
    offering.add_capability(Capability.mcp(url="http://127.0.0.1:2/mcp", auth_token="t"))

    assert [(each.name, each.url) for each in offering.servers] == [("tools", "http://127.0.0.1:2/mcp")]
    assert offering.servers[0].headers == {"authorization": "Bearer t"}
    with pytest.raises(ConfigError, match="only MCP servers"):
        offering.add_capability(Capability(name="browser", protocol="cdp/1.3", url="ws://127.0.0.1:9222"))
