"""Runs in folders as Proctor writes them, without having played them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.task import TaskId

Rewards = Mapping[Any, Sequence[float | None]]
"""Each task's rollouts; None for one that failed."""


def write_run(
    folder: Path, rewards: Rewards, metrics: Mapping[str, float] | None = None, **metadata: Any
) -> Path:
    """A run whose tasks have these rewards; `metadata` adds to or replaces what it says of itself."""
    folder.mkdir(parents=True)
    rows = [
        build_row(task, number, reward, {**(metrics or {})})
        for task, rolled in rewards.items()
        for number, reward in enumerate(rolled)
    ]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    stored = {
        "run_id": folder.name,
        "status": "finished",
        "date": "2026-11-16T19:46:33Z",
        "env_id": "capitals",
        "model": "m",
        "rollouts_per_example": max(map(len, rewards.values()), default=1),
        "config": {"min_coverage": 1.0},
        "planned": len(rows),
        **metadata,
    }
    (folder / "metadata.json").write_text(json.dumps(stored))
    return folder


def build_row(task: TaskId, number: int, reward: float | None, metrics: dict[str, float]) -> dict[str, Any]:
    error = {"error": "ModelError", "message": "503"}
    return {
        "example_id": task,
        "task_hash": f"hash-{task}",
        "rollout": number,
        "outcome": "scored" if reward is not None else "model_error",
        "reward": reward,
        "metrics": metrics if reward is not None else {},
        "error": None if reward is not None else error,
        "timing": {"total": 1.5, "start_time": 0.0},
        "token_usage": {"input_tokens": 100, "output_tokens": 10},
    }
