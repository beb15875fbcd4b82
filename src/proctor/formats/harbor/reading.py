"""A Harbor job folder as runs: one for each agent with each model on each dataset.

An agent could write to its trial's folder, so nothing in it is reached through a link. Knows nothing of
containers or tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError, did_you_mean
from proctor.formats.foreign_run import (
    ForeignRun,
    LeftOut,
    RolloutNumbers,
    Row,
    RowParts,
    build_error,
    build_row,
    build_timing,
    is_number,
    keep_scores,
    parse_time,
)
from proctor.formats.harbor.trajectory import Trajectory, read_trajectory
from proctor.formats.sources import (
    LARGEST_DOCUMENT_BYTES,
    UnusableSourceError,
    decode_document,
    get_list,
    get_object,
    get_text,
)
from proctor.isolation.untrusted_tree import UntrustedFileError, open_file, open_root, read_at_most
from proctor.rollout import Outcome

TOOL = "harbor"
RESULT = "result.json"
CONFIG = "config.json"
REWARD = "reward"
MOST_STEPS = 200
OUTCOMES: Sequence[tuple[str, Outcome]] = (
    ("Cancelled", "cancelled"),
    ("AgentTimeout", "timeout"),
    ("Verifier", "grader_error"),
    ("Reward", "grader_error"),
    ("Agent", "agent_error"),
)
"""How the name of an exception begins, and what it means for the rollout; others are the environment's."""


class HarborTrial(msgspec.Struct, frozen=True):
    """One trial's folder and its result."""

    folder: Path
    result: Mapping[str, Any]

    @property
    def evaluation(self) -> tuple[str, str, str]:
        """What Harbor reports together: the agent, the model, the dataset."""
        info = get_object(self.result, "agent_info")
        return get_text(info, "name"), format_model(info), get_text(self.result, "source")

    @property
    def started_at(self) -> float:
        return parse_time(self.result.get("started_at")) or 0.0


def recognizes_folder(folder: Path, names: frozenset[str]) -> bool:
    if RESULT not in names or CONFIG not in names:
        return False
    try:
        document = read_below(folder, RESULT)
    except UnusableSourceError:
        return False
    return "n_total_trials" in document or is_trial(document)


def is_trial(document: Mapping[str, Any]) -> bool:
    return "trial_name" in document and "task_name" in document


def read(path: Path, reward: str | None) -> Iterable[ForeignRun]:
    document = read_below(path, RESULT)
    if is_trial(document):
        yield build_run(path, {}, [HarborTrial(path, document)], [], reward, 1)
        return
    trials, problems = list_trials(path)
    groups: dict[tuple[str, str, str], list[HarborTrial]] = {}
    for trial in sorted(trials, key=lambda each: (each.started_at, each.folder.name)):
        groups.setdefault(trial.evaluation, []).append(trial)
    if not groups:
        raise UnusableSourceError(f"{path} holds no trial with a {RESULT}.")
    for number, group in enumerate(groups.values()):
        yield build_run(path, document, group, problems if number == 0 else [], reward, len(groups))


def list_trials(folder: Path) -> tuple[list[HarborTrial], list[LeftOut]]:
    trials, problems = [], []
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_dir() or not (path / RESULT).exists():
            continue
        try:
            document = read_below(path, RESULT)
        except UnusableSourceError as error:
            problems.append(LeftOut(path.name, str(error)))
            continue
        if is_trial(document):
            trials.append(HarborTrial(path, document))
    return trials, problems


def build_run(
    path: Path,
    job: Mapping[str, Any],
    trials: Sequence[HarborTrial],
    problems: Sequence[LeftOut],
    reward: str | None,
    groups: int,
) -> ForeignRun:
    agent, model, dataset = trials[0].evaluation
    started = parse_time(job.get("started_at")) or trials[0].started_at or None
    ended = parse_time(job.get("finished_at"))
    planned = job.get("n_total_trials")

    def rows() -> Iterator[Row | LeftOut]:
        yield from problems
        numbers = RolloutNumbers()
        for trial in trials:
            try:
                yield convert_trial(trial, numbers, reward)
            except UnusableSourceError as error:
                yield LeftOut(trial.folder.name, str(error))

    return ForeignRun(
        tool=TOOL,
        source=path,
        id=f"{get_text(job, 'id') or get_text(trials[0].result, 'id')}-{agent}-{model}-{dataset}",
        env_id=dataset or path.name,
        model=model or agent,
        agent=agent,
        rows=rows,
        status="finished" if ended is not None or not job else "stopped",
        started_at=started,
        seconds=ended - started if ended is not None and started is not None else None,
        planned=planned if isinstance(planned, int) and groups == 1 else None,
        details={"agent": get_object(trials[0].result, "agent_info"), "job": path.name},
    )


def format_model(info: Mapping[str, Any]) -> str:
    model = get_object(info, "model_info")
    name, provider = get_text(model, "name"), get_text(model, "provider")
    return f"{provider}/{name}" if provider and name else name


# One trial


def convert_trial(trial: HarborTrial, numbers: RolloutNumbers, reward_name: str | None) -> Row:
    result = trial.result
    task = get_text(result, "task_name")
    rewards = keep_scores(get_object(result, "verifier_result", "rewards"))
    exception = get_object(result, "exception_info")
    reward = choose_reward(rewards, reward_name, trial.folder.name)
    trajectory, problem = read_agent_log(trial.folder)
    kept = {"trial": get_text(result, "trial_name"), "task_checksum": result.get("task_checksum")}
    if exception and reward is not None:
        kept["exception"] = get_text(exception, "exception_type")
    if problem:
        kept["trajectory_problem"] = problem
    if steps := get_list(result, "step_results")[:MOST_STEPS]:
        kept["step_results"] = steps
    return build_row(
        RowParts(
            example_id=task,
            rollout=numbers.next(task),
            outcome=choose_outcome(exception, reward),
            prompt=trajectory.prompt,
            completion=trajectory.completion,
            reward=reward,
            metrics=rewards,
            error=convert_exception(exception, reward),
            timing=read_timing(result),
            token_usage=read_usage(result),
            model_calls=trajectory.calls,
            columns={name: value for name, value in kept.items() if value},
        )
    )


def choose_reward(rewards: Mapping[str, float], wanted: str | None, where: str) -> float | None:
    """The wanted reward, else the one called `reward`, else the only one."""
    if not rewards:
        return None
    if wanted is not None:
        if wanted not in rewards:
            raise ConfigError(f"No reward {wanted!r} in trial {where}{did_you_mean(wanted, rewards)}")
        return rewards[wanted]
    if REWARD in rewards:
        return rewards[REWARD]
    if len(rewards) == 1:
        return next(iter(rewards.values()))
    raise ConfigError(
        f"Trial {where} has several rewards and none called {REWARD!r}; choose one with --reward: "
        f"{', '.join(sorted(rewards))}."
    )


def choose_outcome(exception: Mapping[str, Any], reward: float | None) -> Outcome:
    kind = get_text(exception, "exception_type")
    named = next((outcome for start, outcome in OUTCOMES if kind.startswith(start)), None)
    if reward is not None:
        return "timeout" if named == "timeout" else "scored"
    if not exception:
        return "grader_error"
    return named or "environment_error"


def convert_exception(exception: Mapping[str, Any], reward: float | None) -> dict[str, Any] | None:
    if reward is not None:
        return None
    if not exception:
        return build_error("Unscored", "the verifier wrote no reward")
    return build_error(
        get_text(exception, "exception_type") or "Error",
        get_text(exception, "exception_message"),
        get_text(exception, "exception_traceback"),
    )


def read_timing(result: Mapping[str, Any]) -> dict[str, Any]:
    start, end = parse_time(result.get("started_at")), parse_time(result.get("finished_at"))
    total = end - start if start is not None and end is not None else None
    return build_timing(
        start,
        total,
        setup=read_span(result, "environment_setup"),
        generation=read_span(result, "agent_execution"),
        scoring=read_span(result, "verifier"),
    )


def read_span(result: Mapping[str, Any], name: str) -> float | None:
    span = get_object(result, name)
    start, end = parse_time(span.get("started_at")), parse_time(span.get("finished_at"))
    return end - start if start is not None and end is not None else None


def read_usage(result: Mapping[str, Any]) -> dict[str, int]:
    """Of a trial of several steps, their sum."""
    contexts = [get_object(result, "agent_result")] if result.get("agent_result") else []
    contexts = contexts or [get_object(step, "agent_result") for step in get_list(result, "step_results")]
    names = {
        "input_tokens": "n_input_tokens",
        "output_tokens": "n_output_tokens",
        "cached_tokens": "n_cache_tokens",
    }
    usage: dict[str, int] = {}
    for context in contexts:
        for ours, theirs in names.items():
            if is_number(context.get(theirs)):
                usage[ours] = usage.get(ours, 0) + int(context[theirs])
    return usage


# Files below a trial


def read_agent_log(folder: Path) -> tuple[Trajectory, str]:
    """The agent's trajectory, empty if it wrote none; and what is wrong with it."""
    try:
        return read_trajectory(read_below(folder, "agent/trajectory.json")), ""
    except FileNotFoundError:
        return Trajectory(), ""
    except UnusableSourceError as error:
        return Trajectory(), str(error)


def read_below(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file below a folder that an agent could write; FileNotFoundError if there is none."""
    where = f"{folder / name}"
    try:
        with open_root(folder.resolve()) as root, open_file(root, name) as handle:
            raw = read_at_most(handle, LARGEST_DOCUMENT_BYTES + 1)
    except FileNotFoundError:
        raise
    except (OSError, UntrustedFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnusableSourceError(f"{where} cannot be read: {reason}.") from error
    if len(raw) > LARGEST_DOCUMENT_BYTES:
        raise UnusableSourceError(f"{where} is too large.")
    return decode_document(raw, where)
