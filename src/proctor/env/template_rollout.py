"""One rollout of a template, on the environment's side: the generator, and what it lends to the agent.

An agent in this process and a client on a connection drive it through the same few methods. Knows nothing of
agents, engines or sockets.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

import msgspec

from proctor.contracts import Seat, Workspace
from proctor.env.exchange import Exchange
from proctor.env.mcp import McpConnections, McpServer, tools_by_name
from proctor.env.rewards import Grade
from proctor.env.tool_env import as_text, describe_tool_error, find_tool, replace_surrogates, run_tool
from proctor.errors import EnvError, GraderError, RolloutError, SpoiledWorkspaceError
from proctor.rollout import Score, Subscore
from proctor.support.threads import Threads
from proctor.tools import Tool
from proctor.trace import FileChange, Message, ToolSpec
from proctor.workspaces.folder import RolloutFolder
from proctor.workspaces.spec import WorkspaceSpec, current_folders
from proctor.workspaces.tools import bind_tools

MOST_TURNS = 1000
FILE_ERRORS = (
    errno.ENOENT,
    errno.EACCES,
    errno.EPERM,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ELOOP,
    errno.ENXIO,
    errno.ENAMETOOLONG,
)
"""What an agent can bring about in its folder; a full disk or a broken one is not the agent's doing."""

_current: ContextVar[TemplateRollout | None] = ContextVar("rollout", default=None)


def current_rollout() -> TemplateRollout | None:
    """The rollout whose template is running here, if any."""
    return _current.get()


class TemplateResources(Protocol):
    """What the environment provides to the rollouts of its templates."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...
    @property
    def threads(self) -> Threads: ...
    @property
    def workspaces(self) -> Sequence[WorkspaceSpec]: ...
    @property
    def servers(self) -> Sequence[McpServer]:
        """MCP servers of one rollout; `shared_servers` are those of all."""

    @property
    def shared_servers(self) -> Sequence[McpServer]: ...
    @property
    def connections(self) -> McpConnections: ...
    def hidden_paths(self) -> Sequence[Path]:
        """What the agent must not be able to read."""

    async def start(self) -> None:
        """Start what all rollouts share."""


class StartableTemplate(Protocol):
    """A template that can be started."""

    def start(self, inputs: Mapping[str, Any]) -> Exchange: ...


class TemplateRollout:
    """One rollout of a template: prompts come out, answers go in, and a grade ends it."""

    def __init__(
        self, resources: TemplateResources, template: StartableTemplate, inputs: Mapping[str, Any]
    ) -> None:
        self.seat: Seat | None = None
        """The rollout's access to models, once it is being played."""
        self.folders = folders_of(resources)
        self.toolbox: FunctionTools | None = None
        """What is lent to the agent, once the rollout has begun."""
        self.turns = 0
        self._resources = resources
        self._template = template
        self._inputs = inputs
        self._exchange: Exchange | None = None
        self.changes: list[FileChange] = []
        """What the agent changed in the folders, as of the last check."""
        self._closing = AsyncExitStack()

    async def _lend(self) -> FunctionTools | None:
        """All tools for the agent: functions, workspace tools, and those of MCP servers."""
        resources = self._resources
        over = [bind_tools(folder, spec.seconds) for spec, folder in self.folders.items() if spec.tools]
        functions = {name: tool for tools in (resources.tools, *over) for name, tool in tools.items()}
        if resources.servers or resources.shared_servers:
            functions = tools_by_name(
                await resources.connections.open(resources.servers, resources.shared_servers, self._closing),
                functions,
            )
        workspace = next(iter(self.folders.values()), None)
        if not functions and workspace is None:
            return None
        return FunctionTools(functions, resources.threads, workspace, self._running)

    async def begin(self) -> list[Message]:
        """Run up to the first yield: the prompt."""
        await self._resources.start()
        for folder in self.folders.values():
            await self._resources.threads.run(folder.make)
        self.toolbox = await self._lend()
        with self._running():
            self._exchange = self._template.start(self._inputs)
            prompt = await self._exchange.begin()
        for folder in self.folders.values():
            await self._resources.threads.run(folder.hand_over)
            await self._resources.threads.run(folder.take_snapshot)
        self.turns = 1
        return prompt

    @property
    def exchange(self) -> Exchange:
        if self._exchange is None:
            raise EnvError("the template has not begun")
        return self._exchange

    @property
    def ends_next(self) -> bool:
        """Whether the next answer is certainly the last, so that only scoring follows."""
        return self.exchange.ends_next

    async def reply(self, answer: str) -> list[Message] | Grade:
        """Run up to the next yield: another prompt, or the grade."""
        await self._record_changes()
        with self._running():
            step = await self._advance(answer)
        if isinstance(step, Grade):
            return step
        self.turns += 1
        for folder in self.folders.values():
            await self._resources.threads.run(folder.hand_over)
            folder.reopen()
        return step

    async def settle(self, answer: str) -> Grade:
        """The grade for an answer; any further prompt is answered with an empty text."""
        await self._record_changes()
        with self._running():
            for _ in range(MOST_TURNS):
                step = await self._advance(answer)
                if isinstance(step, Grade):
                    return step
                answer = ""
        raise GraderError(f"{self.exchange.where} keeps yielding prompts instead of a reward")

    async def _advance(self, answer: str) -> list[Message] | Grade:
        """The template's next step. If it stumbles over what the agent did to its own folder, the step is a
        grade of 0: an agent must not be able to escape its score."""
        try:
            return await self.exchange.reply(answer)
        except (SpoiledWorkspaceError, OSError) as error:
            if not self._is_agents_doing(error):
                raise
            note = f"what the agent left cannot be graded: {type(error).__name__}: {error}"
            return Grade(Score(0.0, {}, (Subscore("workspace", 0.0, note=note),)))

    def _is_agents_doing(self, error: SpoiledWorkspaceError | OSError) -> bool:
        if isinstance(error, SpoiledWorkspaceError):
            return True
        named = error.filename
        if error.errno not in FILE_ERRORS or not isinstance(named, str | bytes):
            return False
        path = Path(os.fsdecode(named))
        return any(path.is_relative_to(folder.path) for folder in self.folders.values())

    def metrics(self) -> dict[str, float]:
        """Counts to report beside the grade."""
        metrics = {} if self.exchange.yields == 2 else {"num_turns": float(self.turns)}
        return metrics if self.toolbox is None else {**metrics, **self.toolbox.metrics()}

    async def file_changes(self) -> list[FileChange]:
        """What the agent changed in the folders, from the first prompt until the grade, or until now."""
        if not all(folder.closed for folder in self.folders.values()):
            await self._record_changes()
        return self.changes

    async def _record_changes(self) -> None:
        """End the agent's processes and record its changes before the template touches the folders again."""
        if not self.folders:
            return
        changes: list[FileChange] = []
        for folder in self.folders.values():
            await folder.end_agent()
            found = await self._resources.threads.run(folder.changes)
            changes += found if len(self.folders) == 1 else prefix_paths(folder.spec.name, found)
        self.changes = changes

    async def close(self) -> None:
        try:
            for folder in self.folders.values():
                await folder.end_agent()
            if self._exchange is not None:
                with self._running():
                    await self._exchange.close()
        finally:
            try:
                await self._closing.aclose()
            finally:
                await close_all(self.folders.values())

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Let the template's own code find its rollout."""
        token, folders = _current.set(self), current_folders.set(self.folders)
        try:
            yield
        finally:
            current_folders.reset(folders)
            _current.reset(token)


def folders_of(resources: TemplateResources) -> dict[WorkspaceSpec, RolloutFolder]:
    if not resources.workspaces:
        return {}
    hidden = resources.hidden_paths()
    return {spec: RolloutFolder(spec, hidden, resources.threads) for spec in resources.workspaces}


async def close_all(folders: Iterable[RolloutFolder]) -> None:
    """Close them all, even if one cannot be removed."""
    ended = await asyncio.gather(*(folder.close() for folder in folders), return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException):
            raise error


def prefix_paths(name: str, changes: Sequence[FileChange]) -> list[FileChange]:
    return [msgspec.structs.replace(change, path=f"{name}/{change.path}") for change in changes]


class FunctionTools:
    """The tools of one rollout; their errors are returned to the model, and counted."""

    def __init__(
        self,
        functions: Mapping[str, Tool],
        threads: Threads,
        workspace: Workspace | None,
        running: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.functions = functions
        self.workspace = workspace
        self._running = running
        self.threads = threads
        self.tools: Sequence[ToolSpec] = tuple(tool.spec for tool in functions.values())
        self.calls = 0
        self.errors = 0

    async def call(self, name: str, arguments: str) -> str:
        self.calls += 1
        try:
            tool = find_tool(name, self.functions)
            with self._running():
                value = await run_tool(tool, tool.arguments(arguments), self.threads)
            return replace_surrogates(as_text(value))
        except SpoiledWorkspaceError as error:  # of the agent's own making
            self.errors += 1
            return replace_surrogates(describe_tool_error(error))
        except RolloutError:
            self.errors += 1
            raise
        except Exception as error:
            self.errors += 1
            return replace_surrogates(describe_tool_error(error))

    def metrics(self) -> dict[str, float]:
        return {"total_tool_calls": float(self.calls), "tool_errors": float(self.errors)}
