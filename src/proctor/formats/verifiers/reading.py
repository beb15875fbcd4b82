"""A folder that `vf-eval` or `prime eval run` saved, as a run.

verifiers scores a rollout that failed with 0; here it has no reward, and the number is kept as
`reported_reward`. Rollouts are not numbered there: they count in the order of the file. Knows nothing of
environments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.errors import ConfigError, did_you_mean
from proctor.formats.chat_messages import convert_conversation
from proctor.formats.foreign_run import (
    ForeignRun,
    LeftOut,
    RolloutNumbers,
    Row,
    RowParts,
    build_row,
    build_timing,
    is_number,
    keep_scores,
    parse_time,
)
from proctor.formats.sources import (
    SourceFile,
    get_object,
    get_text,
    read_document,
    read_json_lines,
)
from proctor.rollout import Outcome, is_score
from proctor.store.folder import METADATA, RESULTS
from proctor.task import TaskId

TOOL = "verifiers"
OWN = ("outcome", "rollout")
"""Fields that only Proctor's rows have."""
KNOWN = {
    *("example_id", "prompt", "completion", "answer", "info", "reward", "metrics", "error", "timing"),
    *("is_completed", "is_truncated", "stop_condition", "token_usage", "tool_defs", "task"),
    *("generation_ms", "scoring_ms", "total_ms", "error_chain", "long_error_chain"),
}


def recognizes_file(source: SourceFile) -> bool:
    line = source.first_line
    if line is None or any(name in line for name in OWN):
        return False
    return "reward" in line and "completion" in line and ("example_id" in line or "prompt" in line)


def recognizes_folder(folder: Path, names: frozenset[str]) -> bool:
    return {RESULTS, METADATA} <= names and recognizes_file(SourceFile(folder / RESULTS))


def read(path: Path, reward: str | None) -> Iterable[ForeignRun]:
    results = path / RESULTS if path.is_dir() else path
    beside = results.with_name(METADATA)
    metadata = read_document(beside) if results.name == RESULTS and beside.is_file() else {}
    environment, _, model = results.parent.parent.name.partition("--")
    each, examples = metadata.get("rollouts_per_example"), metadata.get("num_examples")
    planned = int(each * examples) if is_number(each) and is_number(examples) and examples > 0 else None

    def rows() -> Iterator[Row | LeftOut]:
        numbers = RolloutNumbers()
        for line, fields in read_json_lines(results):
            if isinstance(fields, str):
                yield LeftOut(f"line {line}", fields)
                continue
            yield convert_row(fields, metadata, numbers, reward, line)

    yield ForeignRun(
        tool=TOOL,
        source=path,
        id=results.parent.name if results.name == RESULTS else results.stem,
        tool_version=get_text(metadata, "version_info", "vf_version"),
        env_id=get_text(metadata, "env_id") or environment,
        model=get_text(metadata, "model") or model.replace("--", "/"),
        rows=rows,
        started_at=parse_time(metadata.get("date")),
        seconds=read_duration(metadata, "time"),
        planned=planned,
        rollouts_per_example=int(each) if is_number(each) else None,
        env_args=get_object(metadata, "env_args"),
        sampling_args=get_object(metadata, "sampling_args"),
        base_url=get_text(metadata, "base_url"),
        pass_threshold=metadata["pass_threshold"] if is_number(metadata.get("pass_threshold")) else None,
        details={name: metadata[name] for name in ("version_info", "tools") if metadata.get(name)},
    )


def convert_row(
    fields: Mapping[str, Any],
    metadata: Mapping[str, Any],
    numbers: RolloutNumbers,
    reward_name: str | None,
    line: int,
) -> Row | LeftOut:
    example_id = read_example_id(fields, line)
    metrics = read_metrics(fields, metadata)
    reported = fields.get("reward")
    if reward_name is not None:
        if reward_name not in metrics:
            raise ConfigError(f"No metric {reward_name!r} in line {line}{did_you_mean(reward_name, metrics)}")
        reported = metrics[reward_name]
    error = fields.get("error")
    reward = float(reported) if is_number(reported) and is_score(reported) and not error else None
    kept = {name: value for name, value in fields.items() if name not in KNOWN and name not in metrics}
    if reward is None and reported is not None:
        kept["reported_reward"] = reported
    truncated = fields.get("is_truncated")
    return build_row(
        RowParts(
            example_id=example_id,
            rollout=numbers.next(example_id),
            outcome=choose_outcome(error, reward, truncated),
            prompt=convert_conversation(fields.get("prompt"), "user"),
            completion=convert_conversation(fields.get("completion"), "assistant"),
            answer=fields.get("answer"),
            reward=reward,
            metrics=metrics,
            info=read_info(fields),
            error=convert_error(error, reported, reward),
            timing=read_timing(fields),
            token_usage=keep_counts(get_object(fields, "token_usage")),
            stop_condition=get_text(fields, "stop_condition") or None,
            is_truncated=truncated if isinstance(truncated, bool) else None,
            columns=kept,
        )
    )


def read_example_id(fields: Mapping[str, Any], line: int) -> TaskId:
    given = fields.get("example_id", fields.get("id", line - 1))
    return given if isinstance(given, (int, str)) and not isinstance(given, bool) else str(given)


def read_metrics(fields: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, float]:
    """From `metrics`; older releases have a column for each, and their names in the metadata."""
    if "metrics" in fields:
        return keep_scores(get_object(fields, "metrics"))
    names = get_object(metadata, "avg_metrics")
    return keep_scores({name: fields[name] for name in names if name in fields})


def read_info(fields: Mapping[str, Any]) -> dict[str, Any]:
    info = dict(get_object(fields, "info"))
    task = fields.get("task")
    return info | {"task": task} if task else info


def choose_outcome(error: Any, reward: float | None, truncated: Any) -> Outcome:
    if error:
        kind = get_text(error, "error") if isinstance(error, dict) else str(error)
        return "model_error" if "Model" in kind or "Prompt" in kind else "environment_error"
    if reward is None:
        return "grader_error"
    return "truncated" if truncated is True else "scored"


def convert_error(error: Any, reported: Any, reward: float | None) -> dict[str, Any] | None:
    if isinstance(error, dict):
        chain = get_text(error, "error_chain_str")
        message = get_text(error, "message") or get_text(error, "error_chain_repr") or chain
        return {"error": get_text(error, "error") or "Error", "message": message, "error_chain_str": chain}
    if error:
        return {"error": "Error", "message": str(error), "error_chain_str": str(error)}
    if reward is None:
        message = (
            "the row has no reward"
            if reported is None
            else f"the reward is {reported!r}, not a finite number"
        )
        return {"error": "Unscored", "message": message, "error_chain_str": message}
    return None


def read_timing(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Spans as they are; of older releases, milliseconds."""
    timing = get_object(fields, "timing")
    if "generation" in timing or "total" in timing:
        return {name: value for name, value in timing.items() if name != "env"}
    source = timing or fields
    return build_timing(
        parse_time(timing.get("start_time")),
        read_duration(source, "total"),
        generation=read_duration(source, "generation"),
        scoring=read_duration(source, "scoring"),
    )


def read_duration(fields: Mapping[str, Any], name: str) -> float | None:
    """Seconds, from a field in seconds or one in milliseconds."""
    if is_number(fields.get(name)):
        return float(fields[name])
    milliseconds = fields.get(f"{name}_ms")
    return milliseconds / 1000 if is_number(milliseconds) else None


def keep_counts(usage: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(count) for name, count in usage.items() if is_number(count)}
