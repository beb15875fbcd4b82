"""What an environment uses of verifiers, by the names in its source, and whether that works here."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from proctor.packages.dialects import DialectFeature

PACKAGE = "verifiers"
SUPPORTED = frozenset(
    (
        *("Environment", "SingleTurnEnv", "MultiTurnEnv", "ToolEnv", "StatefulToolEnv", "EnvGroup"),
        *("Rubric", "RubricGroup", "MathRubric", "Parser", "XMLParser", "ThinkParser", "MaybeThinkParser"),
        *("stop", "cleanup", "teardown", "load_example_dataset", "extract_boxed_answer"),
        *("extract_hash_answer", "load_environment", "PythonEnv"),
    )
)
NOTED = {
    "JudgeRubric": "the judge is asked by its own client, with its own key",
    "MCPEnv": "its servers run on this machine, beside the environment",
    "GymEnv": "played as it is",
    "TextArenaEnv": "needs the package textarena among the environment's dependencies",
    "ReasoningGymEnv": "needs the package reasoning-gym among the environment's dependencies",
}
UNSUPPORTED = {
    "SandboxEnv": "its sandboxes exist only at Prime Intellect; it runs only with your key there",
    "CliAgentEnv": "its agents run in Prime Intellect's sandboxes; it runs only with your key there",
    "HarborEnv": "its agents run in Prime Intellect's sandboxes; Proctor plays Harbor's task folders itself",
    "BrowserEnv": "needs Browserbase, or a sandbox at Prime Intellect",
    "OpenEnvEnv": "needs a sandbox at Prime Intellect",
}


def describe(files: Sequence[Path]) -> list[DialectFeature]:
    used = sorted({name for file in files for name in find_names(file)})
    found = []
    for name in used:
        if name in UNSUPPORTED:
            found.append(DialectFeature(name=name, supported=False, note=UNSUPPORTED[name]))
        elif name in NOTED:
            found.append(DialectFeature(name=name, note=NOTED[name]))
        elif name in SUPPORTED:
            found.append(DialectFeature(name=name))
    return found


def find_names(file: Path) -> Iterator[str]:
    """The names that a file takes from verifiers."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    aliases: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each for each in node.names if each.name.partition(".")[0] == PACKAGE]
            aliases.update(each.asname or each.name.partition(".")[0] for each in names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
            yield from (each.name for each in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield node.attr
