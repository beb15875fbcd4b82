"""The numbers of a report against numbers worked out by hand, and its text at any size."""

from __future__ import annotations

import io
import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from proctor.cli.views.dry_run import write_dry_run
from proctor.cli.views.report import write_report
from proctor.config.prices import Price, find_price
from proctor.errors import Failure
from proctor.evaluation.evaluate import Prepared, Result, prepare
from proctor.report.lines import ErrorLine, RolloutLine, TimingLine, rollout_line
from proctor.report.summary import Summary
from proctor.report.tally import Tally
from proctor.rollout import LARGEST_SCORE, Outcome, Rollout, Score, Span, Timing
from proctor.run import Run
from proctor.store.folder import RunFolder, read_line
from proctor.store.rows import encode_row
from proctor.task import Task
from proctor.trace import Trace, Usage

BUSY = ErrorLine("OverloadedError", "busy")


def line(
    task: int | str, rollout: int, reward: float | None = None, outcome: Outcome = "scored", **more: Any
) -> RolloutLine:
    return RolloutLine(example_id=task, rollout=rollout, outcome=outcome, reward=reward, **more)


MIXED = [
    line("a", 0, 1.0),
    line("a", 1, 1.0),
    line("a", 2, 0.0, "truncated"),
    line("a", 3, None, "model_error", error=BUSY),
    line("b", 0, 0.0),
    line("b", 1, 0.5),
    line("b", 2, None, "excluded", error=ErrorLine("ExcludedError", "unfair")),
    line("b", 3, None, "grader_error", error=ErrorLine("GraderError", "no idea")),
    *(line("c", number, None, "model_error", error=BUSY) for number in range(4)),
]
"""Three tasks with four rollouts each, of which five were scored."""


def tallied(lines: Iterable[RolloutLine], **settings: Any) -> Tally:
    tally = Tally(**settings)
    for each in lines:
        tally.add(each)
    return tally


def summed(
    lines: Iterable[RolloutLine], planned: int | None = 12, rollouts: int = 4, **settings: Any
) -> Summary:
    return tallied(lines).summary(planned=planned, rollouts_per_task=rollouts, **settings)


# Numbers


def test_only_scored_rollouts_are_in_the_mean_and_every_task_weighs_the_same() -> None:
    summary = summed(MIXED)

    assert summary.reward.mean == pytest.approx((2 / 3 + 1 / 4) / 2)
    assert summary.reward.se == pytest.approx((2 / 3 - 1 / 4) / 2)
    assert summary.reward.n == summary.tasks == 2


def test_every_rollout_has_one_outcome_and_coverage_leaves_out_only_the_excluded() -> None:
    summary = summed(MIXED)

    assert summary.outcomes == {
        "model_error": 5,
        "scored": 4,
        "truncated": 1,
        "excluded": 1,
        "grader_error": 1,
    }
    assert (summary.planned, summary.finished, summary.scored) == (12, 12, 5)
    assert summary.coverage == pytest.approx(5 / 11)


def test_an_agent_that_ran_out_of_time_counts_with_the_score_it_has_and_not_without_one() -> None:
    lines = [line("a", 0, 1.0), line("b", 0, 0.5, "timeout"), line("c", 0, None, "timeout", error=BUSY)]
    summary = summed(lines, planned=3, rollouts=1)

    assert (summary.scored, summary.timed_out, summary.outcomes["timeout"]) == (2, 1, 2)
    assert summary.coverage == pytest.approx(2 / 3)
    assert summary.reward.mean == 0.75
    assert [group.count for group in summary.errors] == [1]
    assert [each.is_settled for each in lines] == [True, True, False]


def test_the_bounds_fill_in_what_is_missing_with_the_worst_and_with_the_best() -> None:
    bounds = summed(MIXED).bounds
    assert bounds is not None
    assert bounds.low == pytest.approx(2.5 / 11)
    assert bounds.high == pytest.approx(8.5 / 11)

    wide = summed([line(0, 0, -3.0), line(1, 0, 5.0)], planned=4, rollouts=1).bounds
    assert wide is not None
    assert wide.low == pytest.approx(-4 / 4)
    assert wide.high == pytest.approx(12 / 4)


def test_there_are_no_bounds_when_nothing_is_missing_or_nothing_is_known() -> None:
    assert summed([line(0, 0, 1.0)], planned=1).bounds is None
    assert summed([line(0, 0, None, "timeout")], planned=1).bounds is None
    assert summed([line(0, 0, 1.0), line(1, 0, None, "excluded")], planned=2).bounds is None


def test_rollouts_that_were_never_played_are_missing_too() -> None:
    summary = summed([line(0, 0, 1.0)], planned=4, rollouts=1)

    assert summary.coverage == 0.25
    assert summary.bounds is not None
    assert summary.bounds.low == 0.25


def test_without_a_known_plan_there_is_no_coverage() -> None:
    assert summed(MIXED, planned=None).coverage is None
    assert summed([], planned=0).coverage == 1.0
    assert summed([line(0, 0, None, "excluded")], planned=1).coverage == 1.0


def test_pass_at_k_takes_every_task_with_at_least_k_scored_rollouts() -> None:
    summary = summed(MIXED)

    assert summary.pass_threshold == 0.5
    assert summary.pass_at_k == {"1": pytest.approx((2 / 3 + 1 / 2) / 2), "2": pytest.approx(1.0)}
    assert summary.pass_hat_k == {"1": pytest.approx((2 / 3 + 1 / 2) / 2), "2": pytest.approx(1 / 6)}


def test_pass_at_k_goes_by_powers_of_two_up_to_the_number_of_rollouts() -> None:
    lines = [line(0, number, float(number < 2)) for number in range(6)]

    summary = summed(lines, planned=6, rollouts=6)

    assert list(summary.pass_at_k) == ["1", "2", "4", "6"]
    assert summary.pass_at_k["2"] == pytest.approx(1 - math.comb(4, 2) / math.comb(6, 2))
    assert summary.pass_hat_k["2"] == pytest.approx(1 / math.comb(6, 2))
    assert summed([line(0, 0, 1.0)], planned=1, rollouts=1).pass_at_k == {}


def test_the_environment_says_what_passes() -> None:
    lines = [line(0, 0, 0.8), line(0, 1, 0.9)]

    summary = tallied(lines, pass_threshold=0.9).summary(planned=2, rollouts_per_task=2)

    assert summary.pass_at_k == {"1": 0.5, "2": 1.0}
    assert summary.pass_threshold == 0.9


def test_a_metric_that_some_rollouts_lack_is_averaged_over_those_that_have_it() -> None:
    summary = summed(
        [
            line(0, 0, 1.0, metrics={"length": 10.0, "style": 1.0}),
            line(0, 1, 1.0, metrics={"length": 20.0}),
            line(1, 0, 1.0, metrics={"length": 30.0}),
            line(1, 1, None, "timeout", metrics={"length": 1e9}),
        ]
    )

    assert {name: estimate.mean for name, estimate in summary.metrics.items()} == {
        "length": pytest.approx((15 + 30) / 2),
        "style": 1.0,
    }


def test_errors_are_grouped_by_outcome_and_kind_with_one_sample_each() -> None:
    summary = summed(
        [
            line(1, 0, None, "model_error", error=ErrorLine("OverloadedError", "busy " * 100)),
            line(2, 0, None, "model_error", error=ErrorLine("OverloadedError", "still busy")),
            line(3, 0, None, "grader_error", error=ErrorLine("OverloadedError", "the judge is busy")),
            line(4, 2, 1.0, cleanup_error=ErrorLine("RuntimeError", "half \ud83d a smile")),
            line(5, 0, None, "excluded", error=ErrorLine("ExcludedError", "unfair")),
        ]
    )

    assert [(group.outcome, group.kind, group.count) for group in summary.errors] == [
        ("model_error", "OverloadedError", 2),
        ("grader_error", "OverloadedError", 1),
    ]
    assert (summary.errors[0].task, summary.errors[0].rollout) == (1, 0)
    assert len(summary.errors[0].sample) == 300
    (cleanup,) = summary.cleanup_errors
    assert (cleanup.sample, cleanup.task, cleanup.rollout) == ("half ? a smile", 4, 2)
    assert summary.scored == 1, "a failed cleanup leaves the score alone"


def test_tokens_and_seconds_of_all_rollouts_are_counted() -> None:
    lines = [
        line(task, 0, 1.0, token_usage=Usage(10, 5, 2, 1), timing=TimingLine(float(task)), attempts=1 + task)
        for task in range(11)
    ]

    summary = summed(lines)

    assert summary.usage == Usage(110, 55, 22, 11)
    assert summary.seconds is not None
    assert (summary.seconds.median, summary.seconds.p90, summary.seconds.longest) == (5.0, 9.0, 10.0)
    assert summary.retried == 10
    assert summed([]).seconds is None


def test_the_cost_is_that_of_the_tokens_at_list_prices() -> None:
    price = find_price("openai/gpt-4.1-mini-20250414")
    assert price is not None
    lines = [line(0, 0, 1.0, token_usage=Usage(1_000_000, 500_000, 200_000))]

    summary = summed(lines, model="gpt-4.1-mini", prices={"gpt-4.1-mini": price})

    assert summary.cost_usd == pytest.approx(0.8 * 0.4 + 0.2 * 0.1 + 0.5 * 1.6)
    assert summary.unpriced_models == ()


def test_judges_cost_too_and_those_without_a_price_are_named() -> None:
    lines = [
        line(0, 0, 1.0, token_usage=Usage(1_000_000), other_usage={"judge": Usage(0, 1_000_000)}),
        line(1, 0, 1.0, other_usage={"judge": Usage(0, 1_000_000), "m": Usage(1_000_000), "odd": Usage(1)}),
    ]

    summary = summed(lines, model="m", prices={"m": Price(1.0, 2.0), "judge": Price(0.0, 3.0)})

    assert summary.cost_usd == pytest.approx(2 * 1.0 + 2 * 3.0)
    assert summary.unpriced_models == ("odd",)
    assert summed(lines, model="m", prices={"judge": Price(0.0, 3.0)}).cost_usd is None


def test_a_run_that_never_came_to_a_rollout_misses_no_price() -> None:
    assert summed([], model="m").unpriced_models == ()
    assert summed([line(0, 0, 1.0, token_usage=Usage(1))], model="m").unpriced_models == ("m",)


def test_the_order_in_which_rollouts_finish_changes_nothing() -> None:
    keys = [(task, number) for task in range(30) for number in (0, 1)]
    lines = [line(task, number, float((task * 7 + number) % 3 == 0)) for task, number in keys]

    forward, backward = summed(lines, planned=60), summed(reversed(lines), planned=60)

    assert forward.reward == backward.reward
    assert forward.pass_at_k == backward.pass_at_k


def test_a_rollout_counts_the_same_live_and_read_back() -> None:
    for rollout in (played(0), played("b", failure=Failure("DeadlineError", "slow", "generation"))):
        read = read_line(encode_row(rollout))
        assert read is not None
        for name in ("key", "outcome", "reward", "metrics", "token_usage", "stop_condition", "attempts"):
            assert getattr(read, name) == getattr(rollout_line(rollout), name)
        assert read.timing.total == pytest.approx(rollout_line(rollout).timing.total)


def test_the_running_mean_claims_no_interval_before_five_tasks() -> None:
    few = tallied([line(task, 0, float(task % 2)) for task in range(4)]).running()
    many = tallied([line(task, 0, float(task % 2)) for task in range(6)]).running()

    assert (few.mean, few.interval) == (0.5, None)
    assert many.interval is not None
    assert 0.0 <= many.interval.low < 0.5 < many.interval.high <= 1.0
    assert Tally().running().mean is None


def test_the_worst_the_odd_and_the_best_are_worth_a_look() -> None:
    tally = tallied(
        [
            line(0, 0, 0.5, token_usage=Usage(1, 900)),
            line(1, 0, 0.0),
            line(2, 0, None, "timeout", error=BUSY),
            line(3, 0, 1.0),
            line(4, 0, None, "timeout", error=BUSY),
            line(5, 0, None, "grader_error", error=BUSY),
        ]
    )

    assert list(tally.notable.keys().items()) == [
        ((1, 0), "worst"),
        ((2, 0), "timeout"),
        ((5, 0), "grader error"),
        ((0, 0), "longest answer"),
    ]


# The text


def played(
    task: int | str = 0,
    number: int = 0,
    reward: float = 1.0,
    *,
    said: Any = "an answer",
    prompt: Any = None,
    failure: Failure | None = None,
    stop: str = "max_turns_reached",
    metrics: dict[str, float] | None = None,
) -> Rollout:
    prompt = [{"role": "user", "content": f"question {task}"}] if prompt is None else prompt
    answered = [{"role": "assistant", "content": said}]
    return Rollout(
        task=Task(id=task, prompt=tuple(prompt), answer="the right one"),
        number=number,
        outcome="scored" if failure is None else "model_error",
        trace=Trace(prompt=list(prompt), completion=answered, stop_condition=stop),
        timing=Timing(Span(0.0, 0.1), Span(0.1, 0.9), Span(0.9, 1.0), 1.0),
        score=None if failure else Score(reward, {"right": reward} if metrics is None else metrics),
        failure=failure,
    )


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    monkeypatch.chdir(tmp_path)
    return prepare({"env_id": "echo", "model": "scripted", "env_args": {"tasks": 7}}, {})


@pytest.fixture
def report(tmp_path: Path, prepared: Prepared) -> Callable[..., str]:
    """The report of these rollouts, and of that many more that went like the first."""

    def report(*rollouts: Rollout, more: int = 0, examples: bool = True, width: int = 100) -> str:
        tally = Tally()
        folder = RunFolder(tmp_path / "run")
        folder.append([encode_row(rollout) for rollout in rollouts])
        folder.close()
        for rollout in rollouts:
            tally.add(rollout_line(rollout))
        for number in range(more):
            tally.add(line(f"task {number}", 0, float(number % 2), timing=TimingLine(number / 1000)))
        count = len(rollouts) + more
        result = Result(
            run=Run(
                id="1a2b", env_id="echo", model="scripted", status="finished", started_at=0.0, ended_at=9.0
            ),
            summary=tally.summary(planned=count, rollouts_per_task=1, model="scripted"),
            folder=tmp_path / "run",
            notable=tally.notable.keys(),
        )
        text = io.StringIO()
        write_report(Console(file=text, width=width, highlight=False), result, prepared, examples=examples)
        return text.getvalue()

    return report


@pytest.mark.parametrize(("count", "most_lines"), [(1, 45), (5, 65), (100_000, 65)])
def test_a_report_is_readable_at_any_size(report: Callable[..., str], count: int, most_lines: int) -> None:
    long = "word " * 2_000 + "\nline" * 500
    first = [
        played(0, reward=0.0, said=long),
        played(1, failure=Failure("OverloadedError", "x" * 5_000)),
        played(2, reward=1.0),
    ]
    rollouts = first[: min(count, 3)]

    text = report(*rollouts, more=count - len(rollouts))

    lines = text.splitlines()
    assert len(lines) <= most_lines
    assert max(map(len, lines)) <= 100
    assert f"of {count:,} rollouts scored" in text
    if count > 1:
        assert re.search(r"reward +0\.\d{3} +95% interval 0\.\d{3} – \d\.\d{3} \(.* over [\d,]+ tasks", text)
        assert "1 × model_error" in text


def test_many_metrics_and_many_kinds_of_error_are_cut_and_counted(report: Callable[..., str]) -> None:
    failures = [played(task, failure=Failure(f"Strange{task}Error", "odd")) for task in range(60)]
    measured = played("m", metrics={f"metric {number}": 1.0 for number in range(80)})

    text = report(measured, *failures)

    assert "and 50 more in metadata.json" in text
    assert "and 52 more kinds in metadata.json" in text
    assert len(text.splitlines()) < 100


def test_without_examples_no_answer_is_shown(report: Callable[..., str]) -> None:
    assert "an answer" in report(played())
    assert "an answer" not in report(played(), examples=False)


def test_a_report_says_what_it_cannot_know(report: Callable[..., str]) -> None:
    alone = report(played())
    assert "no interval (one task)" in alone

    nothing = report(played(failure=Failure("OverloadedError", "busy")))
    assert "nothing was scored" in nothing
    assert "0 of 1 rollouts scored (0.0%)" in nothing


EVIL = "\x1b[31mred\x1b[0m \x1b]0;owned\x07 [bold red]not bold[/bold red] \r\x08\x9b2J\x85 back\\slash[/]"


def test_nothing_that_a_model_or_an_environment_says_is_obeyed(report: Callable[..., str]) -> None:
    text = report(
        played(
            EVIL,
            said=EVIL,
            prompt=[{"role": EVIL, "content": [{"type": "text", "text": EVIL}]}],
            stop=EVIL,
            metrics={EVIL: 1.0},
        ),
        played(EVIL, 1, failure=Failure("EvilError", EVIL)),
    )

    controls = {character for character in text if unicodedata.category(character) == "Cc"} - {"\n"}
    assert controls == set()
    assert text.count("[bold red]not bold[/bold red]") >= 7


@pytest.mark.parametrize(
    "prompt",
    [
        [{"content": "no role"}],
        ["no message at all"],
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            }
        ],
        [{"role": "assistant", "content": "x", "tool_calls": ["odd"]}],
        [{"role": "user", "content": {"not": "a list"}}],
        [{"role": "user", "content": ["plain", {"type": "image_url"}]}],
    ],
    ids=["no role", "text", "openai calls", "odd calls", "object", "parts"],
)
def test_odd_messages_do_not_spoil_the_report(report: Callable[..., str], prompt: Any) -> None:
    text = report(played(prompt=prompt))

    assert "an answer" in text


def test_a_plan_shows_every_setting_and_where_it_came_from(prepared: Prepared) -> None:
    text = io.StringIO()

    write_dry_run(Console(file=text, width=100, highlight=False), prepared, 15)

    for name in ("env_id", "max_retries", "min_coverage", "state_columns"):
        assert re.search(rf"^  {name} +.*\((flag|built-in default)\)", text.getvalue(), re.MULTILINE), name
    assert "{'tasks': 7}" in text.getvalue()


# Numbers that no honest grader gives


@pytest.mark.parametrize("reward", [1e308, -1e308, 1.1e100, 1.7976931348623157e308])
def test_a_file_with_rewards_beyond_all_bounds_is_still_reported(reward: float) -> None:
    tally = Tally()
    for number in range(4):
        tally.add(line("a", number, reward))
        tally.add(line("b", number, 1.0, metrics={"size": reward if number == 0 else 1.0}))
    summary = tally.summary(planned=8, rollouts_per_task=4)
    assert (summary.scored, summary.outcomes["grader_error"]) == (3, 5)
    assert summary.reward.mean == 1.0
    assert "a score is a finite number" in summary.errors[0].sample
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_rewards_as_large_as_they_may_be_have_a_mean_and_an_interval() -> None:
    tally = Tally()
    for task in range(12):
        for number in range(4):
            sign = -1.0 if (task + number) % 3 else 1.0
            tally.add(line(task, number, sign * LARGEST_SCORE, metrics={"m": sign * LARGEST_SCORE}))
    for estimate in (tally.running(), tally.summary(planned=60, rollouts_per_task=4).reward):
        assert estimate.interval is not None
        assert all(map(math.isfinite, (estimate.mean or 0.0, estimate.interval.low, estimate.interval.high)))
    summary = tally.summary(planned=60, rollouts_per_task=4)
    assert summary.bounds is not None
    assert math.isfinite(summary.bounds.high)
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_more_tokens_and_seconds_than_there_can_be_leave_a_report_that_can_be_written() -> None:
    tally = Tally()
    huge = Usage(10**30, 2**63, 0, -5)
    for number in range(3):
        timing = TimingLine(total=1e308)
        tally.add(line("a", number, 1.0, token_usage=huge, other_usage={"judge": huge}, timing=timing))
    summary = tally.summary(planned=3, rollouts_per_task=3)
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary).usage == summary.usage


# Several environments as one


def member_line(env: Any, task: int, reward: float | None, **more: Any) -> RolloutLine:
    outcome: Any = "scored" if reward is not None else "model_error"
    return RolloutLine(task, 0, outcome, reward=reward, env=env, **more)


def test_each_member_of_a_group_has_a_summary_of_its_own() -> None:
    tally = Tally()
    for task, (env, reward) in enumerate([("hard", 0.0), ("easy", 1.0), ("easy", 1.0), ("hard", None)]):
        tally.add(member_line(env, task, reward, metrics={} if reward is None else {"steps": float(task)}))

    summary = tally.summary(planned=4, rollouts_per_task=1)

    assert {name: member.reward.mean for name, member in summary.members.items()} == {
        "easy": 1.0,
        "hard": 0.0,
    }
    assert {name: member.coverage for name, member in summary.members.items()} == {"easy": 1.0, "hard": 0.5}
    assert summary.members["easy"].metrics["steps"].mean == 1.5
    assert (summary.reward.n, summary.coverage) == (3, 0.75)


def test_a_file_of_others_may_have_anything_in_the_column_of_members() -> None:
    raw = b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": 1.0, "env": {"a": 1}}'
    tally = Tally()
    tally.add(msgspec.json.decode(raw, type=RolloutLine))
    for number in range(1000):
        tally.add(member_line(f"member {number}", number, 1.0))
    summary = tally.summary(planned=None, rollouts_per_task=1)
    assert (summary.finished, len(summary.members)) == (1001, 200)


def test_failed_attempts_count_against_the_pass_rate_and_skipped_ones_for_nothing() -> None:
    lines = [
        line(0, 0, 1.0),
        line(1, 0, 0.5),
        line(2, 0, None, "agent_error"),
        line(3, 0, None, "timeout"),
        line(4, 0, None, "grader_error"),
        line(5, 0, None, "grader_error"),
        line(6, 0, None, "excluded"),
    ]

    scores = tallied(lines, pass_threshold=1.0).summary(planned=7, rollouts_per_task=1).scores

    assert (scores.attempts, scores.graded, scores.passed, scores.failed, scores.skipped) == (6, 2, 1, 4, 1)
    assert scores.pass_rate == pytest.approx(1 / 6)
    assert scores.reward_over_graded == 0.75
    assert scores.reward_over_all == 0.25


def test_without_attempts_there_are_no_rates() -> None:
    scores = summed([line(0, 0, None, "excluded")], planned=1, rollouts=1).scores

    assert (scores.pass_rate, scores.reward_over_graded, scores.reward_over_all) == (None, None, None)
