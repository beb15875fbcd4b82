"""Start something behind walls, or without them, and hear how it ended."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.isolation.limits import RunLimits
from proctor.runner import launch as walls
from proctor.runner.launch import ProcessExit, ProcessSpec, launch

SECONDS = 30.0
PYTHON = "/usr/bin/python3"


class Played(NamedTuple):
    ended: ProcessExit
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def spec_of(code: str, folder: Path, *command: str, **changes: Any) -> ProcessSpec:
    """A run that plays a piece of Python."""
    variables: Mapping[str, str] = changes.pop("variables", {})
    return ProcessSpec(
        run_id=f"test-{folder.parent.name}-{folder.name}"[:60],
        command=(changes.pop("python", PYTHON), "-c", textwrap.dedent(code), *command),
        folder=folder,
        variables={"PYTHONUNBUFFERED": "1", **variables},
        limits=changes.pop("limits", RunLimits(memory_mb=512, processes=100, disk_mb=100)),
        **changes,
    )


async def played(spec: ProcessSpec) -> Played:
    running = await launch(spec, allow_no_sandbox=True)
    try:
        async with asyncio.timeout(SECONDS):
            lines = [line async for line in running.output]
            return Played(await running.wait(), lines)
    finally:
        await running.end(0)


def play(spec: ProcessSpec) -> Played:
    return asyncio.run(played(spec))


def disable_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "has_bubblewrap", lambda: False)
