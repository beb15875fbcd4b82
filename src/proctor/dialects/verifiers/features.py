"""What an environment uses of verifiers, by the names in its source, and whether that works here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.dialects.names import find_names
from proctor.packages.dialects import DialectFeature

PACKAGE = "verifiers"
SUPPORTED = frozenset(
    (
        *("Environment", "SingleTurnEnv", "MultiTurnEnv", "ToolEnv", "StatefulToolEnv", "EnvGroup"),
        *("Rubric", "RubricGroup", "MathRubric", "Parser", "XMLParser", "ThinkParser", "MaybeThinkParser"),
        *("stop", "cleanup", "teardown", "load_example_dataset", "extract_boxed_answer"),
        *("extract_hash_answer", "load_environment", "PythonEnv"),
        *("Taskset", "TasksetConfig", "Task", "TaskConfig", "TaskData", "Toolset", "reward", "metric"),
    )
)
NOTED = {
    "JudgeRubric": "the judge is asked by its own client, with its own key",
    "Judge": "the judge is asked by its own client, with its own key",
    "Harness": "may run what the model says, so it wants a container of this machine, or your consent",
    "MCPEnv": "its servers run on this machine, beside the environment",
    "GymEnv": "played as it is",
    "TextArenaEnv": "needs the package textarena among the environment's dependencies",
    "ReasoningGymEnv": "needs the package reasoning-gym among the environment's dependencies",
}
UNSUPPORTED = {
    "Env": "plays several agents in one episode; leave it out of `__all__` to evaluate the taskset alone",
    "SandboxEnv": "its sandboxes exist only at Prime Intellect; it runs only with your key there",
    "CliAgentEnv": "its agents run in Prime Intellect's sandboxes; it runs only with your key there",
    "HarborEnv": "its agents run in Prime Intellect's sandboxes; it runs only with your key there",
    "BrowserEnv": "needs Browserbase, or a sandbox at Prime Intellect",
    "OpenEnvEnv": "needs a sandbox at Prime Intellect",
}


def describe(files: Sequence[Path]) -> list[DialectFeature]:
    used = sorted({name for file in files for name in find_names(file, PACKAGE)})
    found = []
    for name in used:
        if name in UNSUPPORTED:
            found.append(DialectFeature(name=name, supported=False, note=UNSUPPORTED[name]))
        elif name in NOTED:
            found.append(DialectFeature(name=name, note=NOTED[name]))
        elif name in SUPPORTED:
            found.append(DialectFeature(name=name))
    return found
