from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor import Rollout, Scripted, evaluate
from proctor.errors import ConfigError, ModelError
from proctor.workflow.server_environment import ServerEnvironment
from tests.workflow.authored import make_tasks

SCRIPT = Path(__file__).parent / "serving.py"


def play(labels: list[str], model: Any = None, **settings: Any) -> dict[str, Rollout]:
    environment = ServerEnvironment(make_tasks(*labels), SCRIPT)
    result = asyncio.run(evaluate(environment, model or Scripted(["fine"]), max_concurrent=20, **settings))
    return {str(rollout.task.answer): rollout for rollout in result}


@pytest.mark.parametrize("protocol", ["callbacks", "polling"])
def test_each_way_an_attempt_may_go_at_a_server_has_its_outcome_phase_and_message(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTOCOL", protocol)

    found = play(["right", "crash", "hang", "bad grader", "ungraded", "skip", "refuse"], timeout=3)

    seen = {
        label: (rollout.outcome, rollout.failure and (rollout.failure.phase, rollout.failure.message))
        for label, rollout in found.items()
    }
    assert seen == {
        "right": ("scored", None),
        "crash": ("agent_error", ("generation", "the workflow failed: boom")),
        "hang": (
            "timeout",
            ("generation", "playing took more than 3 s; give it more with agent_workflow_timeout_s"),
        ),
        "bad grader": ("grader_error", ("scoring", "the grader failed: no rubric")),
        "ungraded": ("grader_error", ("scoring", "the grader set no reward")),
        "skip": ("excluded", ("scoring", "the grader removed the sample")),
        "refuse": (
            "environment_error",
            ("generation", "the rollout server refused the row (422): no such label"),
        ),
    }
    right = found["right"]
    assert right.score is not None
    assert (right.score.reward, right.score.metrics) == (1.0, {"length": 3.0})
    assert right.trace.completion == [{"role": "assistant", "content": "fine"}]
    assert len(right.trace.calls) == 1


def test_a_server_that_is_full_is_asked_again() -> None:
    assert [rollout.outcome for rollout in play(["busy"]).values()] == ["scored"]


def test_a_server_that_dies_fails_its_attempts_and_is_started_again() -> None:
    environment = ServerEnvironment(make_tasks("die", "right"), SCRIPT)

    died, right = asyncio.run(evaluate(environment, Scripted(["fine"]), max_concurrent=1))

    assert died.outcome == "environment_error"
    assert died.failure is not None
    assert died.failure.message.startswith("the rollout server serving.py ended with exit code 3")
    assert died.failure.transient
    assert right.outcome == "scored"


def test_a_script_that_never_serves_ends_the_run_with_what_it_printed(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text("raise SystemExit('no port, no server')\n")
    environment = ServerEnvironment(make_tasks("a"), script)

    with pytest.raises(ConfigError, match=r"main\.py ended with exit code 1: no port, no server"):
        asyncio.run(evaluate(environment, Scripted(["fine"])))


def test_a_failing_model_is_blamed_rather_than_the_server() -> None:
    (rollout,) = play(["right"], Scripted([ModelError("503")])).values()

    assert rollout.outcome == "model_error"
