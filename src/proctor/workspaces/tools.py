"""Shell and file tools over a workspace, as coding agents know them.

All they do is run commands there: a path is looked up inside, wherever that is, and a link planted by the
agent leads nowhere else. Knows nothing of sandboxes.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from proctor.contracts import CommandResult, Workspace
from proctor.tools import Tool, ToolError

LONGEST_OUTPUT = 30_000
LONGEST_LINE = 2_000
MOST_LINES = 2_000
MOST_FILES = 1_000
EDITED_BYTES = 512 * 1024
SKIPPED = (".git", "__pycache__", "node_modules", ".venv")

READ = f"""
[ -d "$1" ] && {{ echo "$1 is a folder" >&2; exit 1; }}
exec awk -v first="$2" -v last="$3" \\
  'NR > last {{ exit }} NR >= first {{ printf "%6d\\t%s\\n", NR, substr($0, 1, {LONGEST_LINE}) }}' < "$1"
"""
WRITE = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
CONTENT = f"""
[ -f "$1" ] || {{ echo "there is no file $1" >&2; exit 1; }}
[ "$(wc -c < "$1")" -le {EDITED_BYTES} ] || {{ echo "$1 is too large to be edited; use bash" >&2; exit 1; }}
exec base64 < "$1"
"""
SKIP = " -o ".join(f"-name {name}" for name in SKIPPED)
LIST = f"find . \\( {SKIP} \\) -prune -o \\( -type f -o -type l \\) -print | head -n 100000"
SEARCH = f"""
found=$(grep -rnIE {" ".join(f"--exclude-dir={name}" for name in SKIPPED)} -e "$1" -- "$2"); code=$?
printf '%s' "$found" | head -c 200000
exit $code
"""

SHELL = 'if command -v bash > /dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'


class ToolWorkspace(NamedTuple):
    """Where the tools work, and how long a command may take there."""

    workspace: Workspace
    seconds: float

    async def run(
        self, script: str, *words: str, seconds: float | None = None, stdin: bytes = b""
    ) -> CommandResult:
        limit = self.seconds if seconds is None else min(seconds, self.seconds)
        return await self.workspace.run(["sh", "-c", script, "sh", *words], seconds=limit, stdin=stdin)

    async def output(self, script: str, *words: str, stdin: bytes = b"") -> str:
        """What a script printed; a ToolError if it failed."""
        ran = await self.run(script, *words, stdin=stdin)
        if ran.code is None:
            raise ToolError(f"This took more than {self.seconds:g} s.")
        if ran.code != 0:
            raise ToolError(
                shorten_output(re.sub(r"^sh: (\d+: |line \d+: )?", "", ran.output.strip())) or "This failed."
            )
        return ran.output


@functools.cache
def workspace_tools() -> Mapping[str, Tool]:
    """The tools by name; where they work is still to be given."""
    functions = (bash, read_file, write_file, edit_file, list_files, search_files)
    return {tool.name: tool for tool in (Tool.of(function, hidden=("workspace",)) for function in functions)}


def bind_tools(workspace: Workspace, seconds: float) -> dict[str, Tool]:
    """The tools over one workspace."""
    bound = ToolWorkspace(workspace, seconds)
    return {
        name: replace(tool, function=functools.partial(tool.function, bound))
        for name, tool in workspace_tools().items()
    }


async def bash(workspace: ToolWorkspace, command: str, timeout_seconds: float | None = None) -> str:
    """Run a shell command in the workspace: what it prints, and its exit code if that is not 0.

    Every command has a fresh shell in the workspace's folder. Files stay; variables, the current folder and
    background processes do not outlive the command.

    Args:
        command: The command, run by bash.
        timeout_seconds: When to end it, if sooner than usual.
    """
    if "\0" in command:
        raise ToolError("A command cannot hold a NUL character.")
    ran = await workspace.run(SHELL, command, seconds=timeout_seconds)
    limit = workspace.seconds if timeout_seconds is None else min(timeout_seconds, workspace.seconds)
    ended = f"[ended after {limit:g} s]" if ran.code is None else f"[exit code {ran.code}]"
    printed = shorten_output(ran.output.rstrip())
    return printed if printed and ran.code == 0 else f"{printed}\n{ended}".lstrip()


async def read_file(workspace: ToolWorkspace, path: str, offset: int = 1, limit: int = MOST_LINES) -> str:
    """Read a text file, its lines numbered.

    Args:
        path: From the workspace's folder, or absolute.
        offset: The first line, from 1.
        limit: How many lines.
    """
    first = max(1, offset)
    last = first + max(1, limit) - 1
    return (
        shorten_output(await workspace.output(READ, option_safe_path(path), str(first), str(last)))
        or "(nothing)"
    )


async def write_file(workspace: ToolWorkspace, path: str, content: str) -> str:
    """Write a text file, whatever was there before; missing folders are made.

    Args:
        path: From the workspace's folder, or absolute.
        content: All of the file.
    """
    encoded = content.encode(errors="replace")
    await workspace.output(WRITE, option_safe_path(path), stdin=encoded)
    return f"Wrote {len(encoded):,} bytes to {path}."


async def edit_file(workspace: ToolWorkspace, path: str, old: str, new: str) -> str:
    """Replace a piece of a text file.

    Args:
        path: From the workspace's folder, or absolute.
        old: The text to replace; it must stand in the file exactly once.
        new: What stands there afterwards.
    """
    try:
        text = base64.b64decode(await workspace.output(CONTENT, option_safe_path(path))).decode()
    except (UnicodeDecodeError, binascii.Error):
        raise ToolError(f"{path} is not a text file.") from None
    count = text.count(old) if old else 0
    if count != 1:
        found = (
            f"stands in {path} {count} times; give more of what is around it"
            if count
            else f"is not in {path}"
        )
        raise ToolError(f"`old` {found if old else 'is empty'}. Nothing was changed.")
    await workspace.output(
        WRITE, option_safe_path(path), stdin=text.replace(old, new).encode(errors="replace")
    )
    return f"Edited {path}."


async def list_files(workspace: ToolWorkspace, pattern: str = "**/*") -> str:
    """List the files of the workspace whose path matches a pattern.

    Args:
        pattern: Such as `*.py`, `src/**/*.py` or `tests/**`; `**` crosses folders.
    """
    matches = re.compile(glob_expression(pattern)).fullmatch
    every = (line.removeprefix("./") for line in (await workspace.output(LIST)).splitlines())
    found = sorted(name for name in every if matches(name))
    more = f"\n[{len(found) - MOST_FILES:,} more]" if len(found) > MOST_FILES else ""
    return "\n".join(found[:MOST_FILES]) + more or "(no file matches)"


async def search_files(workspace: ToolWorkspace, pattern: str, path: str = ".") -> str:
    """Search text files for a regular expression: file, line number and line of each match.

    Args:
        pattern: An extended regular expression, as of `grep -E`.
        path: The file or folder to search.
    """
    ran = await workspace.run(SEARCH, pattern.replace("\0", ""), option_safe_path(path))
    if ran.code == 1 and not ran.output:
        return "(no match)"
    if ran.code is None or (ran.code > 1 and not ran.output):
        raise ToolError(
            f"This took more than {workspace.seconds:g} s." if ran.code is None else "This failed."
        )
    lines = (re.sub(r"^(\./)+", "", line)[:LONGEST_LINE] for line in ran.output.splitlines())
    return shorten_output("\n".join(lines))


def option_safe_path(path: str) -> str:
    """A path that no command takes for an option."""
    if not path or "\0" in path:
        raise ToolError("Give the path of a file.")
    return path if path.startswith("/") else f"./{path}"


def shorten_output(text: str) -> str:
    """A long text without its middle."""
    excess = len(text) - LONGEST_OUTPUT
    if excess <= 0:
        return text
    half = LONGEST_OUTPUT // 2
    return f"{text[:half]}\n\n[… {excess:,} characters left out …]\n\n{text[-half:]}"


def glob_expression(pattern: str) -> str:
    """A glob as a regular expression: `*` stays within a folder, `**` crosses them."""
    pattern = pattern.removeprefix("/workspace/").removeprefix("./")
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return "".join(parts.get(piece, re.escape(piece)) for piece in pieces)
