"""Pull the plug at random moments, go on, and count: nothing twice, nothing lost that was said to be kept."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

TASKS, ROLLOUTS, AT_ONCE = 40, 3, 8
LONGEST_SECONDS = 0.35
"""About as long as the whole run takes, from its first look at the folder."""

RUN = Path(__file__).with_name("reporting_run.py")
SCRIPT: list[dict[str, Any]] = [
    {"delay_seconds": 0.005},
    {"delay_seconds": 0.02},
    {"delay_seconds": 0.03},
    {"delay_seconds": 0.01, "error": "timeout"},
    {"delay_seconds": 0.015},
    {"delay_seconds": 0.0},
    {"delay_seconds": 0.025},
]
"""A failed rollout is owed again, so that picking a run up has something to set aside."""


@dataclass
class Watched:
    """One run, in as many processes as it takes, and all that they said was finished."""

    folder: Path
    script: Path
    said: list[tuple[int, int, str, float]] = field(default_factory=list)

    def played(self, seconds: float | None = None) -> bool:
        """Play until the end, or until the plug is pulled so long after it got ready; tell which."""
        words = [str(word) for word in (self.folder, self.script, TASKS, ROLLOUTS, AT_ONCE)]
        process = subprocess.Popen([sys.executable, str(RUN), *words], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if seconds is not None:
            time.sleep(seconds)
            process.kill()
        said, _ = process.communicate(timeout=60)
        for line in said.decode().splitlines():
            task, number, outcome, start = line.split()
            self.said.append((int(task), int(number), outcome, float(start)))
        assert process.returncode in (0, -9)
        return process.returncode == 0

    def rows(self, file: str) -> list[dict[str, Any]]:
        rows = []
        for path in self.folder.glob(f"evals/*/*/{file}"):
            for line in path.read_bytes().splitlines():
                with suppress(json.JSONDecodeError):  # a torn line is no row
                    rows.append(json.loads(line))
        return rows

    def is_over(self) -> bool:
        """Whether nothing is left to resume; the plug may have been pulled a moment after the end."""
        metadata = [json.loads(path.read_bytes()) for path in self.folder.glob("evals/*/*/metadata.json")]
        return any((each["status"], each["settled"]) == ("finished", TASKS * ROLLOUTS) for each in metadata)

    def check(self) -> None:
        rows = self.rows("results.jsonl")
        counts = Counter((row["example_id"], row["rollout"]) for row in rows)
        assert {row["outcome"] for row in rows} == {"scored"}
        assert set(counts.values()) == {1}
        assert counts.keys() == {(task, number) for task in range(TASKS) for number in range(ROLLOUTS)}
        tries = Counter((task, number) for task, number, _, _ in self.said)
        for row in rows:
            assert row.get("attempts", 1) >= tries[row["example_id"], row["rollout"]], "a try is forgotten"
        kept = {identity(row) for row in rows}
        aside = {identity(row) for row in self.rows("superseded.jsonl")}
        for said in self.said:
            if said[2] == "scored":
                assert said in kept, "a rollout that was said to be finished is gone"
            else:
                assert said in aside, "the evidence of a failed rollout is gone"


def identity(row: dict[str, Any]) -> tuple[int, int, str, float]:
    return row["example_id"], row["rollout"], row["outcome"], row["timing"]["start_time"]


def pull_the_plug(folder: Path, kills: int, seed: int) -> None:
    """So many kills, over as many runs as they make."""
    chance = random.Random(seed)
    script = folder / "script.jsonl"
    number = 0
    while kills > 0:
        number += 1
        run = Watched(folder / f"run {number}", script)
        write_script(script, SCRIPT)
        while kills > 0 and not run.is_over():
            kills -= not run.played(chance.uniform(0, LONGEST_SECONDS))
        write_script(script, [step for step in SCRIPT if "error" not in step])
        assert run.is_over() or run.played()
        run.check()


def write_script(file: Path, steps: list[dict[str, Any]]) -> None:
    file.write_text("\n".join(map(json.dumps, steps)))


def test_killed_at_random_moments_a_run_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    pull_the_plug(tmp_path, kills=8, seed=8)


@pytest.mark.slow
def test_killed_two_hundred_times_it_still_loses_nothing(tmp_path: Path) -> None:
    pull_the_plug(tmp_path, kills=200, seed=200)
