"""Write a run as verifiers saves one: a folder of results.jsonl and metadata.json.

verifiers has no rollout without a reward: one that failed is written with 0 and its error, as verifiers
itself does. Knows nothing of verifiers' code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError, StoreError
from proctor.formats.rows import RowCounts, iterate_rows
from proctor.formats.sources import get_list, get_text
from proctor.store.folder import METADATA, RESULTS, open_replacement, read_metadata
from proctor.store.replay import StoredRow, parse_tool_calls

COPIED = ("env_id", "env_args", "model", "base_url", "sampling_args", "date", "time", "state_columns")


def write_verifiers_folder(folder: Path, path: Path) -> RowCounts:
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{path} is a file; verifiers keeps a run in a folder.")
    if (path / RESULTS).exists():
        raise ConfigError(f"{path} already holds a run; choose another folder.")
    metadata = read_metadata(folder)
    counts = RowCounts()
    rewards: dict[str, list[float]] = {}
    metrics: dict[str, list[float]] = {}
    try:
        path.mkdir(parents=True, exist_ok=True)
        with open_replacement(path / RESULTS) as handle, open(handle, "wb", closefd=False) as file:
            for row in iterate_rows(folder, counts):
                written = build_output(row)
                rewards.setdefault(str(row.example_id), []).append(written["reward"])
                for name, value in row.metrics.items():
                    metrics.setdefault(name, []).append(value)
                file.write(msgspec.json.encode(written) + b"\n")
        document = msgspec.json.encode(build_metadata(metadata, counts, rewards, metrics))
        with open_replacement(path / METADATA) as handle, open(handle, "wb", closefd=False) as file:
            file.write(document)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
    return counts


def build_output(row: StoredRow) -> dict[str, Any]:
    error = row.error
    output: dict[str, Any] = {
        "example_id": row.example_id,
        "prompt": [convert_message(each) for each in row.prompt],
        "completion": [convert_message(each) for each in row.completion],
        "answer": row.answer,
        "reward": 0.0 if row.reward is None else row.reward,
        "error": None
        if error is None
        else {
            "error": error.error,
            "error_chain_repr": f"{error.error}({error.message!r})",
            "error_chain_str": error.error_chain_str or error.error,
        },
        "timing": msgspec.to_builtins(row.timing),
        "is_completed": True,
        "is_truncated": row.is_truncated,
        "stop_condition": row.stop_condition,
        "metrics": row.metrics,
        "tool_defs": list(row.tool_defs),
        "token_usage": {
            "input_tokens": float(row.token_usage.input_tokens),
            "output_tokens": float(row.token_usage.output_tokens),
        },
    }
    if row.info:
        output["info"] = row.info
    return output | {name: value for name, value in row.metrics.items() if name not in output}


def convert_message(message: Any) -> Any:
    """Tool calls as JSON text, the way verifiers saves them."""
    calls = parse_tool_calls(message)
    if not calls:
        return message
    texts = [
        msgspec.json.encode({"id": call_id, "name": name, "arguments": arguments}).decode()
        for call_id, name, arguments in calls
    ]
    return {**message, "tool_calls": texts}


def build_metadata(
    metadata: Mapping[str, Any],
    counts: RowCounts,
    rewards: Mapping[str, Sequence[float]],
    metrics: Mapping[str, Sequence[float]],
) -> dict[str, Any]:
    every = [reward for group in rewards.values() for reward in group]
    copied = {name: metadata[name] for name in COPIED if metadata.get(name) is not None}
    return {
        "env_id": "",
        "env_args": {},
        "model": "",
        "base_url": "",
        "sampling_args": {},
        "state_columns": [],
        "tools": get_list(metadata, "tools"),
        **copied,
        "num_examples": len(rewards),
        "rollouts_per_example": max(map(len, rewards.values()), default=1),
        "avg_reward": mean(every),
        "avg_metrics": {name: mean(values) for name, values in metrics.items()},
        "avg_error": counts.failed / counts.rows if counts.rows else 0.0,
        "pass_threshold": metadata.get("pass_threshold", 0.5),
        "version_info": {"proctor": get_text(metadata, "version_info", "proctor")},
        "exported_from": {"tool": "proctor", "run": get_text(metadata, "run_id")},
    }


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
