"""Find what is wrong with an environment from played rollouts. Pure: rollouts in, findings out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from proctor.checkup.finding import CheckupRewards, Finding
from proctor.checkup.reference_agents import EMPTY, RANDOM, SWAPPED
from proctor.checkup.trial import HelperMissingError, Trial
from proctor.rollout import Rollout
from proctor.task import TaskId

MIN_WIN_SHARE = 0.8
"""A right answer should earn more on at least this share of tasks."""
FAILURE_CODES = {"environment_error": "E301", "grader_error": "E302", "timeout": "E303"}
TIMEOUT_FLAG = re.compile("--(start|scoring)-timeout")

Rewards = Mapping[TaskId, float]


def find_trial_problems(trial: Trial, *, offers_gold: bool, pass_threshold: float) -> Iterator[Finding]:
    yield from find_failures(trial)
    yield from find_disagreements(trial)
    yield from find_endless_asking(trial)
    rewards = collect_rewards(trial)
    right = find_best_oracle(trial, rewards)
    if right is None:
        yield from find_missing_gold(trial)
        return
    if is_constant(rewards) and (offers_gold or is_single_turn(trial, right)):
        yield Finding(
            "E403", f"every agent earned the same on every task: {format_mean_rewards(rewards, right)}"
        )
        return
    yield from find_weak_separation(trial, rewards, right, offers_gold, pass_threshold)


def summarize_rewards(trial: Trial) -> CheckupRewards:
    """The means, with the one oracle that did best."""
    rewards = collect_rewards(trial)
    right = find_best_oracle(trial, rewards)
    shown = {"oracle": rewards[right]} if right else {}
    for name, key in ((EMPTY, EMPTY), (RANDOM, RANDOM), (SWAPPED, swapped_counterpart(right))):
        if rewards.get(key):
            shown[name] = rewards[key]
    return CheckupRewards(
        tasks=len({rollout.task.id for rollout in trial.rollouts}),
        rewards={name: round(fmean(values.values()), 6) for name, values in shown.items() if values},
        gold=find_wrapping(trial, right) if right else "",
    )


# What failed


def find_failures(trial: Trial) -> Iterator[Finding]:
    """Each kind of failure once, with the first rollout it happened in."""
    seen: dict[tuple[str, str, str], list[Rollout]] = {}
    for rollout in trial.rollouts:
        failure = rollout.failure
        if failure is None or lacks_helper(rollout) or rollout.outcome == "excluded":
            continue
        seen.setdefault((rollout.outcome, failure.kind, failure_location(rollout, trial)), []).append(rollout)
    for (outcome, _, _), rollouts in seen.items():
        if not refuses_empty_answers(rollouts, trial):
            yield Finding(FAILURE_CODES.get(outcome, "E305"), describe_failure(rollouts, trial))
    closing = [rollout for rollout in trial.rollouts if rollout.cleanup_failure]
    if closing:
        failure = closing[0].cleanup_failure
        assert failure is not None
        words = f"closing failed in {len(closing)} of {len(trial.rollouts)} rollouts: {failure.message}"
        yield Finding("W312", words)


def refuses_empty_answers(rollouts: Sequence[Rollout], trial: Trial) -> bool:
    """Whether only answers without text were taken for failures of the model, which is sound."""
    return all(
        rollout.outcome == "model_error" and trial.players[rollout.number].name == EMPTY
        for rollout in rollouts
    )


def describe_failure(rollouts: Sequence[Rollout], trial: Trial) -> str:
    first = rollouts[0]
    failure = first.failure
    assert failure is not None
    player = trial.players[first.number].name
    location = failure_location(first, trial)
    at = f" at {location}" if location else ""
    raised = failure.message if failure.kind in failure.message else f"{failure.kind}: {failure.message}"
    if first.outcome == "timeout":  # of all phases: `env check` has one limit for them
        raised = TIMEOUT_FLAG.sub("--timeout", raised)
    return (
        f"{first.outcome} in {len(rollouts)} of {len(trial.rollouts)} rollouts, first with agent {player} on "
        f"task {first.task.id!r}: {' '.join(raised.split())}{at}"
    )


def failure_location(rollout: Rollout, trial: Trial) -> str:
    """The line that raised. What took too long has none worth showing."""
    if rollout.outcome == "timeout" or rollout.failure is None:
        return ""
    return trial.locations.get(rollout.key) or next(iter(reversed(rollout.failure.trace)), "")


def lacks_helper(rollout: Rollout) -> bool:
    return rollout.failure is not None and HelperMissingError.__name__ in rollout.failure.chain


def find_disagreements(trial: Trial) -> Iterator[Finding]:
    if trial.disagreements:
        first = trial.disagreements[0]
        yield Finding(
            "E402",
            f"scoring again differs in {len(trial.disagreements)} of {len(trial.rollouts)} rollouts, "
            f"first with agent {first.player} on task {first.task!r}: {first.what}",
        )


def find_endless_asking(trial: Trial) -> Iterator[Finding]:
    ours = [
        rollout
        for rollout in trial.rollouts
        if rollout.trace.stop_condition == "prompt_too_long" and trial.players[rollout.number].name == EMPTY
    ]
    if ours:
        turns = len(ours[0].trace.calls) - 1
        yield Finding("W313", f"an agent that says nothing got {turns} turns, and would get more")


# What it was worth


def collect_rewards(trial: Trial) -> dict[str, dict[TaskId, float]]:
    """Reward of each player on each task that could be scored."""
    found: dict[str, dict[TaskId, float]] = {player.name: {} for player in trial.players}
    for rollout in trial.rollouts:
        if rollout.score is not None:
            found[trial.players[rollout.number].name][rollout.task.id] = rollout.score.reward
    return found


def is_constant(rewards: Mapping[str, Rewards]) -> bool:
    values = [value for each in rewards.values() for value in each.values()]
    return len(values) > 1 and max(values) - min(values) < 1e-12


def find_best_oracle(trial: Trial, rewards: Mapping[str, Rewards]) -> str | None:
    """The oracle that earned most, however it wraps its answers."""
    oracles = [player.name for player in trial.players if is_oracle(player.name) and rewards[player.name]]
    return max(oracles, key=lambda name: fmean(rewards[name].values()), default=None)


def is_oracle(name: str) -> bool:
    return name.startswith("oracle")


def swapped_counterpart(oracle: str | None) -> str:
    """The agent that gives other tasks' answers in the same wrapping."""
    return (oracle or "").replace("oracle", SWAPPED)


def find_wrapping(trial: Trial, name: str) -> str:
    return next(player.wrapping for player in trial.players if player.name == name)


def find_missing_gold(trial: Trial) -> Iterator[Finding]:
    missing = [rollout for rollout in trial.rollouts if lacks_helper(rollout)]
    if missing:
        failure = missing[0].failure
        assert failure is not None
        yield Finding("N423", f"{failure.message}; name one with -m to have the rewards checked")
    elif not any(is_oracle(player.name) for player in trial.players):
        words = (
            "not every task has a gold answer: give it an `answer`, or the environment a method `gold(task)`"
        )
        yield Finding("N421", words)


def find_weak_separation(
    trial: Trial, rewards: Mapping[str, Rewards], right: str, offers_gold: bool, pass_threshold: float
) -> Iterator[Finding]:
    yield from find_missing_gold(trial)
    names = [EMPTY, RANDOM, swapped_counterpart(right)]
    below = {name: compare_rewards(rewards[right], rewards[name]) for name in names if rewards.get(name)}
    unclear = [name for name, (margin, _) in below.items() if margin <= 1e-9]
    mixed = [name for name, (_, share) in below.items() if name not in unclear and share < MIN_WIN_SHARE]
    mean = fmean(rewards[right].values())
    if unclear and not offers_gold and not is_single_turn(trial, right):
        words = "cannot be judged without a gold agent: write a method `gold(task)` that plays turn by turn"
        yield Finding(
            "N422", f"{words}. Saying the answer does not suffice: {format_mean_rewards(rewards, right)}"
        )
        return
    if unclear:
        yield Finding(
            "E401",
            f"gold answers earn no more than {describe_players(unclear)}: "
            f"{format_mean_rewards(rewards, right)}",
        )
    elif mixed:
        share = min(below[name][1] for name in mixed)
        words = f"gold answers earn more than {describe_players(mixed)} on only {share:.0%} of tasks"
        yield Finding("W411", f"{words}: {format_mean_rewards(rewards, right)}")
    if not unclear and mean < pass_threshold:
        words = f"gold answers earn {mean:.3f} on average, and {pass_threshold:g} counts as passed"
        yield Finding("W412", f"{words}: {format_mean_rewards(rewards, right)}")


def compare_rewards(right: Rewards, wrong: Rewards) -> tuple[float, float]:
    """By how much the right one earns more on average, and on which share of tasks it does at all."""
    both = [(right[task], wrong[task]) for task in right if task in wrong]
    if not both:
        return 1.0, 1.0
    margins = [one - other for one, other in both]
    return fmean(margins), sum(margin > 1e-9 for margin in margins) / len(margins)


def is_single_turn(trial: Trial, right: str) -> bool:
    """Whether a task is one question and one answer, without tools."""
    played = [rollout for rollout in trial.rollouts if trial.players[rollout.number].name == right]
    asked = [[call for call in rollout.trace.calls if call.role == "agent"] for rollout in played]
    return all(len(calls) <= 1 and not any(call.tools for call in calls) for calls in asked)


def describe_players(names: Sequence[str]) -> str:
    words = {EMPTY: "empty ones", RANDOM: "random words"}
    return " or ".join(words.get(name, "answers to other tasks") for name in names)


def format_mean_rewards(rewards: Mapping[str, Rewards], right: str | None = None) -> str:
    """The means on one line."""
    chosen = [right, EMPTY, RANDOM, swapped_counterpart(right)] if right else list(rewards)
    shown = [name for name in chosen if name and rewards.get(name)]
    return ", ".join(f"{name} {fmean(rewards[name].values()):.3f}" for name in shown)
