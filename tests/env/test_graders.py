"""Graders: what counts as right, and how parts become a reward."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.env.graders import (
    all_of,
    any_of,
    combine,
    contains,
    contains_all,
    contains_any,
    exact,
    f1,
    numeric,
    part,
    shell,
)
from proctor.env.numbers import numbers_in, read_number
from proctor.env.rewards import grade_of
from proctor.errors import GraderError
from proctor.rollout import Subscore
from tests.waiting import SECONDS, wait_for

unhurried = settings(deadline=None)

# Text


@pytest.mark.parametrize(
    ("answer", "expected", "settings", "value"),
    [
        ("Paris", "paris", {}, 1),
        (" Paris \n", "Paris", {}, 1),
        ("new  york", "New York", {}, 1),
        ("Paris.", "Paris", {}, 0),
        ("Paris.", "Paris", {"ignore_punctuation": True}, 1),
        ("paris", "Paris", {"ignore_case": False}, 0),
        ("a b", "a  b", {"ignore_space": False}, 0),
        ("Straße", "STRASSE", {}, 1),
        ("the second", ["the first", "the second"], {}, 1),
        ("a third", ["the first", "the second"], {}, 0),
    ],
)
def test_exact_compares_what_matters(answer: str, expected: Any, settings: Any, value: float) -> None:
    assert exact(answer, expected, **settings).value == value


def test_contains_finds_a_text_and_whole_words_where_asked_to() -> None:
    assert contains("It is 13.", "3").value == 1
    assert contains("It is 13.", "3", whole_words=True).value == 0
    assert contains("It is 3.", "3", whole_words=True).value == 1
    assert contains("in PARIS", "paris").value == 1
    assert contains("in PARIS", "paris", ignore_case=False).value == 0


def test_contains_any_and_all_say_what_was_found_and_what_is_missing() -> None:
    assert contains_any("red and blue", ["green", "blue"]) == Subscore(
        "contains_any", 1.0, note="found 'blue'"
    )
    assert contains_any("red", ["green", "blue"]).value == 0
    assert contains_all("red and blue", ["red", "blue"]) == Subscore("contains_all", 1.0)
    assert contains_all("red", ["red", "blue"]) == Subscore("contains_all", 0.0, note="missing: ['blue']")
    with pytest.raises(GraderError, match="no text to compare with"):
        contains_any("red", [])


words = st.lists(st.sampled_from(["red", "green", "blue", "pear", "plum"]), max_size=6).map(" ".join)


@unhurried
@given(words, words)
def test_f1_lies_between_0_and_1_and_does_not_care_who_is_who(one: str, other: str) -> None:
    value = f1(one, other).value

    assert 0.0 <= value <= 1.0
    assert value == f1(other, one).value
    assert (value == 1.0) == (sorted(one.split()) == sorted(other.split()))


def test_f1_counts_shared_words_with_their_repetitions() -> None:
    assert f1("the red pear", "a red pear").value == pytest.approx(2 / 3)
    assert f1("red red", "red").value == pytest.approx(2 / 3)
    assert f1("red", ["blue", "red pear"]).value == pytest.approx(2 / 3)


@unhurried
@given(words, words)
def test_an_exact_answer_contains_and_matches_itself(one: str, other: str) -> None:
    assert exact(one, one).value == 1
    assert exact(one, other).value == exact(other, one).value
    assert contains(f"{one} {other}", other).value == 1


# Numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("42", [42]),
        ("The answer is 42.", [42]),
        ("-5", [-5]),
        ("−5", [-5]),
        ("1,234,567.5 or so", [1234567.5]),
        ("$1{,}234$", [1234]),
        ("1\\,234", [1234]),
        ("1\u202f234", [1234]),
        ("12%", [0.12]),
        ("12\\%", [0.12]),
        ("50%-60%", [0.5, 0.6]),
        ("3/4", [0.75]),
        ("\\frac{3}{4}", [0.75]),
        ("\\dfrac{-3}{4}", [-0.75]),
        ("1.5 \\times 10^{3}", [1500]),
        ("2 × 10^-2", [0.02]),
        ("2 × 10^999", []),
        ("2e3", [2000]),
        (".5", [0.5]),
        ("I tried 1, 2 and 3: \\boxed{\\frac{1}{2}}", [0.5]),
        ("\\boxed{1} no, \\boxed{2}", [2]),
        ("5kg, 3-4 times", [5, 3, 4]),
        ("**7**", [7]),
        # what could mean two things is not read
        ("1,23", []),
        ("1.2.3", []),
        ("1,2,3", []),
        ("1/2/2024", []),
        ("1/0", []),
        ("0x1f", []),
        ("the 3rd", []),
        ("a1 b2c3", []),
        ("", []),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, numbers: list[float]) -> None:
    assert numbers_in(text) == pytest.approx(numbers)


@unhurried
@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_every_number_that_is_written_is_read_back(number: float) -> None:
    assert read_number(f"{number:.6f}") == pytest.approx(number, abs=1e-6)
    assert read_number(f"{number:,.6f}") == pytest.approx(number, abs=1e-6)
    assert read_number(f"{number!r}") == number


@unhurried
@given(st.text(max_size=200))
def test_any_text_can_be_searched_for_numbers(text: str) -> None:
    assert all(number == number for number in numbers_in(text))


@unhurried
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 1e3), st.floats(0, 1e3))
def test_more_tolerance_never_makes_an_answer_wrong(
    number: float, expected: float, tolerance: float, more: float
) -> None:
    strict = numeric(f"{number!r}", expected, tolerance=tolerance)
    lenient = numeric(f"{number!r}", expected, tolerance=tolerance + more)

    assert strict.value <= lenient.value


def test_numeric_says_what_it_read() -> None:
    assert numeric("it is 3, no, 4", 4).value == 1
    assert numeric("it is 3, no, 4", 3, pick="first").value == 1
    assert numeric("it is 3, no, 4", 4, pick="only") == Subscore(
        "numeric", 0.0, note="there are 2 numbers in 'it is 3, no, 4'"
    )
    assert numeric("who knows", 4).note == "there is no number in 'who knows'"
    assert numeric("5", 4).note == "expected 4, read 5"
    assert numeric("about 101", 100, relative=0.02).value == 1
    assert numeric("12%", "12%").value == numeric("0.12", "12%").value == 1
    assert numeric("12%", 12).value == 0
    with pytest.raises(GraderError, match="'many', which is not a number"):
        numeric("4", "many")


# Together

values = st.floats(0, 1)
weights = st.floats(0.01, 100)


def subscores(values_: list[float], weights_: list[float]) -> list[Subscore]:
    return [
        Subscore(f"part {number}", value, weight)
        for number, (value, weight) in enumerate(zip(values_, weights_, strict=True))
    ]


@st.composite
def parts(draw: st.DrawFn, penalties: bool = False) -> list[Subscore]:
    count = draw(st.integers(1, 5))
    given_ = subscores([draw(values) for _ in range(count)], [draw(weights) for _ in range(count)])
    if penalties:
        given_ += [Subscore("penalty", draw(values), -draw(weights)) for _ in range(draw(st.integers(0, 2)))]
    return given_


@unhurried
@given(parts(penalties=True))
def test_a_reward_of_parts_between_0_and_1_lies_there_too(given_: list[Subscore]) -> None:
    score = combine(*given_)

    assert 0.0 <= score.reward <= 1.0 + 1e-9
    assert sum(each.weight for each in score.subscores if each.weight > 0) == pytest.approx(1.0)


@unhurried
@given(parts(penalties=True), st.floats(0.1, 10))
def test_only_the_ratio_of_weights_matters(given_: list[Subscore], factor: float) -> None:
    scaled = [Subscore(each.name, each.value, each.weight * factor) for each in given_]

    assert combine(*scaled).reward == pytest.approx(combine(*given_).reward, abs=1e-9)


@unhurried
@given(parts(penalties=True), st.integers(0, 4), st.floats(0, 1))
def test_a_better_part_never_lowers_a_reward_and_a_worse_penalty_never_raises_it(
    given_: list[Subscore], which: int, higher: float
) -> None:
    changed = given_[which % len(given_)]
    raised = Subscore(changed.name, max(changed.value, higher), changed.weight)
    after = combine(*(raised if each is changed else each for each in given_)).reward
    before = combine(*given_).reward

    assert after >= before - 1e-9 if changed.weight > 0 else after <= before + 1e-9


@unhurried
@given(parts())
def test_all_of_is_at_most_the_mean_and_any_of_at_least(given_: list[Subscore]) -> None:
    mean = combine(*given_).reward

    assert all_of(*given_).value - 1e-9 <= mean <= any_of(*given_).value + 1e-9


@unhurried
@given(parts())
def test_a_branch_counts_like_the_reward_of_its_parts(given_: list[Subscore]) -> None:
    branch = part("branch", *given_)

    assert branch.value == combine(*given_).reward
    assert combine(branch).reward == pytest.approx(branch.value)
    assert grade_of(branch, "x").score.subscores == branch.parts


def test_parts_are_kept_by_names_that_differ_and_penalties_take_away() -> None:
    score = combine(exact("a", "a"), exact("a", "b"), Subscore("too long", 1.0, -0.5))

    assert score.reward == 0.25
    assert score.metrics == {"exact": 1.0, "exact_2": 0.0, "too long": 1.0}
    assert [each.weight for each in score.subscores] == [0.5, 0.5, -0.25]


async def later() -> Subscore:
    return Subscore("later", 1.0)


def test_what_cannot_be_combined_is_a_grader_error() -> None:
    with pytest.raises(GraderError, match="nothing to combine"):
        combine()
    with pytest.raises(GraderError, match="no part has a positive weight"):
        combine(Subscore("a", 1.0, -1.0))
    with pytest.raises(GraderError, match=r"1\.0 is not the result of a grader"):
        combine(1.0)  # type: ignore[arg-type]
    with pytest.raises(GraderError, match="finite number"):
        combine(Subscore("a", float("nan")))
    waiting = later()
    with pytest.raises(GraderError, match="await it first"):
        combine(waiting)  # type: ignore[arg-type]
    waiting.close()


# Commands


def ran(command: Any, folder: Path, **settings: Any) -> Subscore:
    return asyncio.run(shell(command, cwd=folder, **settings))


def test_a_command_passes_by_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("pear")

    assert ran("grep pear answer.txt", tmp_path) == Subscore("shell", 1.0, note="exit code 0\npear")
    assert ran("echo no >&2; exit 3", tmp_path, weight=2) == Subscore("shell", 0.0, 2.0, "exit code 3\nno")
    assert ran(["grep", "pear", "answer.txt"], tmp_path).value == 1


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    before = time.monotonic()

    late = ran("echo begun; sleep 300 & echo $! > child; wait", tmp_path, timeout_seconds=2.0)

    assert time.monotonic() - before < 30
    assert (late.value, late.note) == (0.0, "ended after 2 s\nbegun")
    assert is_gone(int((tmp_path / "child").read_text()))


def test_a_child_left_behind_neither_holds_up_the_grader_nor_lives_on(tmp_path: Path) -> None:
    before = time.monotonic()

    done = ran("sleep 300 & echo $! > child", tmp_path)

    assert done.value == 1
    assert time.monotonic() - before < 30
    assert is_gone(int((tmp_path / "child").read_text()))


def test_a_command_sees_no_keys_and_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1")
    monkeypatch.setenv("MY_TOKEN", "secret-2")

    note = ran("env; cat", tmp_path, env={"GIVEN": "yes"}).note

    assert "secret" not in note
    assert "GIVEN=yes" in note
    assert "PATH=" in note


def test_only_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    note = ran("seq 1 200000", tmp_path).note

    assert note.endswith("200000")
    assert len(note) < 5000


@pytest.mark.parametrize("command", ["no-such-command-here", ["no-such-command-here"]])
def test_a_program_that_the_machine_lacks_is_a_grader_error_and_no_zero(tmp_path: Path, command: Any) -> None:
    with pytest.raises(GraderError, match=r"cannot be run|this machine has no program"):
        ran(command, tmp_path)


@pytest.mark.parametrize("command", ["./notes.txt", "./removed.sh", "exit 127", "cd . && sh -c 'exit 126'"])
def test_an_answer_that_ends_like_a_missing_program_is_scored(tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.txt").write_text("text")

    assert ran(command, tmp_path).value == 0.0


def test_a_cancelled_grader_leaves_no_process(tmp_path: Path) -> None:
    async def cancelled() -> None:
        grading = asyncio.create_task(shell("echo $$ > pid; exec sleep 300", cwd=tmp_path))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
        grading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await grading

    asyncio.run(asyncio.wait_for(cancelled(), SECONDS))

    assert is_gone(int((tmp_path / "pid").read_text()))


def is_gone(process: int) -> bool:
    """Whether a process ends within a moment: a signal takes its time to arrive."""
    wait_for(lambda: not is_alive(process))
    return True


def is_alive(process: int) -> bool:
    """One that nobody has buried yet is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
