"""Run folders as large as the dashboard must bear: many runs, and one run of many rollouts.

Both are multiplied from a run that was really played, so that their rows are what the engine writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.children import HERE, PROCTOR, cost_of

TASK_SHARE = 4
"""Rollouts per task of the long run."""


def play_template(cwd: Path) -> Path:
    """A small run with the scripted model, to be multiplied."""
    words = ("-m", "scripted", "-n", "4", "-r", "1", "-s", "-o", str(cwd / "template"), "-A")
    cost_of(PROCTOR, "eval", "run", HERE / "arithmetic.py", *words, cwd=cwd, codes=(0, 1))
    return next((cwd / "template").rglob("metadata.json")).parent


def write_many_runs(template: Path, folder: Path, count: int) -> None:
    metadata = json.loads((template / "metadata.json").read_text())
    rows = (template / "results.jsonl").read_bytes()
    for number in range(count):
        home = folder / "evals" / f"arithmetic--model-{number % 7}" / f"{number:08x}"
        home.mkdir(parents=True)
        (home / "results.jsonl").write_bytes(rows)
        (home / "metadata.json").write_text(json.dumps(describe(metadata, number)))


def write_long_run(template: Path, folder: Path, rollouts: int) -> str:
    """Its id."""
    metadata = json.loads((template / "metadata.json").read_text())
    row = json.loads((template / "results.jsonl").read_text().splitlines()[0])
    run_id = "100000aa"
    home = folder / "evals" / "arithmetic--long" / run_id
    home.mkdir(parents=True)
    with (home / "results.jsonl").open("w") as file:
        for number in range(rollouts):
            reward = float(number * 7919 % 10 < 6)
            place = {"example_id": number // TASK_SHARE, "rollout": number % TASK_SHARE, "reward": reward}
            file.write(json.dumps({**row, **place, "task_hash": f"{number // TASK_SHARE:016x}"}) + "\n")
    summary = {**metadata["summary"], "planned": rollouts, "scored": rollouts, "finished": rollouts}
    told = {"run_id": run_id, "planned": rollouts, "settled": rollouts, "summary": summary}
    (home / "metadata.json").write_text(json.dumps({**metadata, **told, "rollouts_per_example": TASK_SHARE}))
    return run_id


def describe(metadata: dict[str, Any], number: int) -> dict[str, Any]:
    minute, second = divmod(number, 60)
    hour, minute = divmod(minute, 60)
    date = f"2026-01-{1 + hour // 24:02d}T{hour % 24:02d}:{minute:02d}:{second:02d}Z"
    return {**metadata, "run_id": f"{number:08x}", "model": f"model-{number % 7}", "date": date}
