"""Run a module of Proctor itself in a sandbox, on a folder that is gone afterwards.

For work on what others have made, such as files and repositories. Knows nothing of what the module does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from proctor.isolation.limits import RunLimits
from proctor.packages.host_venv import host_import_paths, host_paths
from proctor.runner.launch import ProcessExit, ProcessSpec, launch


class SandboxRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a module may use on this machine."""

    seconds: float
    limits: RunLimits
    hidden: tuple[Path, ...] = ()
    allow_no_sandbox: bool = False
    work: Path | None = None
    """Where folders are made; None for the machine's temporary folder."""


async def run_module(
    module: str,
    request: msgspec.Struct,
    folder: Path,
    rules: SandboxRules,
    *,
    paths: Sequence[str] = (),
    outward: Path | None = None,
) -> ProcessExit:
    """Run a module that reads its request on standard input; raises TimeoutError."""
    spec = ProcessSpec(
        run_id=folder.name,
        command=(sys.executable, "-P", "-m", module),
        folder=folder,
        stdin=msgspec.json.encode(request),
        variables={"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": ":".join(host_import_paths())},
        paths=(*host_paths(), str(Path(sys.prefix)), *paths),
        hidden=rules.hidden,
        outward=outward,
        limits=rules.limits,
    )
    running = await launch(spec, allow_no_sandbox=rules.allow_no_sandbox)
    try:
        async with asyncio.timeout(rules.seconds):
            return await running.wait()
    finally:
        await running.end(0)
