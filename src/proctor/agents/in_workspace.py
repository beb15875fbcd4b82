"""Run a command-line agent program in a task's workspace, in its sandbox.

A workspace returns everything that was printed as one text. So a few lines of shell run the program there,
and separate its standard output from its standard error. Knows nothing of models or tasks.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from proctor.agents.program import KEPT_ERRORS, KEPT_OUTPUT, ProgramInvocation, ProgramResult
from proctor.contracts import HttpEndpoint, Workspace
from proctor.errors import AgentError

DAY_SECONDS = 24 * 3600.0
"""The rollout's own time limit comes earlier."""
NO_FILE = "no-file"

# What is printed goes through `tail`, since a file of all of it could fill the memory. Whatever the program
# left running holds those pipes open, and is ended before they are waited for.
AROUND = f"""
folder=$1 answer=$2 mark=$3 stdin=$4
shift 4
mkdir -m 700 "$folder" "$folder/home" && mkfifo "$folder/o" "$folder/e" || exit 126
trap 'rm -rf "$folder"' EXIT
cat >"$folder/prompt"
tail -c {KEPT_OUTPUT} <"$folder/o" >"$folder/out" &
tail -c {KEPT_ERRORS} <"$folder/e" >"$folder/err" &
apart=$(command -v setsid)
[ "$stdin" = prompt ] && stdin=$folder/prompt
$apart "$@" <"$stdin" >"$folder/o" 2>"$folder/e" &
program=$!
wait $program
code=$?
kill -s KILL -- -$program 2>/dev/null
wait
cat "$folder/err"
printf '\\n%s\\n' "$mark"
if [ -z "$answer" ]; then cat "$folder/out"
elif [ -f "$answer" ]; then tail -c {KEPT_OUTPUT} -- "$answer"
else printf '%s' "${{mark}}{NO_FILE}"; fi
exit $code
"""


class WorkspaceProgramRunner:
    """A workspace, for one run of a program."""

    def __init__(self, workspace: Workspace, mounts: Sequence[str], endpoint: HttpEndpoint) -> None:
        self._workspace = workspace
        self._mounts = mounts
        self._endpoint = endpoint
        self._mark = f"proctor-{secrets.token_hex(12)}"
        self._folder = f"/tmp/.{self._mark}"
        self.prompt_file = f"{self._folder}/prompt"

    async def run(self, invocation: ProgramInvocation) -> ProgramResult:
        answer_file = invocation.answer_file
        stdin = "prompt" if invocation.stdin else "/dev/null"
        around = [self._folder, answer_file or "", self._mark, stdin]
        ran = await self._workspace.run(
            ["sh", "-c", AROUND, "sh", *around, *invocation.words],
            seconds=DAY_SECONDS,
            stdin=invocation.prompt.encode(),
            # A home of its own: a program's own notes are not changes to the task's files.
            variables={"HOME": f"{self._folder}/home", **invocation.variables},
            endpoint=self._endpoint,
            mounts=self._mounts,
        )
        if ran.code is None:
            raise AgentError(f"{invocation.words[0]!r} took more than a day")
        return self._read(ran.code, ran.output, answer_file)

    async def close(self) -> None:
        """Nothing to do: the folder was removed with the program."""

    def _read(self, code: int, output: str, answer_file: str | None) -> ProgramResult:
        errors, mark, printed = output.partition(f"{self._mark}\n")
        if not mark:  # it never started, or printed so much that the beginning is lost
            return ProgramResult(code, output if answer_file is None else "", output[-KEPT_ERRORS:])
        if answer_file is None:
            return ProgramResult(code, printed.strip(), errors.strip())
        return ProgramResult(
            code, "", errors.strip(), None if printed == f"{self._mark}{NO_FILE}" else printed
        )
