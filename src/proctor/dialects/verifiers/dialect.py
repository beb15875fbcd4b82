"""The verifiers dialect: which environments it claims, what they use, and how they are loaded.

Reads source; runs nothing in this process. Knows nothing of how rollouts are played.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.contracts import EnvironmentProtocol
from proctor.dialects.environment import ForeignEnvironment
from proctor.dialects.isolated import Framework, find_python
from proctor.dialects.process import ChildCommand
from proctor.dialects.verifiers import features
from proctor.packages.dialects import DialectFeature
from proctor.packages.loading import EnvironmentLocation, module_file, source_files

FRAMEWORK = Framework("verifiers", ("verifiers<0.2",), ">=3.10,<3.14")
V1_FRAMEWORK = Framework("verifiers", ("verifiers>=0.4", "uv"), ">=3.11,<3.14")
"""Its harnesses are programs that `uv` prepares."""
LOADER = re.compile(rb"\bload_environment\b")
V1 = re.compile(
    rb"^[ \t]*(?:import[ \t]+verifiers\.v1\b|from[ \t]+verifiers(?:\.v1\b|[ \t]+import[ \t]+v1\b))",
    re.MULTILINE,
)
TASKSET = re.compile(rb"\bTaskset\b")
CLIENT = re.compile(rb"\bclient\b|\bAsyncOpenAI\b|\bOpenAI\b")
CHILD = Path(__file__).with_name("child.py")
TASKSET_CHILD = Path(__file__).with_name("taskset_child.py")


class VerifiersDialect:
    """Environments that `import verifiers as vf`."""

    title = "verifiers"

    def claims(self, found: EnvironmentLocation, files: Sequence[Path]) -> bool:  # noqa: ARG002
        return is_taskset(files) or any(LOADER.search(file.read_bytes()) for file in files)

    def load(self, found: EnvironmentLocation, arguments: Mapping[str, Any]) -> EnvironmentProtocol:
        files = source_files(found)
        if is_taskset(files):
            return load_taskset(found, arguments)
        params = {
            **locate_module(found),
            "env_id": found.env_id,
            "arguments": dict(arguments),
            "wants_endpoint": any(CLIENT.search(file.read_bytes()) for file in files if file.suffix == ".py"),
        }
        command = ChildCommand(
            name=found.env_id,
            python=find_python(found, FRAMEWORK),
            dialect_file=CHILD,
            params=params,
        )
        return ForeignEnvironment(found.env_id, command)

    def describe(self, found: EnvironmentLocation, files: Sequence[Path]) -> Sequence[DialectFeature]:  # noqa: ARG002
        return features.describe(files)


def is_taskset(files: Sequence[Path]) -> bool:
    """Whether the source is a taskset of the v1 engine; one with a `load_environment()` is not."""
    sources = [file.read_bytes() for file in files if file.suffix == ".py"]
    return (
        any(V1.search(source) for source in sources)
        and any(TASKSET.search(source) for source in sources)
        and not any(LOADER.search(source) for source in sources)
    )


def load_taskset(found: EnvironmentLocation, arguments: Mapping[str, Any]) -> EnvironmentProtocol:
    python = find_python(found, V1_FRAMEWORK)
    command = ChildCommand(
        name=found.env_id,
        python=python,
        dialect_file=TASKSET_CHILD,
        params={**locate_module(found), "arguments": dict(arguments)},
        variables={"PATH": os.pathsep.join((str(python.parent), os.environ.get("PATH", os.defpath)))},
    )
    return ForeignEnvironment(found.env_id, command)


def locate_module(found: EnvironmentLocation) -> dict[str, Any]:
    """How the child imports the environment: by a file, by a name from a folder, or by a name."""
    path = found.path
    if path is None:
        return {"module": found.module}
    if path.is_file():
        return {"module": found.module, "folder": str(path.parent), "file": str(path)}
    file = module_file(path, found.module)
    folder = path if file is None else file.parent.parent if file.name == "__init__.py" else file.parent
    return {"module": found.module, "folder": str(folder)}


DIALECT = VerifiersDialect()
