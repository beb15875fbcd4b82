"""What an author, or a model with a hostile formula, would notice about MathRubric."""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.engine.seat import RunContext
from proctor.env import math_rubric
from proctor.env.math_rubric import MathRubric
from proctor.env.multi_turn import SingleTurnEnv
from proctor.env.parsers import ThinkParser
from proctor.env.xml_parser import XMLParser
from proctor.errors import ConfigError
from proctor.models.scripted import Scripted
from proctor.rollout import Rollout
from tests.env.playing import played, reward
from tests.waiting import SECONDS

ENDLESS = "10^{10^{10}}"
TIMEOUT_SECONDS = 2.0

EQUAL = [
    ("1/2", "0.5"),
    ("0.5", r"\frac12"),
    (r"\frac{1}{2}", "1/2"),
    (r"\dfrac{3}{4}", ".75"),
    ("0.5", r"50\%"),
    ("50%", "1/2"),
    ("25 percent", "0.25"),
    ("1234", "1,234"),
    ("1500", r"1.5 \times 10^3"),
    (1e-05, "0.00001"),
    (18, "18"),
    (2.5, r"\frac{5}{2}"),
    (r"\sqrt{8}", "2 sqrt(2)"),
    (r"\{1, 2, 3\}", r"\{3, 1, 2\}"),
    ("1, 2", r"\{2, 1\}"),
    ("[0, 1)", r"\left[0, 1\right)"),
    (r"(-\infty, 3]", "(-∞, 3]"),
    (r"(0,1)\cup(2,3)", r"(2,3)\cup(0,1)"),
    ("1 < x < 2", "(1, 2)"),
    ("(x+1)^2", "x^2 + 2x + 1"),
    ("x^2", "x**2"),
    ("x = 5", "5"),
    (r"\pm 2", "-2, 2"),
    (r"2\pi", "2pi"),
    ("12", "12 dollars"),
    (r"5\text{ cm}", "5"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}"),
    (r"\boxed{7}", "7.0"),
    ("$x+y$", "y+x"),
    ("no solution", "No solution."),
]

DIFFERENT = [
    ("1/2", "0.51"),
    ("1/3", "0.33"),
    (r"\{1, 2\}", r"\{1, 2, 3\}"),
    ("[0, 1)", "[0, 1]"),
    ("(x+1)^2", "x^2 + 1"),
    ("2", "2 sqrt(3)"),
    ("4", "3 apples and 4 pears"),
    ("5", "}{"),
    ("5", ""),
    ("5", "I do not know"),
    ("12", "(" * 5000),
]


@pytest.fixture(scope="module")
def rubric() -> Iterator[MathRubric]:
    """One for all, so that its processes stay warm from test to test, and from loop to loop."""
    rubric = MathRubric(lenient=True, timeout_seconds=TIMEOUT_SECONDS, max_workers=2)
    yield rubric
    asyncio.run(rubric.close())


def marked(
    rubric: MathRubric,
    pairs: Sequence[tuple[Any, str]],
    rules: Mapping[str, Any] | None = None,
    **settings: Any,
) -> list[Rollout]:
    """Rollouts in which each right answer is met by what the model said."""
    rows = [{"question": f"[{number}]", "answer": gold} for number, (gold, _) in enumerate(pairs)]
    env = SingleTurnEnv(rows, rubric=rubric, **settings)
    model = Scripted({f"[{number}]": said for number, (_, said) in enumerate(pairs)})
    return played(env, RunContext(model), closes=False, **(rules or {}))


def complaint(rollout: Rollout) -> str:
    assert rollout.outcome == "grader_error"
    assert rollout.failure is not None
    return rollout.failure.message


def timeouts(rollout: Rollout) -> float:
    assert rollout.score is not None
    return rollout.score.metrics["math_timeouts"]


def boxed(pairs: Sequence[tuple[Any, str]]) -> list[tuple[Any, str]]:
    return [(gold, rf"So it is \boxed{{{said}}}.") for gold, said in pairs]


def test_equal_answers_are_right_however_they_are_written(rubric: MathRubric) -> None:
    rollouts = marked(rubric, boxed(EQUAL))

    missed = [pair for pair, rollout in zip(EQUAL, rollouts, strict=True) if reward(rollout) != 1.0]
    assert missed == []


def test_equal_answers_need_no_box(rubric: MathRubric) -> None:
    rollouts = marked(rubric, EQUAL)

    missed = [pair for pair, rollout in zip(EQUAL, rollouts, strict=True) if reward(rollout) != 1.0]
    assert missed == []


def test_different_answers_are_wrong(rubric: MathRubric) -> None:
    rollouts = marked(rubric, boxed(DIFFERENT))

    passed = [pair for pair, rollout in zip(DIFFERENT, rollouts, strict=True) if reward(rollout) != 0.0]
    assert passed == []


@pytest.mark.parametrize(
    "said",
    [
        r"First \boxed{3}, no, \boxed{5}",
        "The answer is 5.",
        "We add 2 and 3.\n\nThe final answer is $x = 5$.",
        "2 + 3\n\n**Answer:** 5",
        "$5$",
    ],
)
def test_the_final_answer_is_found_in_a_text(rubric: MathRubric, said: str) -> None:
    (rollout,) = marked(rubric, [("5", said)])

    assert reward(rollout) == 1.0


def test_the_parser_of_the_environment_decides_what_the_answer_is(rubric: MathRubric) -> None:
    parser = XMLParser(["answer"])

    right, wrong = marked(rubric, [("1/2", "7 <answer>0.5</answer>"), ("1/2", r"\boxed{0.5}")], parser=parser)

    assert reward(right) == 1.0
    assert reward(wrong) == 0.0


def test_a_thought_is_no_answer(rubric: MathRubric) -> None:
    (rollout,) = marked(rubric, [("5", r"<think>\boxed{5}")], parser=ThinkParser())

    assert reward(rollout) == 0.0


def test_an_endless_answer_is_given_up_in_time_and_seen(rubric: MathRubric) -> None:
    started = time.monotonic()

    endless, right = marked(rubric, boxed([("5", ENDLESS), ("1/2", "0.5")]))

    assert time.monotonic() - started < TIMEOUT_SECONDS + 30
    assert (reward(endless), timeouts(endless)) == (0.0, 1.0)
    assert (reward(right), timeouts(right)) == (1.0, 0.0)


def test_a_right_answer_that_cannot_be_read_is_no_fault_of_the_model(rubric: MathRubric) -> None:
    unreadable = r"2^{n} - 1 for all n \in"

    wrong, same, sibling = marked(
        rubric, boxed([(unreadable, "3"), (unreadable, unreadable), ("1/2", "0.5")])
    )

    assert "cannot be read" in complaint(wrong)
    assert "cannot be read" in complaint(same)
    assert reward(sibling) == 1.0


def test_a_right_answer_that_takes_for_ever_to_read_is_no_fault_of_the_model(rubric: MathRubric) -> None:
    (rollout,) = marked(rubric, [("(" * 3000 + "5" + ")" * 3000, "5")])

    assert "within 2 s" in complaint(rollout)


@pytest.mark.parametrize(("gold", "says"), [("", "no right answer"), ([1, 2], "text or a number")])
def test_a_task_needs_a_right_answer(rubric: MathRubric, gold: Any, says: str) -> None:
    (rollout,) = marked(rubric, [(gold, "5")])

    assert says in complaint(rollout)


def test_processes_that_died_meanwhile_are_replaced(rubric: MathRubric) -> None:
    marked(rubric, [("1/2", "0.5")] * 4)
    for worker in rubric.workers._idle:
        worker.process.kill()
        worker.process.wait()

    (rollout,) = marked(rubric, [("1/2", "0.5")])

    assert (reward(rollout), timeouts(rollout)) == (1.0, 0.0)


def test_a_closed_rubric_leaves_no_process_and_may_be_used_again() -> None:
    rubric = MathRubric(lenient=True, max_workers=1)
    marked(rubric, [("1/2", "0.5")])
    (worker,) = rubric.workers._idle

    asyncio.run(rubric.close())

    assert worker.process.returncode is not None
    assert reward(marked(rubric, [("1/2", "0.5")])[0]) == 1.0
    asyncio.run(rubric.close())


def test_a_rollout_that_is_cut_off_takes_its_process_with_it(rubric: MathRubric) -> None:
    marked(rubric, [("1/2", "0.5")])
    before = set(rubric.workers._alive)

    (rollout,) = marked(rubric, [("5", ENDLESS)], rules={"scoring_seconds": 0.2})

    assert rollout.outcome == "timeout"
    assert len(before - rubric.workers._alive) == 1


def test_plain_numbers_that_are_the_same_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(math_rubric, "MathWorker", refuse)

    same, other = marked(MathRubric(lenient=True), [("18", r"\boxed{ 18 }"), ("18", "19")])

    assert reward(same) == 1.0
    assert "no more processes" in complaint(other)


def test_further_functions_are_weighed_beside_it(rubric: MathRubric) -> None:
    def brief(completion: Any) -> float:
        return 1.0

    rubric = MathRubric(brief, weights=[0.5], lenient=True)

    (rollout,) = marked(rubric, [("18", "18")])

    assert reward(rollout) == 1.5
    assert rollout.score is not None
    assert rollout.score.metrics == {"brief": 1.0, "correct_answer": 1.0, "math_timeouts": 0.0}


def test_without_math_verify_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(ConfigError, match=r"pip install 'proctor\[math\]'"):
        MathRubric()


def worker(module_path: Path | None = None) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "PYTHONPATH": str(module_path)} if module_path else None
    return subprocess.Popen(
        [sys.executable, "-m", "proctor.env.math_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
    )


def test_what_a_library_prints_or_reads_does_not_disturb_the_worker(tmp_path: Path) -> None:
    (tmp_path / "math_verify.py").write_text(
        "import os, sys\n"
        "def parse(text, **_):\n"
        "    print('noise'); os.write(1, b'more noise'); sys.stdin.read()\n"
        "    return [text]\n"
        "def verify(gold, said, **_):\n"
        "    return True\n"
    )
    request = json.dumps({"gold": "1", "said": "2", "form": "exact"}) + "\n"

    said, trouble = worker(tmp_path).communicate(2 * request.encode(), timeout=SECONDS)

    assert [json.loads(line)["ok"] for line in said.splitlines()] == [True, True, True]
    assert trouble == b""


def test_a_worker_whose_asker_is_gone_ends_although_it_is_busy() -> None:
    with worker() as process:
        assert process.stdin is not None
        request = {"gold": "5", "said": ENDLESS, "form": "exact", "seconds": 0.5}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.close()

        assert process.wait(timeout=SECONDS) != 0
