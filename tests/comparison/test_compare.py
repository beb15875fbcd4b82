"""What a comparison says of two runs: reference values, pairing, verdicts, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import pytest

from proctor.comparison.compare import Comparison, compare_all, compare_runs, fewest_tasks
from proctor.comparison.design import DesignGoal, design_evaluation, measure_cost
from proctor.comparison.measure import ComparisonOptions
from proctor.comparison.scores import RunScores, ScoreLine, ScoresBuilder, TaskScores

# 100 tasks: 40 solved by both, 15 by the candidate only, 5 by the baseline only, 40 by neither.
CANDIDATE = [1.0] * 40 + [1.0] * 15 + [0.0] * 5 + [0.0] * 40
BASELINE = [1.0] * 40 + [0.0] * 15 + [1.0] * 5 + [0.0] * 40


def run_of(name: str, tasks: Sequence[Sequence[float]], missing: int = 0, **fields: object) -> RunScores:
    scores = [
        TaskScores(id=number, hash=f"h{number}", rollouts=tuple(range(len(rewards))), rewards=tuple(rewards))
        for number, rewards in enumerate(tasks)
    ]
    planned = sum(map(len, tasks)) + missing
    return msgspec.structs.replace(RunScores(run=name, planned=planned, tasks=scores), **fields)


def single(name: str, rewards: Sequence[float], **fields: object) -> RunScores:
    return run_of(name, [[reward] for reward in rewards], **fields)  # type: ignore[arg-type]


def compared(
    baseline: Sequence[Sequence[float]], candidate: Sequence[Sequence[float]], **options: object
) -> Comparison:
    asked = msgspec.structs.replace(ComparisonOptions(), **options)
    return compare_runs([run_of("a", baseline)], [run_of("b", candidate)], asked)


# --- numbers


def test_the_reference_comparison_is_reproduced() -> None:
    reward = compare_runs([single("a", BASELINE)], [single("b", CANDIDATE)]).reward

    assert reward.difference == pytest.approx(0.10)
    assert reward.se == pytest.approx(0.0438086, abs=5e-8)
    assert reward.correlation == pytest.approx(0.616162, abs=5e-7)
    assert reward.test == "mcnemar"
    assert reward.p == pytest.approx(0.0413895, abs=5e-8)
    assert (reward.wins, reward.ties, reward.losses) == (15, 80, 5)


def test_the_interval_of_single_0_1_results_is_that_of_bonett_and_price() -> None:
    interval = compare_runs([single("a", BASELINE)], [single("b", CANDIDATE)]).reward.interval

    assert interval is not None
    assert interval.kind == "bonett-price"
    # (16 - 6) / 102 ± 1.96 · sqrt((22 / 102 - (10 / 102)²) / 102)
    assert (interval.low, interval.high) == pytest.approx((0.009943, 0.186135), abs=5e-6)


def test_swapping_the_sides_turns_every_sign() -> None:
    random = Random(3)
    one = [[random.random() for _ in range(3)] for _ in range(20)]
    two = [[random.random() for _ in range(3)] for _ in range(20)]

    forth, back = compared(one, two).reward, compared(two, one).reward

    assert forth.difference == pytest.approx(-(back.difference or 0))
    assert (forth.wins, forth.losses) == (back.losses, back.wins)
    assert forth.p == back.p
    assert forth.smallest_detectable == pytest.approx(back.smallest_detectable)


def test_tasks_of_two_environments_that_share_only_their_numbers_give_no_verdict() -> None:
    def run(name: str, environment: str, content: str, rewards: Sequence[float]) -> RunScores:
        tasks = [
            TaskScores(id=n, hash=content and f"{content}{n}", rollouts=(0,), rewards=(r,))
            for n, r in enumerate(rewards)
        ]
        return RunScores(run=name, environment=environment, planned=100, tasks=tasks)

    def verdict(one: RunScores, two: RunScores) -> str:
        return compare_runs([one], [two]).text

    sums = run("a", "sums", "x", BASELINE)
    expected = "too little data: sums and letters have no task in common; only the ids of their tasks agree"
    assert verdict(sums, run("b", "letters", "y", CANDIDATE)) == expected
    assert verdict(sums, run("b", "letters", "x", CANDIDATE)).startswith("better")
    assert verdict(sums, run("b", "letters", "", CANDIDATE)).startswith("better")
    assert verdict(sums, run("b", "ada/sums@0.2.0", "y", CANDIDATE)).startswith("better")


def test_rewards_from_0_to_1_differ_by_at_most_1() -> None:
    interval = compared([[0.0, 0.0]] * 11 + [[1.0, 1.0]], [[1.0, 1.0]] * 12).reward.interval

    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.733, 1.0), abs=5e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"margin": float("nan")},
        {"margin": float("inf")},
        {"margin": 0.0},
        {"level": float("nan")},
        {"level": 1.0},
        {"min_coverage": float("nan")},
        {"min_coverage": 1.5},
    ],
    ids=str,
)
def test_options_that_would_decide_nothing_are_refused(options: dict[str, float]) -> None:
    (name,) = options

    with pytest.raises(ValueError, match=f"{name} (lies between|is a positive difference)"):
        ComparisonOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("zero_one", [True, False])
def test_what_a_comparison_could_see_is_what_a_plan_for_it_promises(zero_one: bool) -> None:
    random = Random(5)
    one, two = (
        [[float(random.random() < 0.5) if zero_one else random.random() for _ in range(2)] for _ in range(12)]
        for _ in range(2)
    )
    baseline, candidate = [run_of("a", one)], [run_of("b", two)]

    goal = DesignGoal(kind="rollouts", amount=24, rollouts=(2,))
    plan = design_evaluation(baseline, candidate, measure_cost([]), goal)

    reward = compare_runs(baseline, candidate).reward
    assert reward.smallest_detectable == pytest.approx(plan.rows[0].smallest_difference)


def test_the_rewards_of_a_side_are_those_of_its_report() -> None:
    from proctor.stats.mean import headline_estimate

    tasks = [[0.2, 0.4], [1.0], [0.5, 0.1]] * 4
    comparison = compared(tasks, tasks)

    assert comparison.baseline.reward == headline_estimate(tasks)


# --- verdicts


def test_a_clear_gain_is_better_and_a_clear_loss_worse() -> None:
    low, high = [[0.1, 0.2]] * 5 + [[0.0, 0.1]] * 5, [[0.8, 0.9]] * 5 + [[0.6, 0.9]] * 5

    assert compared(low, high).verdict == "better"
    assert compared(high, low).verdict == "worse"
    assert compared(low, high).text.startswith("better: +0.7")


def test_no_difference_shown_says_what_would_have_been_missed() -> None:
    random = Random(1)
    coin = [[[float(random.random() < 0.5)] for _ in range(50)] for _ in range(2)]
    comparison = compared(*coin)

    assert comparison.verdict == "no_difference_shown"
    assert "it would often have missed one below 0." in comparison.text


def test_below_the_minimum_coverage_there_is_no_verdict() -> None:
    bad, good = [[0.0]] * 50, [[1.0]] * 50
    comparison = compare_runs([run_of("a", bad)], [run_of("b", good, missing=10)])

    assert comparison.verdict == "too_little_data"
    assert comparison.text == "too little data: b scored 83.3% of its rollouts, and a verdict takes 100.0%"
    lenient = ComparisonOptions(min_coverage=0.8)
    assert compare_runs([run_of("a", bad)], [run_of("b", good, missing=10)], lenient).verdict == "better"


def test_tasks_too_few_to_prove_anything_give_no_verdict() -> None:
    assert fewest_tasks(0.05) == 6
    assert compared([[0.0]] * 5, [[1.0]] * 5).verdict == "too_little_data"
    assert compared([[0.0]] * 6, [[1.0]] * 6).verdict == "better"
    assert (
        compared([], []).text == "too little data: 0 tasks scored by both sides; a verdict takes at least 6"
    )


def test_no_difference_shown_never_passes_for_equivalence() -> None:
    few = compared([[0.0], [1.0]] * 10, [[1.0], [0.0]] * 10, margin=0.05)
    many = compared([[0.0], [1.0]] * 2000, [[0.0], [1.0]] * 2000, margin=0.05)

    assert few.verdict == many.verdict == "no_difference_shown"
    assert few.equivalence is not None
    assert many.equivalence is not None
    assert (few.equivalence.verdict, many.equivalence.verdict) == ("not_shown", "equivalent")


def test_a_gain_is_no_worse_and_a_drop_beyond_the_margin_is_worse() -> None:
    random = Random(2)
    base = [[random.gauss(0.5, 0.05) for _ in range(4)] for _ in range(60)]
    up, down = ([[value + step for value in task] for task in base] for step in (0.1, -0.1))

    for other, verdict in ((up, "no_worse"), (down, "worse"), (base[::-1], "equivalent")):
        noisy = [[value + random.gauss(0, 0.01) for value in task] for task in other]
        equivalence = compared(base, noisy, margin=0.05).equivalence
        assert equivalence is not None
        assert equivalence.verdict == verdict


def test_several_candidates_are_adjusted_for_each_other() -> None:
    base, close = single("a", BASELINE), single("b", CANDIDATE)
    alone = compare_runs([base], [close])
    among = compare_all([([base], [close])] * 3)

    assert alone.verdict == "better"
    assert {each.verdict for each in among} == {"no_difference_shown"}
    assert among[0].reward.p_adjusted == pytest.approx(3 * (alone.reward.p or 0))
    assert "adjusted for 3 tests" in among[0].text


def test_metrics_are_higher_or_lower_and_adjusted_among_themselves() -> None:
    def with_metrics(name: str, step: float) -> RunScores:
        tasks = [
            TaskScores(
                id=number,
                rollouts=(0,),
                rewards=(0.5,),
                metrics={"turns": (number + step,), "speed": (number - step,)},
            )
            for number in range(10)
        ]
        return RunScores(run=name, planned=10, tasks=tasks)

    comparison = compare_runs([with_metrics("a", 0)], [with_metrics("b", 2)])

    verdicts = {metric.name: metric.verdict for metric in comparison.metrics}
    assert verdicts == {"turns": "higher", "speed": "lower"}
    assert comparison.metrics[0].p_adjusted == pytest.approx(2 * (comparison.metrics[0].p or 0))
    assert comparison.verdict == "no_difference_shown"


# --- pairing


def test_tasks_are_paired_by_content_then_by_id_and_the_rest_is_named() -> None:
    def run_with(name: str, tasks: Sequence[tuple[int, str]]) -> RunScores:
        scores = [TaskScores(id=key, hash=content, rollouts=(0,), rewards=(1.0,)) for key, content in tasks]
        return RunScores(run=name, planned=len(scores), tasks=scores)

    baseline = run_with("a", [(0, "x"), (1, "y"), (2, "z"), (9, "gone")])
    candidate = run_with("b", [(5, "x"), (1, "y"), (2, "changed"), (7, "new"), (8, "newer")])
    pairing = compare_runs([baseline], [candidate]).pairing

    assert (pairing.paired, pairing.paired_by_id) == (3, 1)
    assert pairing.only_baseline.named == (9,)
    assert (pairing.only_candidate.count, pairing.only_candidate.named) == (2, (7, 8))


def test_two_tasks_of_equal_content_are_paired_one_to_one() -> None:
    tasks = [TaskScores(id=key, hash="same", rollouts=(0,), rewards=(1.0,)) for key in range(3)]
    one = RunScores(run="a", planned=3, tasks=tasks)
    two = RunScores(run="b", planned=3, tasks=tasks[::-1])

    comparison = compare_runs([one], [two])

    assert (comparison.pairing.paired, comparison.pairing.only_candidate.count) == (3, 0)


def test_a_task_that_one_side_failed_to_score_is_named() -> None:
    good = run_of("a", [[1.0]] * 3)
    failed = msgspec.structs.replace(good, run="b", tasks=[*good.tasks[:2], TaskScores(id=2, hash="h2")])
    pairing = compare_runs([good], [failed]).pairing

    assert (pairing.paired, pairing.unscored.named) == (2, (2,))


def test_flipped_tasks_come_first_each_with_the_rollouts_that_differ_most() -> None:
    baseline = [[1.0, 1.0], [0.4, 0.1], [0.9, 0.9], [0.2, 0.2]]
    candidate = [[0.0, 0.4], [0.9, 0.2], [0.6, 0.6], [0.2, 0.2]]
    tasks = compared(baseline, candidate).tasks

    assert [(task.task, task.flip) for task in tasks] == [(0, "lost"), (1, "won"), (2, "none")]
    lost, won, _ = tasks
    assert (lost.baseline_rollout.rollout, lost.candidate_rollout.rollout) == (0, 0)
    assert (won.baseline_rollout.rollout, won.candidate_rollout.rollout) == (1, 0)


def test_differing_settings_are_named() -> None:
    one = single("a", [1.0], settings={"temperature": 0.5, "model": "m"})
    two = single("b", [1.0], settings={"temperature": 1.0, "model": "m"})

    (setting,) = compare_runs([one], [two]).settings

    assert (setting.name, setting.baseline, setting.candidate) == ("temperature", (0.5,), (1.0,))


# --- several runs of one recipe


def test_runs_of_one_recipe_are_pooled_and_their_variation_reported() -> None:
    random = Random(4)
    rates = [random.random() for _ in range(200)]

    def sample(name: str, shift: float = 0.0) -> RunScores:
        return run_of(name, [[float(random.random() < rate + shift) for _ in range(4)] for rate in rates])

    alike = compare_runs([sample("a1"), sample("a2"), sample("a3")], [sample("b")]).baseline.variation
    apart = compare_runs([sample("a1"), sample("a2", 0.3)], [sample("b")]).baseline.variation

    assert alike is not None
    assert alike.expected_sd is not None
    assert alike.sd < 2.5 * alike.expected_sd
    assert apart is not None
    assert apart.expected_sd is not None
    assert apart.sd > 5 * apart.expected_sd


def test_pooling_two_runs_gives_the_tasks_the_rollouts_of_both() -> None:
    one, two = run_of("a1", [[1.0], [0.0]]), run_of("a2", [[0.0], [0.0]])
    comparison = compare_runs([one, two], [run_of("b", [[1.0], [1.0]])])

    assert comparison.reward.n == 2
    assert comparison.reward.baseline == 0.25


# --- lines


def test_of_two_lines_of_one_rollout_the_first_settled_one_counts() -> None:
    builder = ScoresBuilder()
    builder.add(ScoreLine(1, 0, "model_error"))
    builder.add(ScoreLine(1, 0, "scored", "h", 0.7, {"length": 3.0}))
    builder.add(ScoreLine(1, 0, "scored", "h", 0.2))
    builder.add(ScoreLine(2, 0, "grader_error", "g"))

    first, second = builder.tasks()

    assert (first.rewards, first.unscored, first.metrics) == ((0.7,), 0, {"length": (3.0,)})
    assert (second.rewards, second.unscored) == ((), 1)


def test_a_comparison_survives_the_way_through_json() -> None:
    comparison = compared([[1.0], [0.0]] * 5, [[0.0], [0.0]] * 5, margin=0.1)

    document = msgspec.json.decode(msgspec.json.encode(comparison))

    assert document["reward"]["interval"]["kind"] == "bonett-price"
    assert msgspec.convert(document, Comparison) == comparison
