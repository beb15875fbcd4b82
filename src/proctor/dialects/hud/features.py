"""What an environment uses of HUD, by the names in its source, and whether that works here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from proctor.dialects.names import find_calls, find_names
from proctor.packages.dialects import DialectFeature

PACKAGE = "hud"
NAMES = {
    "Environment": "",
    "Task": "",
    "Taskset": "",
    "EvaluationResult": "",
    "SubScore": "",
    "Capability": "MCP servers and ssh shells are lent to the agent; other protocols are not",
    "BashGrader": "runs in the process of the environment, on this machine",
    "LLMJudgeGrader": "asks HUD's gateway with your HUD_API_KEY; those calls are not recorded here",
    "HUDRuntime": "where rollouts run is chosen by --runtime",
    "DockerRuntime": "where rollouts run is chosen by --runtime docker://IMAGE",
}
CALLS = {
    "template": "",
    "initialize": "",
    "shutdown": "",
    "workspace": "its shell reaches the agent over ssh; needs the extra `ssh` of Proctor",
    "mcp": "its tools reach the agent; needs the extra `mcp` of Proctor",
    "ssh": "its shell reaches the agent; needs the extra `ssh` of Proctor",
    "agent_config": "read by HUD's own agents only; use --max-steps and --timeout",
}
UNSUPPORTED = {
    "cdp": "a browser for the agent (cdp/1.3) cannot be lent; offer its actions as tools of an MCP server",
    "rfb": "a screen for the agent (rfb/3.8) cannot be lent; offer its actions as tools of an MCP server",
    "gym": "robots are driven by HUD's own agents only",
    "verifier": "a task that is graded by a second task is played by HUD's own runner only",
    "from_api": "tasks on HUD's platform; write them to a file with Taskset.to_file(…)",
}


def describe(files: Sequence[Path]) -> list[DialectFeature]:
    names = sorted({name for file in files for name in find_names(file, PACKAGE)})
    calls = sorted({name for file in files for name in find_calls(file)})
    return [*features_among(names, NAMES), *features_among(calls, CALLS)]


def features_among(used: Sequence[str], known: Mapping[str, str]) -> Iterator[DialectFeature]:
    for name in used:
        if name in UNSUPPORTED:
            yield DialectFeature(name=name, supported=False, note=UNSUPPORTED[name])
        elif name in known:
            yield DialectFeature(name=name, note=known[name])
