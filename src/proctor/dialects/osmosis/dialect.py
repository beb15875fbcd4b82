"""The Osmosis dialect: entrypoints that build a rollout server with `osmosis_ai`.

The script is started in a Python that has the package, and spoken to over its HTTP protocol by `workflow/`.
Reads source; runs nothing in this process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.contracts import EnvironmentProtocol
from proctor.dialects.isolated import Framework, find_python
from proctor.dialects.names import find_names
from proctor.errors import ConfigError
from proctor.packages.dialects import DialectFeature
from proctor.packages.loading import EnvironmentLocation
from proctor.workflow.server_environment import ServerEnvironment

FRAMEWORK = Framework("osmosis_ai", ("osmosis-ai[server]>=0.3,<0.4",), ">=3.12")
OFFERED = re.compile(rb"\b(?:AgentWorkflow|Grader|create_rollout_server)\b")
SERVER = b"create_rollout_server"
NOTES = {
    "AgentWorkflow": "",
    "Grader": "a grader's own model calls are not recorded: its process has no key of the rollout",
    "LocalBackend": "",
    "create_rollout_server": "",
    "get_rollout_context": "",
}
UNSUPPORTED = {
    "HarborBackend": "it starts containers itself, and nothing of that was tried; Proctor plays Harbor's "
    "task folders",
}


class OsmosisDialect:
    """Rollouts that `import osmosis_ai`."""

    title = "Osmosis"

    def claims(self, found: EnvironmentLocation, files: Sequence[Path]) -> bool:  # noqa: ARG002
        return any(OFFERED.search(file.read_bytes()) for file in files)

    def load(self, found: EnvironmentLocation, arguments: Mapping[str, Any]) -> EnvironmentProtocol:
        """`tasks` are the rows that the recipe selected."""
        tasks: Any = arguments.get("tasks")
        if tasks is None or found.path is None:
            raise ConfigError(
                f"{found.env_id} is a rollout of Osmosis, whose tasks are in a dataset; run its recipe: "
                f"proctor eval run configs/eval/NAME.toml."
            )
        if not any(SERVER in file.read_bytes() for file in found.path.parent.rglob("*.py")):
            raise ConfigError(
                f"{found.path} defines classes of osmosis_ai but starts no server; add `app = "
                f"create_rollout_server(backend=LocalBackend(workflow=…, grader=…))` and run it with uvicorn "
                f"on the port in $_OSMOSIS_ROLLOUT_PORT, or import the classes from proctor."
            )
        return ServerEnvironment(tasks, found.path, find_python(found, FRAMEWORK))

    def describe(self, found: EnvironmentLocation, files: Sequence[Path]) -> Sequence[DialectFeature]:  # noqa: ARG002
        used = sorted({name for file in files for name in find_names(file, FRAMEWORK.package)})
        return [
            DialectFeature(
                name=name, supported=name not in UNSUPPORTED, note=UNSUPPORTED.get(name) or NOTES[name]
            )
            for name in used
            if name in UNSUPPORTED or name in NOTES
        ]


DIALECT = OsmosisDialect()
