"""Run a program and learn what it cost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PROCTOR = Path(sys.executable).with_name("proctor")


@dataclass(frozen=True)
class Cost:
    """What one child process took."""

    cpu_seconds: float
    wall_seconds: float
    peak_megabytes: float
    started_at: float
    output: str


def cost_of(*command: str | Path, cwd: Path, codes: Sequence[int] = (0,)) -> Cost:
    started_at = time.time()
    before = time.perf_counter()
    reading, writing = os.pipe()
    launcher = [sys.executable, "-S", "-E", str(HERE / "launcher.py"), str(writing)]
    child = subprocess.Popen(
        [*launcher, *map(str, command)],
        cwd=cwd,
        env=environment(cwd),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        pass_fds=(writing,),
    )
    os.close(writing)
    output, _ = child.communicate()
    with os.fdopen(reading) as report:
        exit_code, cpu_seconds, peak_kilobytes = report.read().split()
    if int(exit_code) not in codes:
        raise RuntimeError(f"{' '.join(map(str, command))} exited with {exit_code}:\n{output}")
    wall = time.perf_counter() - before
    return Cost(float(cpu_seconds), wall, float(peak_kilobytes) / 1024, started_at, output)


@contextmanager
def mock_endpoint(cwd: Path, latency_ms: float = 0) -> Iterator[str]:
    """The URL of a running mock."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    child = subprocess.Popen(
        [sys.executable, str(HERE / "mock_openai.py"), "--latency-ms", str(latency_ms)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def environment(cwd: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "XDG_STATE_HOME": str(cwd / "state")}


def evaluate(
    url: str,
    cwd: Path,
    *flags: str | int | Path,
    codes: Sequence[int] = (0,),
    source: str = "arithmetic.py",
) -> Cost:
    """`proctor eval run` of a measured environment against the mock."""
    return cost_of(*evaluate_command(url, *flags, source=source), cwd=cwd, codes=codes)


def evaluate_command(url: str, *flags: str | int | Path, source: str = "arithmetic.py") -> list[str | Path]:
    words = [str(flag) for flag in flags]
    return [PROCTOR, "eval", "run", HERE / source, "-m", "mock", "-b", url, "-A", *words]
