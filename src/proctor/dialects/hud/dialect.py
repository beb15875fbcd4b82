"""The HUD dialect: which environments it claims, what they use, and how they are loaded.

Reads source; runs nothing in this process. Knows nothing of how rollouts are played.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.contracts import EnvironmentProtocol
from proctor.dialects.environment import ForeignTasks
from proctor.dialects.hud import features
from proctor.dialects.hud.serving import HudRuntime
from proctor.dialects.isolated import Framework, find_python
from proctor.dialects.process import ChildCommand, ForeignProcess, refuse_requests
from proctor.errors import ConfigError
from proctor.packages.dialects import DialectFeature
from proctor.packages.loading import EnvironmentLocation, find_task_source
from proctor.packages.task_files import label_members
from proctor.runtimes.remote_environment import RemoteEnvironment

FRAMEWORK = Framework("hud", ("hud>=0.6.16,<0.7", "typer<0.21"), ">=3.11,<3.13")
"""Releases of `hud` up to 0.6.21 do not start with a later typer."""
DECLARED = re.compile(rb"\b(?:Environment|Taskset|Task)\b")
CHILD = Path(__file__).with_name("child.py")
QUIET = {
    "HUD_TELEMETRY_ENABLED": "false",
    "HUD_CLI_ANALYTICS_ENABLED": "0",
    "HUD_SKIP_VERSION_CHECK": "1",
}
"""Turns off telemetry."""


class HudDescription(msgspec.Struct, kw_only=True):
    """What the child reports once the tasks are read."""

    size: int
    version: str
    environment_version: str | None = None
    details: dict[str, Any] = {}


class HudDialect:
    """Tasks and environments that `import hud`."""

    title = "HUD"

    def claims(self, found: EnvironmentLocation, files: Sequence[Path]) -> bool:  # noqa: ARG002
        return any(DECLARED.search(file.read_bytes()) for file in files)

    def load(self, found: EnvironmentLocation, arguments: Mapping[str, Any]) -> EnvironmentProtocol:
        if arguments:
            raise ConfigError(f"{found.env_id} consists of HUD's tasks and takes no arguments; leave out -a.")
        source = found.path or find_task_source(found)
        if source is None:
            raise ConfigError(f"{found.env_id} is an installed package; name its tasks.py or its folder.")
        command = ChildCommand(
            name=found.env_id,
            python=find_python(found, FRAMEWORK),
            dialect_file=CHILD,
            params={"source": str(source)},
            folder=source if source.is_dir() else source.parent,
            variables=QUIET,
        )
        process = ForeignProcess(command, refuse_requests)
        process.start()
        described = msgspec.convert(process.described, HudDescription)
        return RemoteEnvironment(
            found.env_id,
            label_members(ForeignTasks(process, described.size)),
            HudRuntime(process),
            version=described.environment_version,
        )

    def describe(self, found: EnvironmentLocation, files: Sequence[Path]) -> Sequence[DialectFeature]:  # noqa: ARG002
        return features.describe(files)


DIALECT = HudDialect()
