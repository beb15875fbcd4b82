"""Whether the sandboxes that a task of Inspect names can be started on this machine.

Runs in the task's own Python, loaded by `child.py`. Knows nothing of Proctor or of evaluations.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

DOCKER = "docker"
COMMANDS = (("docker", "version"), ("docker", "compose", "version"))
"""What Inspect starts containers with."""
SECONDS = 30.0
ELSEWHERE = """-x '{"sandbox": "local"}'"""


class NoSandboxError(Exception):
    """The message says what is missing, and the way out."""

    proctor_details: ClassVar[Mapping[str, bool]] = {"is_refusal": True}


def require_sandboxes(task: Any, samples: Iterable[Any]) -> None:
    """Raise NoSandboxError if samples are played in containers and Docker does not work here."""
    named = [task.sandbox, *(sample.sandbox for sample in samples)]
    if not any(each is not None and each.type == DOCKER for each in named):
        return
    for words in COMMANDS:
        if (problem := find_problem(words)) is not None:
            raise NoSandboxError(
                f"its samples are played in containers, and `{' '.join(words)}` fails here: {problem}; "
                f"install Docker with Compose and start it, or give up isolation with {ELSEWHERE}"
            )


def find_problem(words: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        return "there is no such program"
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS:g} s"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else f"it exits with {done.returncode}"
