"""Everything that can go wrong in one rollout, or to a run: its outcome, its words, its exit code, and that
nobody else suffers.

Most tests play the five tasks of faulty.py, or of the echo environment; task 3 is the one that fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import EchoEnvironment, Rubric, Scripted, SingleTurnEnv, State, evaluate
from proctor.events import Event, RolloutsFinished
from proctor.rollout import Rollout
from tests.waiting import SECONDS

if TYPE_CHECKING:
    from tests.conftest import Answer, Provider, Ran

    Proctor = Callable[..., Ran]
    Serve = Callable[..., Provider]

FAULTY = str(Path(__file__).with_name("faulty.py"))
BAD = 3
FIVE = ("-n", "5", "-r", "1", "--json")


@dataclass(frozen=True)
class Ending:
    """How the bad task ends."""

    outcome: str
    kind: str
    words: str
    phase: str = ""


def faulty(proctor: Proctor, *words: str, **arguments: Any) -> Ran:
    """Five tasks of the faulty environment, on the command line."""
    return proctor("eval", "run", FAULTY, "-m", "scripted", *FIVE, "-a", json.dumps(arguments), *words)


def assert_one_failed(ran: Ran, ending: Ending) -> dict[str, Any]:
    """One rollout ended as told and the four others were scored. Gives the row of the one."""
    assert ran.code == 1, ran.stderr
    assert "Traceback" not in ran.stderr
    rows = ran.rows
    bad = rows[BAD]
    error = bad["error"]
    assert (bad["outcome"], error["error"]) == (ending.outcome, ending.kind)
    assert ending.words in error["message"]
    if ending.phase:
        assert error["phase"] == ending.phase
    assert bad["reward"] is None
    assert [row["outcome"] for row in rows] == ["scored", "scored", "scored", ending.outcome, "scored"]
    assert [row["reward"] for row in rows if row is not bad] == [1.0] * 4
    assert ran.summary["reward"]["mean"] == 1.0  # of the scored: an error is no zero
    assert ran.metadata["status"] == "finished"
    return bad


def test_a_silent_provider_is_not_scored_as_the_agents_failure(
    proctor: Proctor, provider: Serve, tmp_path: Path
) -> None:
    (tmp_path / "ask.py").write_text(
        "from proctor import Environment\n\n"
        "env = Environment('ask')\n\n"
        "@env.template()\n"
        "async def ask():\n"
        "    answer = yield 'hello?'\n"
        "    yield float(bool(answer))\n\n"
        "tasks = [ask()]\n"
    )
    silent = provider({"hangs": True})

    ran = proctor(
        *("eval", "run", "ask.py", "-m", "m", "-b", silent.url, "-k", "", "--timeout", "1", "--json")
    )

    assert ran.code == 1, "nothing was scored"
    [row] = ran.rows
    assert (row["outcome"], row["reward"]) == ("model_error", None)
    assert "m had not answered for" in row["error"]["message"]
    assert ran.summary["coverage"] == 0.0


def test_one_503_and_one_reset_cost_no_rollout(proctor: Proctor, provider: Serve) -> None:
    shaky = provider(
        {"status": 503, "headers": {"retry-after-ms": "10"}}, {"closes": "mid_body", "text": "x"}, "say 0"
    )

    ran = proctor("eval", "run", "echo", "-m", "m", "-b", shaky.url, "-k", "", "-n", "1", "-r", "1", "--json")

    assert ran.code == 0, ran.stderr
    [row] = ran.rows
    assert (row["outcome"], row["reward"], row.get("attempts")) == ("scored", 1.0, None)
    failures = [(call.get("error") or {}).get("error") for call in row["model_calls"]]
    assert failures == ["OverloadedError", "UnreachableError", None]


def test_extra_body_is_merged_as_openai_clients_do(proctor: Proctor, provider: Serve) -> None:
    server = provider("say 0")
    sampling = json.dumps({"top_p": 0.9, "extra_body": {"top_k": 5, "top_p": 0.8}})

    ran = proctor(
        *("eval", "run", "echo", "-m", "m", "-b", server.url, "-k", "", "-n", "1", "-r", "1", "-S", sampling)
    )

    assert ran.code == 0, ran.stderr
    body = server.requests[0].body
    assert (body["top_k"], body["top_p"]) == (5, 0.8)
    assert "extra_body" not in body


def test_an_extra_body_that_is_no_object_is_refused_before_the_first_call(
    proctor: Proctor, provider: Serve
) -> None:
    server = provider("say 0")

    ran = proctor(
        *("eval", "run", "echo", "-m", "m", "-b", server.url, "-k", "", "-S", '{"extra_body": "top_k=5"}')
    )

    assert (ran.code, server.requests) == (2, [])
    assert "extra_body is 'top_k=5'; it must be an object" in ran.stderr


@pytest.mark.parametrize("value", [None, "very good"])
def test_a_reward_that_is_no_number_is_reported_at_the_first_rollout(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def vague(completion: Any) -> Any:
        return value

    model = Scripted()
    asked: list[int] = []

    def count(_: logging.LogRecord) -> bool:
        asked.append(len(model.requests))
        return True

    caplog.handler.addFilter(count)
    env = SingleTurnEnv([{"question": f"q {n}", "answer": ""} for n in range(9)], rubric=Rubric(vague))

    result = asyncio.run(evaluate(env, model, max_concurrent=1))

    assert {rollout.outcome for rollout in result} == {"grader_error"}
    [warning] = [record.getMessage() for record in caplog.records if "first rollout" in record.getMessage()]
    assert "reward function 'vague' returned" in warning
    assert "--resume" in warning
    assert asked[0] < 9, "it was reported while the others were still to be played"


def assert_all_scored(ran: Ran) -> dict[str, Any]:
    """Every rollout was scored all the same. Gives the row of the one that something happened to."""
    assert ran.code == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert [row["outcome"] for row in ran.rows] == ["scored"] * 5
    return ran.rows[BAD]


# The environment

ENVIRONMENT = {
    "setup raises": Ending("environment_error", "ValueError", "the dog ate it", "setup"),
    "setup raises CancelledError": Ending("environment_error", "EnvError", "was not cancelled", "setup"),
    "setup exits": Ending("environment_error", "SystemExit", "enough of this", "setup"),
    "setup raises KeyboardInterrupt": Ending("environment_error", "KeyboardInterrupt", "", "setup"),
    "response raises": Ending("environment_error", "ValueError", "the dog ate it", "generation"),
    "response raises CancelledError": Ending("environment_error", "EnvError", "was not cancelled"),
    "response exits": Ending("environment_error", "SystemExit", "enough of this"),
    "response raises KeyboardInterrupt": Ending("environment_error", "KeyboardInterrupt", ""),
    "blocking response raises": Ending("environment_error", "ValueError", "the dog ate it"),
    "blocking response raises StopIteration": Ending("environment_error", "RuntimeError", "StopIteration"),
    "blocking response raises KeyboardInterrupt": Ending("environment_error", "KeyboardInterrupt", ""),
    "blocking response exits": Ending("environment_error", "SystemExit", "enough of this"),
}


@pytest.mark.parametrize("fault", ENVIRONMENT)
def test_an_environment_that_fails_is_that_rollouts_environment_error(proctor: Proctor, fault: str) -> None:
    assert_one_failed(faulty(proctor, fault=fault), ENVIRONMENT[fault])


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("cleanup raises", "ValueError"),
        ("cleanup raises CancelledError", "CancelledError"),
        ("cleanup exits", "SystemExit"),
    ],
)
def test_a_cleanup_that_fails_is_noted_and_the_score_stands(proctor: Proctor, fault: str, kind: str) -> None:
    row = assert_all_scored(faulty(proctor, fault=fault))

    assert row["cleanup_error"]["error"] == kind
    assert row["error"] is None


@pytest.mark.parametrize(
    ("fault", "ending"),
    [
        ("response and cleanup raises", Ending("environment_error", "ValueError", "the dog ate it")),
        ("reward and cleanup raises", Ending("grader_error", "GraderError", "the dog ate it")),
    ],
)
def test_a_cleanup_that_fails_does_not_hide_what_went_wrong_before(
    proctor: Proctor, fault: str, ending: Ending
) -> None:
    row = assert_one_failed(faulty(proctor, fault=fault), ending)

    assert row["cleanup_error"]["message"] == "nothing was left to sweep"


def test_a_cleanup_that_fails_does_not_hide_why_the_setup_failed(proctor: Proctor) -> None:
    ending = Ending("environment_error", "ValueError", "the dog ate it", "setup")

    assert_one_failed(faulty(proctor, fault="setup and cleanup raises"), ending)


@pytest.mark.parametrize(
    "fault",
    [
        "teardown raises",
        "teardown exits",
    ],
)
def test_a_teardown_that_fails_is_said_and_the_results_stand(proctor: Proctor, fault: str) -> None:
    ran = faulty(proctor, fault=fault)

    assert_all_scored(ran)
    assert "closing failed" in ran.stderr


def test_an_environment_that_takes_too_long_is_a_timeout(proctor: Proctor) -> None:
    ran = faulty(proctor, "--timeout", "0.3", fault="blocking response blocks forever")

    assert_one_failed(ran, Ending("timeout", "DeadlineError", "more than 0.3 s", "generation"))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("dataset raises", "ValueError: the dog ate it"),
        ("dataset raises StopIteration", "StopIteration"),
        ("dataset exits", "SystemExit: enough of this"),
    ],
)
def test_a_dataset_that_breaks_off_fails_the_run_and_what_was_played_is_kept(
    proctor: Proctor, tmp_path: Path, fault: str, words: str
) -> None:
    ran = faulty(proctor, "-o", "out", fault=fault)

    assert ran.code == 1, ran.stderr
    assert "reading the tasks failed" in ran.stderr + ran.stdout
    assert words in ran.stderr + ran.stdout
    assert "Traceback" not in ran.stderr
    [results] = tmp_path.glob("out/**/results.jsonl")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert sorted((row["example_id"], row["outcome"]) for row in rows) == [
        (number, "scored") for number in range(BAD)
    ]
    assert json.loads(results.with_name("metadata.json").read_text())["status"] == "failed"


# The grader

GRADER = {
    "reward raises": Ending("grader_error", "GraderError", "'judged' raised ValueError: the dog ate it"),
    "reward raises StopIteration": Ending("grader_error", "GraderError", "'judged' raised StopIteration"),
    "reward raises CancelledError": Ending("grader_error", "GraderError", "was not cancelled"),
    "reward exits": Ending("grader_error", "SystemExit", "enough of this"),
    "reward raises KeyboardInterrupt": Ending("grader_error", "KeyboardInterrupt", ""),
    "async reward raises": Ending(
        "grader_error", "GraderError", "'judged' raised ValueError: the dog ate it"
    ),
    "async reward raises CancelledError": Ending("grader_error", "GraderError", "was not cancelled"),
    "async reward exits": Ending("grader_error", "SystemExit", "enough of this"),
    "async reward raises KeyboardInterrupt": Ending("grader_error", "KeyboardInterrupt", ""),
    "group reward raises": Ending("grader_error", "GraderError", "the dog ate it"),
    "group reward exits": Ending("grader_error", "GraderError", "enough of this"),
}


@pytest.mark.parametrize("fault", GRADER)
def test_a_reward_function_that_fails_is_that_rollouts_grader_error(proctor: Proctor, fault: str) -> None:
    ending = GRADER[fault]

    row = assert_one_failed(faulty(proctor, fault=fault), ending)

    assert row["error"]["phase"] == "scoring"
    assert row["completion"]  # what was said before is kept


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        ("NaN", "'judged' returned nan; a score is a finite number"),
        ("very good", "'judged' returned str 'very good'; a score is a number"),
        ([1.0], "'judged' returned list [1.0]; a score is a number"),
    ],
)
def test_a_reward_that_is_no_finite_number_is_a_grader_error(
    proctor: Proctor, reward: Any, words: str
) -> None:
    assert_one_failed(faulty(proctor, reward=reward), Ending("grader_error", "GraderError", words, "scoring"))


def test_scoring_that_takes_too_long_is_a_timeout_and_keeps_nobody_from_leaving(proctor: Proctor) -> None:
    ran = faulty(proctor, "--scoring-timeout", "0.3", fault="reward blocks forever")

    assert_one_failed(ran, Ending("timeout", "DeadlineError", "scoring took more than 0.3 s", "scoring"))


def test_a_grader_that_blocks_stalls_nobody() -> None:
    """Eight graders wait for each other, and then for the loop."""
    all_at_once, loop_turned = threading.Barrier(8, timeout=SECONDS), threading.Event()
    begun: list[State] = []

    def blocking(state: State) -> float:
        begun.append(state)
        all_at_once.wait()
        return float(loop_turned.wait(SECONDS))

    environment = SingleTurnEnv([{"question": str(number)} for number in range(8)], rubric=Rubric(blocking))

    async def release() -> None:
        while len(begun) < 8:
            await asyncio.sleep(0.005)
        loop_turned.set()

    async def main() -> Any:
        releasing = asyncio.create_task(release())
        result = await evaluate(environment, Scripted())
        releasing.cancel()
        return result

    result = asyncio.run(main())

    assert [rollout.outcome for rollout in result] == ["scored"] * 8
    assert result.summary.reward.mean == 1.0


# The model


def bad_model(
    provider: Serve, proctor: Proctor, answer: Answer | list[Any], *words: str
) -> tuple[Ran, Provider]:
    """Five tasks of the echo environment, and a provider that misbehaves when asked for the fourth."""
    server = provider({f"say {BAD}": answer})
    ran = proctor("eval", "run", "echo", "-m", "tiny", "-b", server.url, *FIVE, *words)
    return ran, server


MODEL: dict[str, tuple[Answer, Ending]] = {
    "400": ({"status": 400}, Ending("model_error", "RequestRefusedError", "answered 400: scripted to fail")),
    "401": ({"status": 401}, Ending("model_error", "AuthError", "answered 401")),
    "429 with Retry-After of hours": (
        {"status": 429, "headers": {"Retry-After": "7200"}},
        Ending("model_error", "RateLimitError", "answered 429"),
    ),
    "500": ({"status": 500}, Ending("model_error", "OverloadedError", "answered 500: scripted to fail")),
    "hangs": ({"hangs": True}, Ending("model_error", "ModelTimeoutError", "did not answer in 3 s")),
    "closes mid-body": (
        {"text": "say 3", "closes": "mid_body"},
        Ending("model_error", "UnreachableError", "before the end of its answer"),
    ),
    "closes unanswered": (
        {"closes": "unanswered"},
        Ending("model_error", "UnreachableError", "closed the"),
    ),
    "invalid JSON": (
        {"body": '{"choices": ['},
        Ending("model_error", "MalformedReplyError", "a chat"),
    ),
    "empty choices": ({"body": {"choices": []}}, Ending("model_error", "MalformedReplyError", "any choices")),
    "no body": (
        {"body": ""},
        Ending("model_error", "MalformedReplyError", "with a chat completion"),
    ),
}


@pytest.mark.parametrize("fault", MODEL)
def test_a_provider_that_fails_is_that_rollouts_model_error(
    proctor: Proctor, provider: Serve, fault: str
) -> None:
    answer, ending = MODEL[fault]

    ran, _ = bad_model(provider, proctor, answer, "-c", "1", "--request-timeout", "3")

    row = assert_one_failed(ran, ending)
    calls = row["model_calls"]
    assert {call["error"]["error"] for call in calls} == {ending.kind}
    assert len(calls) == 1 or ending.kind in ("OverloadedError", "UnreachableError")
    assert row["prompt"][-1]["content"] == f"say {BAD}"


@pytest.mark.parametrize(
    ("headers", "least_seconds", "most_seconds"),
    [({"Retry-After": "0.3"}, 0.3, 0.35), ({"retry-after-ms": "300"}, 0.3, 0.35), ({}, 0.5, 1.05)],
    ids=["seconds", "milliseconds", "without Retry-After"],
)
def test_a_rate_limit_is_waited_out(
    proctor: Proctor,
    provider: Serve,
    headers: dict[str, str],
    least_seconds: float,
    most_seconds: float,
) -> None:
    ran, server = bad_model(provider, proctor, [{"status": 429, "headers": headers}, f"say {BAD}"])

    row = assert_all_scored(ran)
    refused, answered = row["model_calls"]
    assert refused["error"]["error"] == "RateLimitError"
    waited = answered["start"] - refused["start"] - refused["seconds"]
    assert least_seconds <= waited <= most_seconds + 0.5  # and the machine may be busy
    assert "attempts" not in row
    assert len(server.requests) == 6


def test_a_transient_failure_is_retried_when_asked_to(proctor: Proctor, provider: Serve) -> None:
    ran, _ = bad_model(provider, proctor, [{"body": "what?"}, f"say {BAD}"], "--max-retries", "1")

    row = assert_all_scored(ran)
    assert row["attempts"] == 2
    assert row["earlier_attempts"][0]["error"]["error"] == "MalformedReplyError"


def test_a_conversation_that_no_longer_fits_is_truncated_and_scored(
    proctor: Proctor, provider: Serve
) -> None:
    error = {"error": {"code": "context_length_exceeded", "message": "8193 tokens are too many"}}

    ran, _ = bad_model(provider, proctor, {"status": 400, "body": error})

    assert ran.code == 0, ran.stderr
    row = ran.rows[BAD]
    assert (row["outcome"], row["is_truncated"], row["reward"]) == ("truncated", True, 0.0)
    assert row["stop_condition"] == "prompt_too_long"
    assert row["error"] is None
    assert [other["reward"] for other in ran.rows if other is not row and other != row] == [1.0] * 4


def test_an_answer_cut_off_by_its_length_is_truncated_and_scored(proctor: Proctor, provider: Serve) -> None:
    ran, _ = bad_model(provider, proctor, {"text": f"say {BAD}", "finish_reason": "length"})

    assert ran.code == 0, ran.stderr
    assert [row["outcome"] for row in ran.rows] == ["scored", "scored", "scored", "truncated", "scored"]
    assert ran.rows[BAD]["reward"] == 1.0


def test_less_than_full_coverage_is_fine_where_it_is_said_to_be(proctor: Proctor, provider: Serve) -> None:
    ran, _ = bad_model(provider, proctor, {"status": 400}, "--min-coverage", "0.8")

    assert ran.code == 0, ran.stderr
    assert ran.rows[BAD]["outcome"] == "model_error"


# Tools


def bad_tool(proctor: Proctor, tmp_path: Path, fault: str, arguments: Any) -> Ran:
    """The model calls a tool in the fourth task, is told what came of it, and then answers."""
    call = {"when": f"say {BAD}", "tool_calls": [{"name": "look_up", "arguments": arguments}]}
    answer = {"when": f"say {BAD}", "text": f"say {BAD}"}
    script = tmp_path / "script.jsonl"
    script.write_text(f"{json.dumps(call)}\n{json.dumps(answer)}\n")
    return faulty(proctor, "-b", str(script), fault=fault)


@pytest.mark.parametrize(
    ("fault", "arguments", "told"),
    [
        ("tool raises", {"word": str(BAD)}, "ValueError: the dog ate it"),
        ("tool raises StopIteration", {"word": str(BAD)}, "StopIteration"),
        ("tool exits", {"word": str(BAD)}, "enough of this"),
        pytest.param(
            *("tool raises KeyboardInterrupt", {"word": str(BAD)}, "KeyboardInterrupt"),
        ),
        ("async tool raises", {"word": str(BAD)}, "ValueError: the dog ate it"),
        ("async tool exits", {"word": str(BAD)}, "enough of this"),
        pytest.param(
            *("async tool raises KeyboardInterrupt", {"word": str(BAD)}, "KeyboardInterrupt"),
        ),
        ("tool raises", '{"word": ', "JSON"),
        ("tool raises", {}, "word"),
        ("tool raises", {"word": "x", "colour": "red"}, "colour"),
        ("tool raises", "[]", "object"),
    ],
)
def test_a_tool_call_that_fails_is_told_to_the_model_and_the_rollout_goes_on(
    proctor: Proctor, tmp_path: Path, fault: str, arguments: Any, told: str
) -> None:
    row = assert_all_scored(bad_tool(proctor, tmp_path, fault, arguments))

    called, answered, _ = row["completion"]
    assert called["tool_calls"][0]["name"] == "look_up"
    assert answered["role"] == "tool"
    assert told in answered["content"]
    assert row["metrics"]["tool_errors"] == 1.0


@pytest.mark.parametrize("fault", ["tool raises CancelledError", "async tool raises CancelledError"])
def test_a_tool_that_raises_cancelled_error_cancels_nobody(
    proctor: Proctor, tmp_path: Path, fault: str
) -> None:
    ran = bad_tool(proctor, tmp_path, fault, {"word": str(BAD)})

    assert ran.code in (0, 1)
    assert [row["outcome"] for row in ran.rows if row["example_id"] != BAD] == ["scored"] * 4
    assert len(ran.rows) == 5


# What is written

LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
os.execv(sys.argv[2], sys.argv[2:])
"""


@contextlib.contextmanager
def tiny_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"this user cannot mount a disk: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def assert_can_be_resumed(proctor: Proctor, full: Ran, words: tuple[str, ...], folder: Path) -> None:
    """The run failed, says what to do, kept whole rows only, and can be finished once there is room."""
    assert full.code == 1, full.stderr
    assert "Traceback" not in full.stderr
    assert f"--resume {folder.relative_to(full.cwd)}" in " ".join((full.stderr + full.stdout).split())
    before = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert 0 < len(before) < 100

    resumed = proctor(*words, "--resume", str(folder))

    assert resumed.code == 0, resumed.stderr
    keys = [(row["example_id"], row["rollout"]) for row in resumed.rows]
    assert keys == [(number, 0) for number in range(100)]
    assert not list(folder.glob(".*"))  # nothing half-written is left lying about


def test_a_file_that_may_not_grow_fails_the_run_and_loses_nothing_that_was_saved(
    proctor: Proctor, tmp_path: Path
) -> None:
    words = (
        "eval",
        "run",
        "echo",
        "-m",
        "scripted",
        "-n",
        "100",
        "-r",
        "1",
        "-c",
        "4",
        "-o",
        "out",
        "--json",
    )

    full = proctor(*words, under=(sys.executable, "-c", LIMITED, "30000"))

    [results] = tmp_path.glob("out/**/results.jsonl")
    assert results.stat().st_size <= 30000
    assert "File too large" in full.stderr + full.stdout
    assert_can_be_resumed(proctor, full, words, results.parent)


def test_a_full_disk_fails_the_run_and_loses_nothing_that_was_saved(proctor: Proctor, tmp_path: Path) -> None:
    words = (
        "eval",
        "run",
        "echo",
        "-m",
        "scripted",
        "-n",
        "100",
        "-r",
        "1",
        "-c",
        "4",
        "-o",
        "out",
        "--json",
    )

    with tiny_disk(tmp_path / "out", "48k"):
        full = proctor(*words)

        [results] = tmp_path.glob("out/**/results.jsonl")
        assert "No space left on device" in full.stderr + full.stdout
        subprocess.run(["mount", "-o", "remount,size=4m", str(tmp_path / "out")], check=True)
        assert_can_be_resumed(proctor, full, words, results.parent)


@pytest.mark.parametrize("value", ["keys that are no text", "half a character", "endless"])
def test_a_task_that_is_no_json_is_kept_as_text_and_takes_nobody_along(value: str) -> None:
    loop: list[Any] = []
    loop.append(loop)
    infos: dict[str, Any] = {
        "keys that are no text": {1: "one", (2, 3): "pair"},
        "half a character": {"text": "\ud800"},
        "endless": {"loop": loop},
    }
    rows = [{"question": str(number), "answer": str(number)} for number in range(5)]
    rows[BAD] = {**rows[BAD], "info": infos[value]}

    result = asyncio.run(evaluate(SingleTurnEnv(rows, rubric=Rubric(lambda completion: 1.0)), Scripted()))

    assert [rollout.outcome for rollout in result] == ["scored"] * 5
    written = (result.folder / "results.jsonl").read_text().splitlines()
    assert len([json.loads(line) for line in written]) == 5


# Who listens


def test_a_listener_that_fails_is_left_out_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Rollout] = []
    failures = 0

    def broken(event: Event) -> None:
        nonlocal failures
        if isinstance(event, RolloutsFinished):
            failures += 1
            raise RuntimeError("nobody told me")

    def healthy(event: Event) -> None:
        if isinstance(event, RolloutsFinished):
            heard.extend(event.rollouts)

    environment = EchoEnvironment(*(f"say {number}" for number in range(5)))
    with caplog.at_level(logging.ERROR, "proctor"):
        result = asyncio.run(evaluate(environment, Scripted(), listeners=[broken, healthy], max_concurrent=1))

    assert [rollout.outcome for rollout in result] == ["scored"] * 5
    assert len(heard) == 5
    assert failures == 1
    assert "a listener raised" in caplog.text
