"""Large runs for the dashboard, in folders: made from one that was played, since nobody can wait for these.

`python -m tests.web.many_rollouts DIR [ROLLOUTS]` writes one to look at with `proctor view DIR`.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.web.played_runs import play_sums

PER_TASK = 4
FAILED_SHARE = 0.02
START = 1_790_000_000.0
MODEL_ERROR = {
    "error": "RateLimitError",
    "message": "429 Too Many Requests",
    "phase": "generation",
    "location": "",
}


def write_many_rollouts(folder: Path, rollouts: int, *, name: str = "many") -> Path:
    """A finished run of this many rollouts, four for each task, of which two in a hundred failed."""
    with tempfile.TemporaryDirectory() as played:
        source = play_sums(Path(played)).folder
        metadata = json.loads((source / "metadata.json").read_text(encoding="utf-8"))
        template = json.loads((source / "results.jsonl").read_text(encoding="utf-8").splitlines()[0])
    folder = folder / "evals" / "many--careful" / name
    folder.mkdir(parents=True)
    chance = random.Random(7)
    with (folder / "results.jsonl").open("w", encoding="utf-8") as file:
        for place in range(rollouts):
            file.write(json.dumps(vary_row(template, place, chance)) + "\n")
    counts = {"planned": rollouts, "settled": rollouts, "num_examples": rollouts // PER_TASK}
    metadata |= {"run_id": name, "env_id": "many", "rollouts_per_example": PER_TASK, **counts}
    (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    return folder


def vary_row(template: dict[str, Any], place: int, chance: random.Random) -> dict[str, Any]:
    task, number = divmod(place, PER_TASK)
    seconds = chance.lognormvariate(1.5, 0.7)
    row = template | {
        "example_id": task,
        "task_hash": f"{task:016x}",
        "rollout": number,
        "timing": template["timing"] | {"start_time": START + place, "total": seconds},
        "token_usage": {"input_tokens": chance.randrange(50, 900), "output_tokens": chance.randrange(1, 400)},
    }
    if chance.random() < FAILED_SHARE:
        return row | {"outcome": "model_error", "reward": None, "metrics": {}, "error": MODEL_ERROR}
    reward = round(chance.betavariate(4, 1.5), 3)
    answer = {"role": "assistant", "content": f"After some thought, {place} seems right."}
    return row | {"reward": reward, "metrics": {"equal": reward, "length": 40.0}, "completion": [answer]}


def write_log(folder: Path, lines: int) -> None:
    """A log as a run writes it, with a traceback at every thousandth line and colors in between."""
    with (folder / "run.log").open("w", encoding="utf-8") as file:
        for number in range(1, lines + 1):
            stamp = f"2026-11-16T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
            if number % 1000 == 0:
                file.write(f"{stamp} ERROR step {number} failed\n  File 'sums.py', line 3\nKeyError: 'x'\n")
            elif number % 50 == 0:
                file.write(f"{stamp} WARNING \x1b[33mslow answer\x1b[0m in step {number}\n")
            else:
                file.write(f"{stamp} INFO \x1b[32m✓\x1b[0m step {number} took {number % 97} ms\n")


if __name__ == "__main__":
    folder = write_many_rollouts(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
    write_log(folder, 20_000)
