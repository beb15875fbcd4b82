"""Write a run as an Inspect log, which `inspect view` and `read_eval_log` open.

Samples are streamed into the archive. The reward is the score called `reward`, each metric one of its own.
Knows nothing of Inspect's code: the shape is that of its log format, version 2.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import StoreError
from proctor.formats.inspect.sample_writing import build_sample, build_summary, read_usage
from proctor.formats.rows import RowCounts, iterate_rows
from proctor.formats.sources import get_object, get_text
from proctor.store.folder import UNFINISHED, read_metadata
from proctor.store.replay import StoredRow

STATUSES = {"finished": "success", "failed": "error", "stopped": "cancelled", "timed_out": "error"}
SAMPLING = (
    *("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty"),
    *("reasoning_effort", "logprobs", "top_logprobs"),
)
"""Sampling settings that Inspect knows by the same name."""
EPOCH = "1970-01-01T00:00:00+00:00"
"""Stands where Inspect requires a time and the run has none."""


class LogCounts(RowCounts):
    """What the header says about the samples."""

    epochs: int = 1
    ids: dict[int | str, None] = msgspec.field(default_factory=dict)
    scores: dict[str, list[float]] = msgspec.field(default_factory=dict)
    usage: dict[str, int] = msgspec.field(default_factory=dict)


def write_eval_log(folder: Path, path: Path) -> LogCounts:
    """Write the whole log, or leave the file as it was."""
    metadata = read_metadata(folder)
    counts = LogCounts()
    summaries: list[dict[str, Any]] = []
    unfinished = path.with_name(f"{UNFINISHED}{path.name}-{secrets.token_hex(4)}")
    try:
        with zipfile.ZipFile(unfinished, "x", zipfile.ZIP_DEFLATED) as archive:
            for row in iterate_rows(folder, counts):
                sample = build_sample(row, get_text(metadata, "model"))
                count(row, counts)
                summaries.append(build_summary(sample))
                name = f"samples/{row.example_id}_epoch_{row.rollout + 1}.json"
                archive.writestr(name, msgspec.json.encode(sample))
            archive.writestr("summaries.json", msgspec.json.encode(summaries))
            archive.writestr("header.json", msgspec.json.encode(build_header(metadata, counts)))
        unfinished.replace(path)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return counts


def count(row: StoredRow, counts: LogCounts) -> None:
    counts.epochs = max(counts.epochs, row.rollout + 1)
    counts.ids[row.example_id] = None
    if row.reward is not None:
        for name, value in {"reward": row.reward, **row.metrics}.items():
            counts.scores.setdefault(name, []).append(value)
    for name, tokens in read_usage(row.token_usage).items():
        counts.usage[name] = counts.usage.get(name, 0) + tokens


def build_header(metadata: Mapping[str, Any], counts: LogCounts) -> dict[str, Any]:
    started = get_text(metadata, "date") or EPOCH
    status = STATUSES.get(get_text(metadata, "status"), "started")
    header: dict[str, Any] = {
        "version": 2,
        "status": status,
        "eval": build_spec(metadata, counts, started),
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": counts.rows,
            "completed_samples": len(counts.scores.get("reward", ())),
            "scores": [build_score(name, values) for name, values in counts.scores.items()],
        },
        "stats": {
            "started_at": started,
            "completed_at": add_seconds(started, metadata.get("time")),
            "model_usage": {get_text(metadata, "model"): counts.usage} if counts.usage else {},
        },
    }
    if status == "error":
        note = get_text(metadata, "note") or get_text(metadata, "status")
        header["error"] = {"message": note, "traceback": "", "traceback_ansi": ""}
    return header


def build_spec(metadata: Mapping[str, Any], counts: LogCounts, started: str) -> dict[str, Any]:
    run_id, name = get_text(metadata, "run_id"), get_text(metadata, "name") or get_text(metadata, "env_id")
    sampling = get_object(metadata, "sampling_args")
    scorers = [{"name": each, "options": {}, "metrics": [], "metadata": {}} for each in counts.scores]
    return {
        "eval_id": run_id,
        "run_id": run_id,
        "created": started,
        "task": name or "unnamed",
        "task_id": hashlib.sha256(run_id.encode()).hexdigest()[:22],
        "task_version": 0,
        "task_args": get_object(metadata, "env_args"),
        "dataset": {
            "name": name,
            "samples": len(counts.ids),
            "sample_ids": list(counts.ids),
            "shuffled": False,
        },
        "model": get_text(metadata, "model") or "unknown",
        "model_base_url": get_text(metadata, "base_url") or None,
        "model_generate_config": {key: sampling[key] for key in SAMPLING if sampling.get(key) is not None},
        "config": {"epochs": counts.epochs},
        "packages": {"proctor": get_text(metadata, "version_info", "proctor")},
        "metadata": {"exported_from": "proctor", "sampling_args": sampling},
        "scorers": scorers,
    }


def build_score(name: str, values: Sequence[float]) -> dict[str, Any]:
    mean = math.fsum(values) / len(values)
    metric = {"name": "mean", "value": mean, "params": {}}
    return {"name": name, "scorer": name, "params": {}, "metrics": {"mean": metric}}


def add_seconds(date: str, seconds: Any) -> str:
    try:
        start = datetime.fromisoformat(date).astimezone(UTC).timestamp()
    except ValueError:
        return date
    ended = start + (seconds if isinstance(seconds, (int, float)) else 0.0)
    return datetime.fromtimestamp(ended, UTC).isoformat()
