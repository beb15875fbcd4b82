"""Run any command-line agent program, unmodified, with the prompt and an HTTP endpoint of the model.

What it asks goes through the gateway, so trace, tokens, limits and time-outs hold from outside, whatever the
program does or does not say about itself. Knows nothing of any particular program: those are in `programs/`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from proctor.agents.in_workspace import WorkspaceProgramRunner
from proctor.agents.locate import find_program, first_word, is_visible, suggest_agent_args, with_npm_program
from proctor.agents.on_host import HostProgramRunner
from proctor.agents.program import (
    LAST_MESSAGE,
    STDOUT,
    AgentProgram,
    ProgramInvocation,
    ProgramResult,
    build_invocation,
    resolve_program,
)
from proctor.config.endpoints import ModelPreference
from proctor.contracts import Desk, EnvironmentProtocol, HttpEndpoint, Workspace
from proctor.env.templates import Environment
from proctor.errors import AgentError, ConfigError, ContextTooLongError
from proctor.isolation.command_line import PATH
from proctor.optional_contracts import KeepsWorkspacesElsewhere
from proctor.support.processes import describe_exit
from proctor.trace import Message, text_of
from proctor.workspaces.spec import WorkspaceSpec

LONGEST_WORD = 128 * 1024
"""The longest argument the system accepts."""
KEPT_CHARACTERS = 2_000
NOT_FOUND = 127
PLAIN = re.compile(r"[\w./-]+")
"""A command without shell syntax."""


class ProgramRunner(Protocol):
    """Where a program runs."""

    @property
    def prompt_file(self) -> str: ...
    async def run(self, invocation: ProgramInvocation) -> ProgramResult: ...
    async def close(self) -> None: ...


class Command:
    """Runs a program in the task's workspace or, without one, in a fresh folder on this machine.

    The settings are those of `Program`; `program` names a TOML of them. `ignore_tools` runs it on tasks that
    lend tools it cannot reach.
    """

    def __init__(
        self,
        *,
        program: str | None = None,
        command: str | list[str] | None = None,
        env: Mapping[str, str] | None = None,
        answer: str | None = None,
        max_steps: int | None = None,
        path: Sequence[str] | None = None,
        mounts: Sequence[str] | None = None,
        success_codes: Sequence[int] | None = None,
        ignore_tools: bool = False,
    ) -> None:
        settings: dict[str, Any] = {
            "command": command,
            "env": env,
            "answer": answer,
            "max_steps": max_steps,
            "path": path,
            "mounts": mounts,
            "success_codes": success_codes,
        }
        self.program = with_npm_program(resolve_program(program, settings))
        self.name = self.program.name
        self.ignore_tools = ignore_tools
        self.prefers = ModelPreference(
            model=self.program.model,
            provider=self.program.provider,
            client_type=self.program.client_type,
        )

    def check(self, environment: EnvironmentProtocol) -> None:
        """Raise before the first model call if the program could not run on any task of the environment."""
        for member in getattr(environment, "members", {}).values():
            self.check(member)
        if isinstance(environment, KeepsWorkspacesElsewhere):
            if (where := environment.distant_workspaces) is not None:
                raise ConfigError(describe_distant_workspace(self.name, where))
            for known in environment.known.values():
                self.check(known)
        if not isinstance(environment, Environment):
            return
        if environment.workspaces:
            self._check_visible(environment.workspaces)
            return
        if environment.tools and not self.ignore_tools:
            raise ConfigError(describe_unreachable_tools(self.name, list(environment.tools)))
        if (missing := find_missing_command(self.program)) is not None:
            raise ConfigError(describe_missing_program(missing, self.name))

    def _check_visible(self, workspaces: Sequence[WorkspaceSpec]) -> None:
        """Refuse a program that is on this machine and that no sandbox would show."""
        first, mounts = first_word(self.program), [*self.program.mounts, *workspaces[0].mounts]
        has_own_path = "PATH" in {**workspaces[0].variables, **self.program.env}
        if not PLAIN.fullmatch(first) or "/" in first or has_own_path or workspaces[0].isolation == "none":
            return
        inside = find_program(self.program, PATH)
        if inside is not None and is_visible(inside, mounts):
            return
        file = find_program(self.program)
        if file is None:
            if (missing := find_missing_command(self.program)) is not None:
                raise ConfigError(describe_missing_program(missing, self.name))
        elif not is_visible(file, mounts):
            raise ConfigError(
                f"{first!r}, which agent {self.name!r} runs, is at {str(file)!r}, which the sandbox of a "
                f"workspace does not show; pass {suggest_agent_args(file)}."
            )

    async def __call__(self, desk: Desk) -> str:
        if desk.tools and desk.workspace is None and not self.ignore_tools:
            raise AgentError(describe_unreachable_tools(self.name, [tool.name for tool in desk.tools]))
        prompt = prompt_of(desk.messages)
        async with desk.door(max_requests=self.program.max_steps) as endpoint:
            ended = await self._run(desk, prompt, endpoint)
        self._judge(ended, desk, endpoint)
        answer = self._answer(ended, endpoint)
        if answer.strip() != endpoint.traffic.last_text.strip():
            desk.add({"role": "assistant", "content": answer})  # the graded answer belongs in the trace
        return answer

    async def _run(self, desk: Desk, prompt: str, endpoint: HttpEndpoint) -> ProgramResult:
        workspace, program = desk.workspace, self.program
        runner: ProgramRunner = (
            HostProgramRunner()
            if workspace is None
            else WorkspaceProgramRunner(workspace, program.mounts, endpoint)
        )
        try:
            invocation = build_invocation(program, prompt, runner.prompt_file, endpoint)
            if max(len(word.encode()) for word in invocation.words) >= LONGEST_WORD:
                raise AgentError(
                    f"the prompt is too long for an argument of {self.name}; use {{prompt_file}}, or leave "
                    "{prompt} out to get it on standard input"
                )
            variables = {**self._search_path(workspace), **invocation.variables}
            return await runner.run(msgspec.structs.replace(invocation, variables=variables))
        finally:
            await runner.close()

    def _search_path(self, workspace: Workspace | None) -> dict[str, str]:
        """PATH with the program's own folders before the others, if it has any."""
        if not self.program.path:
            return {}
        usual = PATH if workspace is not None else os.environ.get("PATH", os.defpath)
        return {"PATH": os.pathsep.join([*self.program.path, usual])}

    def _judge(self, ended: ProgramResult, desk: Desk, endpoint: HttpEndpoint) -> None:
        """Raise the failure that ended the work, if any. A program that fails after the model did is not to
        blame, nor one whose requests were used up."""
        traffic, is_well = endpoint.traffic, ended.code in self.program.success_codes
        if traffic.refused:
            return
        failure = traffic.main_failure or (None if is_well else traffic.failure)
        if isinstance(failure, ContextTooLongError) and is_well:
            desk.ended_by("prompt_too_long", truncated=True)
            return
        if failure is not None:
            raise failure
        if not is_well:
            raise AgentError(f"{self.name} {describe_end(ended.code)}: {output_tail(ended)}")
        if not (traffic.answered or ended.stdout or ended.file):
            raise AgentError(
                f"{self.name} never called the model and printed nothing; does it read the URL from "
                f"OPENAI_BASE_URL or ANTHROPIC_BASE_URL? {ended.stderr[-KEPT_CHARACTERS:]}".strip()
            )

    def _answer(self, ended: ProgramResult, endpoint: HttpEndpoint) -> str:
        where = self.program.answer
        if where == LAST_MESSAGE:
            return endpoint.traffic.last_text
        if where == STDOUT:
            return ended.stdout
        if ended.file is None and not endpoint.traffic.refused:
            raise AgentError(f"{self.name} did not write {where!r}, which was to hold its answer")
        return ended.file or ""


def prompt_of(messages: Sequence[Message]) -> str:
    """The prompt: all messages since the last answer, system messages first."""
    new: list[Message] = []
    for message in reversed(messages):
        if message.get("role") in ("assistant", "tool"):
            break
        new.insert(0, message)
    if any(part.get("type") != "text" for each in new for part in parts_of(each)):
        raise AgentError("the task contains more than text, but a command-line program takes only text")
    new.sort(key=lambda each: each.get("role") != "system")
    return "\n\n".join(text for each in new if (text := text_of(each)))


def parts_of(message: Message) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else ()


def describe_unreachable_tools(name: str, tools: Sequence[str]) -> str:
    return (
        f"The tasks lend tools ({', '.join(tools)}), which {name!r}, a separate program, cannot reach; "
        "give the tasks a workspace, or pass --agent-args '{\"ignore_tools\": true}'."
    )


def describe_distant_workspace(name: str, where: str) -> str:
    return (
        f"{name!r} is a separate program that works in the task's workspace, which is at {where}, and from "
        "there it could not reach its model through this machine. Leave out --runtime, or pass --runtime "
        "local; agents that work with tools, such as tool_loop or claude, play there too."
    )


def describe_missing_program(missing: str, name: str) -> str:
    return (
        f"{missing!r}, which agent {name!r} runs, is not on this machine: neither on PATH nor in a "
        "node_modules folder here. Install it, or name its folder: "
        '--agent-args \'{"path": ["/folder/of/it"]}\'.'
    )


def find_missing_command(program: AgentProgram) -> str | None:
    """The command if this machine lacks it, as far as can be seen; None if it exists."""
    first = first_word(program)
    if find_program(program) is not None:
        return None
    if not isinstance(program.command, str):
        return first
    found = subprocess.run(["sh", "-c", 'command -v "$1"', "sh", first], capture_output=True, check=False)
    return first if found.returncode and PLAIN.fullmatch(first) else None


def describe_end(code: int) -> str:
    return describe_exit(code) + (" (no such command)" if code == NOT_FOUND else "")


def output_tail(ended: ProgramResult) -> str:
    return (ended.stderr or ended.stdout)[-KEPT_CHARACTERS:] or "it printed nothing"


claude_cli = partial(Command, program="claude")
codex_cli = partial(Command, program="codex")
