"""Find the program of a command-line agent: on PATH, or where npm installed it in the project.

Knows nothing of models, tasks or sandboxes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from proctor.agents.program import AgentProgram

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib")
"""What every sandbox shows."""


def first_word(program: AgentProgram) -> str:
    words = program.command.split() if isinstance(program.command, str) else program.command
    return words[0] if words else ""


def find_program(program: AgentProgram, path: str | None = None) -> Path | None:
    """The file that the command's first word runs, searched in its own folders and then in PATH."""
    usual = os.environ.get("PATH", os.defpath) if path is None else path
    found = shutil.which(first_word(program), path=os.pathsep.join([*program.path, usual]))
    return None if found is None else Path(found)


def with_npm_program(program: AgentProgram) -> AgentProgram:
    """The same program, found in the nearest `node_modules` if it is not on PATH."""
    first = first_word(program)
    if not first or "/" in first or find_program(program) is not None:
        return program
    for folder in (Path.cwd(), *Path.cwd().parents):
        binaries = folder / "node_modules" / ".bin"
        if (binaries / first).exists():
            paths, mounts = [str(binaries)], [str(folder / "node_modules")]
            node = shutil.which("node")
            if node is not None and not is_visible(Path(node), ()):  # programs of npm are started by it
                paths.append(str(Path(node).parent))
                mounts.append(str(install_folder(Path(node))))
            return msgspec.structs.replace(
                program, path=(*program.path, *paths), mounts=(*program.mounts, *mounts)
            )
    return program


def is_visible(file: Path, mounts: Sequence[str]) -> bool:
    """Whether a sandbox with these mounts shows a file and what it links to."""
    folders = [*SYSTEM_FOLDERS, *mounts]
    return all(any(path.is_relative_to(folder) for folder in folders) for path in (file, file.resolve()))


def install_folder(file: Path) -> Path:
    """The folder that most likely holds all of an installed program."""
    real = file.resolve()
    modules = next((folder for folder in real.parents if folder.name == "node_modules"), None)
    if modules is not None:
        return modules.parent.parent if modules.parent.name == "lib" else modules
    return real.parent.parent if real.parent.name == "bin" else real.parent


def suggest_agent_args(file: Path) -> str:
    """The --agent-args with which a program that the sandbox hides would be found there."""
    installed = install_folder(file)
    mounts = [installed] if file.is_relative_to(installed) else [installed, file.parent]
    settings = {"path": [str(file.parent)], "mounts": [str(folder) for folder in mounts]}
    return f"--agent-args '{json.dumps(settings)}'"
