"""What one more single-turn rollout costs in CPU: played by verifiers itself, and by Proctor as it is.

CPU seconds of whole process trees, at two sizes, the two tools taking turns: the difference between the sizes
is free of what is paid once, such as importing verifiers.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.verifiers.answering import answering
from tests.interop.verifiers.conftest import ENVIRONMENTS
from tests.interop.verifiers.scripts import SCRIPTS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]

SIZES = (100, 1700)
AT_ONCE = "32"
MOST = 0.5
"""Of verifiers' own CPU per rollout. Starting up takes some seconds, more or less: with fewer rollouts the
difference between the sizes would be mostly that."""
FILE = ENVIRONMENTS / "arithmetic.py"
ORIGINAL = Path(__file__).with_name("original.py")


def measure_cpu(words: list[str], cwd: Path) -> float:
    """CPU seconds of a command and of everything it started and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_rollout_costs_at_most_half_the_cpu_of_verifiers_itself(
    verifiers_python: Path, tmp_path: Path
) -> None:
    theirs, ours = [], []
    for size in SIZES:
        arguments = json.dumps({"numbers": size})
        with answering(SCRIPTS["arithmetic"]) as url:
            words = [str(verifiers_python), str(ORIGINAL), str(FILE), url, "1", arguments, AT_ONCE]
            theirs.append(measure_cpu(words, tmp_path))
        with answering(SCRIPTS["arithmetic"]) as url:
            words = ["eval", "run", str(FILE), "-a", arguments, "-n", "-1", "-r", "1", "-c", AT_ONCE]
            words = [sys.executable, "-m", "proctor", *words, "-m", "m", "-b", url, "--json", "-s"]
            ours.append(measure_cpu(words, tmp_path))
    rollouts = SIZES[1] - SIZES[0]
    each = [1000 * (cpu[1] - cpu[0]) / rollouts for cpu in (theirs, ours)]
    figures = f"ms of CPU per rollout: verifiers {each[0]:.2f}, Proctor {each[1]:.2f}"
    sys.stdout.write(f"{figures}\n")
    assert each[1] <= MOST * each[0], figures
