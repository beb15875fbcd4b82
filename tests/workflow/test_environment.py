from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    AgentWorkflow,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    Grader,
    GraderContext,
    Rollout,
    Scripted,
    Task,
    WorkflowEnvironment,
    evaluate,
)
from proctor.errors import ModelError
from tests.waiting import SECONDS
from tests.workflow.authored import ask_model, make_tasks


class Answer(AgentWorkflow[Any]):
    def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        ask_model(ctx)


class Contains(Grader[Any]):
    async def grade(self, ctx: GraderContext[Any]) -> None:
        ctx.set_reward(1.0 if ctx.label in ctx.sample.text else 0.0)


def play(
    workflow: type[AgentWorkflow[Any]],
    grader: type[Grader[Any]] = Contains,
    tasks: list[Task] | None = None,
    model: Any = None,
    **settings: Any,
) -> list[Rollout]:
    environment = WorkflowEnvironment(tasks or make_tasks("a"), workflow, grader, Path(__file__).parent)
    return list(asyncio.run(evaluate(environment, model or Scripted(["it is a"]), **settings)))


def test_a_workflow_that_returns_nothing_is_graded_on_the_recorded_trace() -> None:
    (rollout,) = play(Answer)

    assert rollout.outcome == "scored"
    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert rollout.trace.completion == [{"role": "assistant", "content": "it is a"}]
    assert [call.role for call in rollout.trace.calls] == ["agent"]


def test_returned_messages_are_the_sample_with_tool_calls_in_the_spelling_of_the_api() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    class Returns(AgentWorkflow[Any]):
        async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
            messages = [
                *ctx.prompt,
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "seen"},
                {"role": "assistant", "content": "a"},
            ]
            return AgentWorkflowOutput(messages=messages, metrics={"steps": 2})

    class SeesCalls(Grader[Any]):
        def grade(self, ctx: GraderContext[Any]) -> None:
            ctx.set_reward(float(ctx.sample.messages[1]["tool_calls"] == [call]))
            ctx.set_metric("messages", len(ctx.sample.messages))

    (rollout,) = play(Returns, SeesCalls)

    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert rollout.score.metrics == {"steps": 2.0, "messages": 4.0}
    assert rollout.trace.prompt == [{"role": "user", "content": "say a"}]
    assert len(rollout.trace.completion) == 3


def test_the_context_carries_the_row_and_the_class_configuration() -> None:
    seen: dict[str, Any] = {}

    class Looks(AgentWorkflow[dict[str, int]]):
        config = {"depth": 3}  # noqa: RUF012

        def run(self, ctx: AgentWorkflowContext[dict[str, int]]) -> list[dict[str, Any]]:
            seen.update(prompt=ctx.prompt, metadata=ctx.metadata, config=ctx.config, model=ctx.model)
            ctx.metadata["level"] = 99
            return [{"role": "assistant", "content": "a"}]

    class LooksToo(Grader[Any]):
        def grade(self, ctx: GraderContext[Any]) -> None:
            seen.update(label=ctx.label, graded=ctx.metadata, text=ctx.sample.text)
            ctx.set_reward(1)

    task = Task(id=7, prompt=({"role": "user", "content": "go"},), answer={"any": "json"}, info={"level": 1})

    play(Looks, LooksToo, [task])

    assert seen == {
        "prompt": [{"role": "user", "content": "go"}],
        "metadata": {"level": 99},
        "config": {"depth": 3},
        "model": "scripted",
        "label": {"any": "json"},
        "graded": {"level": 1},
        "text": "a",
    }


def test_files_of_an_attempt_are_kept_with_the_results_and_shown_to_the_grader() -> None:
    class Writes(AgentWorkflow[Any]):
        def run(self, ctx: AgentWorkflowContext[Any]) -> None:
            if ctx.prompt[0]["content"] == "say a":
                (ctx.artifacts_dir / "answer.txt").write_text("a")
            else:
                ask_model(ctx)

    class Reads(Grader[Any]):
        def grade(self, ctx: GraderContext[Any]) -> None:
            ctx.set_reward(len(list(ctx.artifacts_dir.iterdir())))

    environment = WorkflowEnvironment(make_tasks("a", "b"), Writes, Reads)

    result = asyncio.run(evaluate(environment, Scripted(["b"])))

    assert [rollout.score and rollout.score.reward for rollout in result] == [1.0, 0.0]
    assert [str(path.relative_to(result.folder)) for path in result.folder.rglob("*_run_*")] == [
        "artifacts/row_0_run_0"
    ]


def test_skipping_leaves_the_row_out_even_if_the_exception_is_caught() -> None:
    class Skips(AgentWorkflow[Any]):
        def run(self, ctx: AgentWorkflowContext[Any]) -> None:
            try:
                ctx.skip("no such city")
            except Exception:
                return

    class Removes(Grader[Any]):
        def grade(self, ctx: GraderContext[Any]) -> None:
            ctx.sample.remove_sample = True

    (skipped,) = play(Skips)
    (removed,) = play(Answer, Removes)

    assert (skipped.outcome, skipped.failure and skipped.failure.message) == ("excluded", "no such city")
    assert removed.outcome == "excluded"


def test_a_failing_model_is_blamed_rather_than_the_workflow_it_made_fail() -> None:
    (rollout,) = play(Answer, model=Scripted([ModelError("503 from the provider")]))

    assert rollout.outcome == "model_error"
    assert rollout.failure is not None
    assert "503 from the provider" in rollout.failure.message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "run() returned int; return messages, an AgentWorkflowOutput, or nothing"),
        (None, "run() returned no messages, called no model and wrote no file; there is nothing to grade"),
        ([{"role": "clown"}], "run() returned a message that is not one of the chat API"),
    ],
)
def test_a_return_value_that_means_nothing_is_the_workflows_failure(value: Any, message: str) -> None:
    class Returns(AgentWorkflow[Any]):
        def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
            return value

    (rollout,) = play(Returns)

    assert rollout.outcome == "agent_error"
    assert rollout.failure is not None
    assert rollout.failure.message.startswith(message)


def test_metrics_must_be_finite_numbers() -> None:
    class Returns(AgentWorkflow[Any]):
        def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
            return AgentWorkflowOutput(messages=[], metrics={"loss": float("nan")})

    (rollout,) = play(Returns)

    assert rollout.outcome == "agent_error"
    assert rollout.failure is not None
    assert "metric 'loss' is nan" in rollout.failure.message


def test_code_that_blocks_in_a_coroutine_blocks_no_other_row() -> None:
    all_at_once = threading.Barrier(8, timeout=SECONDS)

    class Blocks(AgentWorkflow[Any]):
        async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
            ask_model(ctx)  # blocks its loop, as a synchronous client does
            all_at_once.wait()

    rollouts = play(Blocks, tasks=make_tasks(*"abcdefgh"), max_concurrent=8)

    assert [rollout.outcome for rollout in rollouts] == ["scored"] * 8


def test_a_key_is_of_no_use_after_its_attempt() -> None:
    kept: list[AgentWorkflowContext[Any]] = []

    class Keeps(AgentWorkflow[Any]):
        def run(self, ctx: AgentWorkflowContext[Any]) -> None:
            ask_model(ctx)
            kept.append(ctx)

    class UsesIt(Grader[Any]):
        def grade(self, ctx: GraderContext[Any]) -> None:
            ask_model(kept[0])

    (rollout,) = play(Keeps, UsesIt)

    assert rollout.outcome == "grader_error"
    assert rollout.failure is not None
    assert "401" in rollout.failure.message


MATRIX = ("right", "half right", "workflow crash", "workflow hang", "grader crash", "grader sets no reward")
HANG_SECONDS = 3.0


class MatrixWorkflow(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        await asyncio.to_thread(ask_model, ctx)
        case = ctx.prompt[0]["content"].removeprefix("say ")
        if case == "workflow crash":
            raise KeyError("no such tool")
        if case == "workflow hang":
            await asyncio.Event().wait()


class MatrixGrader(Grader[Any]):
    async def grade(self, ctx: GraderContext[Any]) -> None:
        if ctx.label == "grader crash":
            raise ZeroDivisionError("nothing to divide by")
        if ctx.label != "grader sets no reward":
            ctx.set_reward(1.0 if ctx.label == "right" else 0.5)


def test_each_row_of_the_failure_matrix_has_its_own_outcome_phase_and_message() -> None:
    environment = WorkflowEnvironment(
        make_tasks(*MATRIX), MatrixWorkflow, MatrixGrader, Path(__file__).parent
    )

    result = asyncio.run(
        evaluate(environment, Scripted(["fine"]), max_concurrent=6, timeout=HANG_SECONDS, scoring_timeout=5)
    )

    stored = [json.loads(line) for line in (result.folder / "results.jsonl").read_text().splitlines()]
    rows = {row["example_id"]: row for row in stored}
    found = [
        (
            rows[index]["outcome"],
            rows[index]["reward"],
            (rows[index]["error"] or {}).get("phase"),
            (rows[index]["error"] or {}).get("message", "").partition(" (/")[0],
        )
        for index in range(6)
    ]
    assert found == [
        ("scored", 1.0, None, ""),
        ("scored", 0.5, None, ""),
        ("agent_error", None, "generation", "the workflow raised KeyError: 'no such tool'"),
        (
            "timeout",
            None,
            "generation",
            "playing took more than 3 s; give it more with agent_workflow_timeout_s",
        ),
        (
            "grader_error",
            None,
            "scoring",
            "the grader raised ZeroDivisionError: nothing to divide by",
        ),
        (
            "grader_error",
            None,
            "scoring",
            "the grader set no reward; call ctx.set_reward() or ctx.skip()",
        ),
    ]
    assert "test_environment.py:" in rows[2]["error"]["message"], "the author's line is named"
    assert stored[-1]["example_id"] == MATRIX.index("workflow hang"), "nobody waited for it"


def test_a_hanging_grader_has_a_limit_of_its_own() -> None:
    class Hangs(Grader[Any]):
        def grade(self, ctx: GraderContext[Any]) -> None:
            time.sleep(30)

    (rollout,) = play(Answer, Hangs, timeout=60, scoring_timeout=0.2)

    assert rollout.failure is not None
    assert (rollout.outcome, rollout.failure.phase) == ("timeout", "scoring")
    assert rollout.failure.message == "scoring took more than 0.2 s; give it more with grader_timeout_s"
