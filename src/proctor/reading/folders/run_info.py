"""A run folder's metadata → the run as the API describes it.

The metadata may be another tool's, damaged, or not there: what cannot be read is left out, and a run that
cannot be read at all says why. Knows nothing of rows or HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from proctor.api.runs import Cause, CauseCode, Progress, RunInfo, RunScore
from proctor.contracts import PASS_THRESHOLD
from proctor.reading.scores import progress_of_summary, score_of_summary
from proctor.report.summary import Summary
from proctor.run import ENDED, RunStatus
from proctor.store.folder import METADATA, UNREADABLE, find_rescored_run
from proctor.store.index import is_abandoned, parse_start_time
from proctor.support.regular_files import read_regular
from proctor.trace import Usage

STATUSES: frozenset[str] = frozenset(get_args(RunStatus))
T = TypeVar("T")


class FolderMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """metadata.json as far as it can be read."""

    fields: Mapping[str, Any] = {}
    problem: str = ""
    """Why it cannot be read."""

    def get(self, name: str, kind: type[T], default: T) -> T:
        """A field of a type; the default if it is not there, or something else."""
        return as_kind(self.fields.get(name), kind, default)

    @property
    def model(self) -> str:
        return self.get("model", str, "")

    @property
    def pass_threshold(self) -> float:
        return self.get("pass_threshold", float, PASS_THRESHOLD)

    @property
    def rollouts_per_task(self) -> int:
        return max(1, self.get("rollouts_per_example", int, 1))


def as_kind(value: Any, kind: type[T], default: T) -> T:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError):
        return default


def read_folder_metadata(folder: Path) -> FolderMetadata:
    try:
        raw = read_regular(folder / METADATA)
        return FolderMetadata(fields=msgspec.json.decode(raw, type=dict[str, Any]))
    except FileNotFoundError:
        return FolderMetadata(problem=f"The run has no {METADATA}; only its rollouts can be shown.")
    except OSError as error:
        return FolderMetadata(problem=f"{METADATA} cannot be read ({error.strerror}).")
    except UNREADABLE as error:
        return FolderMetadata(problem=f"{METADATA} is damaged: {error}.")


def build_run_info(run_id: str, folder: Path, metadata: FolderMetadata) -> RunInfo:
    """The run by its metadata alone; scores and counts are as of its last word."""
    status, cause = find_status(folder, metadata)
    started = parse_start_time(metadata.get("date", str, ""), folder)
    seconds = metadata.get("time", float, 0.0)
    summary = stored_summary(metadata)
    usage = metadata.get("usage", Usage, Usage())
    config = metadata.get("config", dict[str, Any], {})
    environment = metadata.get("environment", dict[str, Any], {})
    return RunInfo(
        id=run_id,
        kind="local",
        name=metadata.get("label", str, ""),
        owner="",
        agent=metadata.get("agent", str, "") or None,
        runtime=as_kind(config.get("runtime"), str, ""),
        environment=metadata.get("name", str, "") or metadata.get("env_id", str, "") or folder.parent.name,
        version=as_kind(environment.get("version"), str, "") or None,
        content_hash=as_kind(environment.get("content_hash"), str, "") or None,
        model=metadata.model,
        status=status,
        cause=cause,
        progress=build_progress(metadata, summary),
        score=find_score(metadata, summary),
        suite=metadata.get("suite", str, "") or None,
        tags=metadata.get("tags", list[str], []),
        rescored_from=find_rescored_run(metadata.fields),
        cost_usd=find_cost(metadata),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        created_at=started,
        started_at=started,
        ended_at=started + seconds if status in ENDED and seconds else None,
        settings=pick_requested(config, metadata.get("origins", dict[str, Any], {})),
        resolved={**config, **metadata.get("resolved", dict[str, Any], {})},
        summary=metadata.get("summary", dict[str, Any], {}) or None,
    )


def pick_requested(config: dict[str, Any], origins: dict[str, Any]) -> dict[str, Any]:
    """The settings that the user chose; all of them if the run does not record which."""
    return {name: config[name] for name in origins if name in config} or config


def find_status(folder: Path, metadata: FolderMetadata) -> tuple[RunStatus, Cause | None]:
    """The status, and its cause. A run of another tool without a status counts as finished."""
    if metadata.problem:
        return "failed", describe_cause("crashed", metadata.problem)
    recorded = metadata.get("status", str, "finished")
    note = metadata.get("note", str, "")
    if is_abandoned(folder, recorded):
        return "stopped", describe_cause(
            "crashed",
            "The process that played this run ended before the run did; its finished rollouts are kept.",
            f"proctor eval run … --resume {folder}",
        )
    status: RunStatus = recorded if recorded in STATUSES else "failed"  # type: ignore[assignment]
    if status == "failed":
        return status, describe_cause("environment_error", note or "The run failed; its log may say why.")
    if status in ("stopped", "timed_out"):
        next_step = f"proctor eval run … --resume {folder}"
        return status, describe_cause("stopped_by_user", note or "The run was stopped.", next_step)
    return status, None


def describe_cause(code: CauseCode, message: str, next_step: str = "") -> Cause:
    return Cause(code=code, message=message, next_step=next_step)


def stored_summary(metadata: FolderMetadata) -> Summary | None:
    """The report in the metadata, if it is one of ours."""
    try:
        return msgspec.convert(metadata.fields.get("summary"), Summary)
    except (msgspec.ValidationError, RecursionError):
        return None


def build_progress(metadata: FolderMetadata, summary: Summary | None) -> Progress:
    planned = metadata.get("planned", int, 0) or None
    if summary is None:
        return Progress(planned=planned, settled=metadata.get("settled", int, 0))
    return progress_of_summary(summary, planned)


def find_score(metadata: FolderMetadata, summary: Summary | None) -> RunScore | None:
    if summary is not None:
        return score_of_summary(summary)
    mean = metadata.get("avg_reward", float, None)
    return None if mean is None else RunScore(mean=mean)


def find_cost(metadata: FolderMetadata) -> float | None:
    cost = metadata.get("cost", dict[str, Any], {})
    return as_kind(cost.get("total_usd"), float, None)
