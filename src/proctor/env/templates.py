"""Write an environment as generator functions: ask on one line, score on the next.

    env = Environment("letters")

    @env.template()
    async def count(word: str, letter: str = "r"):
        answer = yield f"How many '{letter}'s are in '{word}'?"
        yield 1.0 if answer.strip() == str(word.count(letter)) else 0.0

    tasks = [count(word="strawberry"), count(word="banana", letter="a")]

Calling a template mints a task, which is plain data, and runs nothing. The user who evaluates chooses the
agent. Knows nothing of agents, models or where it is hosted.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args, overload

from proctor.contracts import PASS_THRESHOLD, Model, Traits
from proctor.env.capability import Capability, server_of
from proctor.env.judge import DEFAULT_PROMPT, JudgePrompt, JudgeRubric, read_verdict
from proctor.env.mcp import START_SECONDS, McpConnections, McpServer, require_mcp, validate_server
from proctor.env.minted_task import MintedTask
from proctor.env.multi_turn import LIVE
from proctor.env.restored_template import RestoredTemplateSession
from proctor.env.template import NAME, P, Template
from proctor.env.template_rollout import TemplateRollout, current_rollout
from proctor.env.template_session import TemplateSession
from proctor.errors import ConfigError, EnvError, GraderError, ModelError
from proctor.isolation.hidden_paths import find_sources
from proctor.optional_contracts import Fingerprint
from proctor.plugins import did_you_mean
from proctor.rollout import RecordedPlay, Subscore
from proctor.support.code_hash import hash_code
from proctor.support.threads import Threads, recommended_max_workers
from proctor.task import Task
from proctor.tools import Tool, ToolArgumentsError
from proctor.workspaces.spec import AUTO, COMMAND_SECONDS, Isolation, Limit, WorkspaceSpec, choose_limits
from proctor.workspaces.tools import workspace_tools

F = TypeVar("F", bound=Callable[..., Any])


class Environment:
    """Templates, the tools they offer to the agent, and what all rollouts share.

    `judge` is a model, the name of one, or None for the evaluated model itself. `capacity` is how many
    rollouts may be open at once, wherever they are played. `reusable` says that a rollout leaves nothing
    behind in its process, so that a runtime may use the process for another.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.1.0",
        description: str = "",
        judge: Model | str | None = None,
        capacity: int | None = None,
        reusable: bool = False,
        pass_threshold: float = PASS_THRESHOLD,
        capabilities: Iterable[Capability] = (),
    ) -> None:
        if not NAME.fullmatch(name):
            raise ConfigError(f"{name!r} cannot be an environment's name; use letters, digits and . _ : / -")
        self.name = name
        self.version = version
        self.description = description
        self.capacity = capacity
        self.reusable = reusable
        self.pass_threshold = pass_threshold
        self.templates: dict[str, Template[...]] = {}
        self.tools: dict[str, Tool] = {}
        self.workspaces: list[WorkspaceSpec] = []
        """Each rollout gets a folder of its own from every one of these."""
        self.servers: list[McpServer] = []
        """MCP servers with a connection per rollout; those in `shared_servers` have one for all."""
        self.shared_servers: list[McpServer] = []
        self.connections = McpConnections()
        self.threads = Threads()
        self._judges = JudgeRubric(judge=judge)
        self._hidden: list[Path] | None = None
        self._minted: dict[str, MintedTask] = {}
        self._initializers: list[Callable[[], Any]] = []
        self._shutdowns: list[Callable[[], Any]] = []
        self._starting = asyncio.Lock()
        self._reset_initializers()
        for capability in capabilities:
            self.add_capability(capability)

    # What an author writes

    def template(
        self,
        id: str | None = None,  # noqa: A002
        description: str = "",
        returns: Any = None,
    ) -> Callable[[Callable[P, AsyncGenerator[Any, Any]]], Template[P]]:
        """Turn a generator function into a template; `returns` is the type of the answer."""
        if id is not None and not isinstance(id, str):
            raise ConfigError("Write @env.template() with parentheses.")

        def make(function: Callable[P, AsyncGenerator[Any, Any]]) -> Template[P]:
            made = Template(self, function, id, description, returns)
            if made.id in self.templates:
                raise ConfigError(f"Two templates of {self.name!r} are called {made.id!r}; rename one.")
            self.templates[made.id] = made
            return made

        return make

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(self, *, parallel: bool = False) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, *, parallel: bool = False) -> Any:
        """Lend a function to the agent as a tool. With `parallel`, its calls may run beside other calls of
        the same reply; otherwise they are made one after the other."""
        if function is None:
            return partial(self.tool, parallel=parallel)
        try:
            made = Tool.of(function, parallel=parallel)
        except TypeError as error:
            raise ConfigError(f"{self.name!r}: {error}.") from error
        self._refuse_duplicates([made.name])
        self.tools[made.name] = made
        return function

    def workspace(
        self,
        source: str | Path | None = None,
        *,
        name: str = "workspace",
        network: bool = False,
        variables: Mapping[str, str] = {},
        mounts: Sequence[str | Path] = (),
        memory_mb: Limit = AUTO,
        processes: Limit = AUTO,
        file_mb: Limit = AUTO,
        disk_mb: Limit = AUTO,
        seconds: float = COMMAND_SECONDS,
        tools: bool = True,
        isolation: Isolation = "bwrap",
    ) -> WorkspaceSpec:
        """Give each rollout a folder of its own, with a shell that sees nothing else of the machine.

        The folder is a copy of `source`, which is relative to the file that calls this, or empty.
        `mounts` can be read there too. `isolation="none"` runs commands without a sandbox. Limits are sized
        to the machine unless you set them; None sets none.
        """
        beside = Path(sys._getframe(1).f_code.co_filename).resolve().parent
        made = WorkspaceSpec(
            name=name,
            source=None if source is None else beside / Path(source).expanduser(),
            network=network,
            variables=dict(variables),
            mounts=tuple(str((beside / Path(path).expanduser()).resolve()) for path in mounts),
            limits=choose_limits(memory_mb, processes, file_mb, disk_mb),
            seconds=seconds,
            tools=tools,
            isolation=isolation,
            beside=beside,
        )
        if isolation not in get_args(Isolation):
            raise ConfigError(f"Workspace {name!r}: isolation is 'bwrap' or 'none', not {isolation!r}.")
        if any(name == known.name for known in self.workspaces):
            raise ConfigError(f"Two workspaces of {self.name!r} are called {name!r}; give one another name=.")
        self._refuse_duplicates(workspace_tools() if tools else ())
        self.workspaces.append(made)
        return made

    def mcp_server(
        self,
        name: str = "tools",
        *,
        command: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        start_seconds: float = START_SECONDS,
        shared: bool = False,
    ) -> McpServer:
        """Lend the tools of an MCP server: a program to start, or the address of a running one.

        Each rollout gets a connection of its own, and so a program of its own, unless the server is
        `shared`, which suits servers that only read.
        """
        require_mcp()
        made = validate_server(
            McpServer(
                name=name,
                command=command,
                args=tuple(args),
                env=dict(env or {}),
                cwd=None if cwd is None else str(cwd),
                url=url,
                headers=dict(headers or {}),
                start_seconds=start_seconds,
            )
        )
        if any(name == known.name for known in (*self.servers, *self.shared_servers)):
            raise ConfigError(f"Two MCP servers of {self.name!r} are called {name!r}; rename one.")
        (self.shared_servers if shared else self.servers).append(made)
        return made

    def add_capability(self, capability: Capability) -> None:
        """Lend the tools of a server that runs already, or that an initializer has just started; one of the
        same name is replaced."""
        require_mcp()
        made = validate_server(server_of(capability))
        self.servers = [each for each in self.servers if each.name != made.name] + [made]

    def _refuse_duplicates(self, names: Iterable[str]) -> None:
        """Refuse a second tool of the same name."""
        lent = self.workspace_tools
        for name in names:
            if name in self.tools:
                raise ConfigError(f"Two tools of {self.name!r} are called {name!r}; rename one.")
            if name in lent:
                raise ConfigError(
                    f"A workspace of {self.name!r} already lends a tool called {name!r}; rename the other, "
                    "or pass env.workspace(…, tools=False)."
                )

    def initialize(self, function: F) -> F:
        """Call a function, async or not, before the first rollout."""
        self._initializers.append(function)
        self._reset_initializers()
        return function

    def shutdown(self, function: F) -> F:
        """Call a function, async or not, after the last rollout."""
        self._shutdowns.append(function)
        return function

    async def judge(
        self,
        answer: str,
        *,
        question: str = "",
        expected: object = "",
        prompt: str = DEFAULT_PROMPT,
        sampling: Mapping[str, Any] = {"temperature": 0},
        name: str = "judge",
        weight: float = 1.0,
    ) -> Subscore:
        """Ask the judge whether an answer is right: 1.0 if it says yes, 0.0 if it says no.

        `prompt` may use {question}, {answer} (the expected one) and {response}. Raises GraderError if the
        judge cannot be asked or its verdict cannot be read.
        """
        rollout = current_rollout()
        seat = None if rollout is None else rollout.seat
        if seat is None:
            raise GraderError(f"{self.name}.judge() was called outside a template; it needs a rollout")
        question_text = JudgePrompt(prompt).fill(question=question, answer=str(expected), response=answer)
        message = {"role": "user", "content": question_text}
        try:
            reply = await seat.complete(
                [message], sampling=sampling, role="judge", model=self._judges.model()
            )
        except ModelError as error:
            raise GraderError(f"the judge could not answer: {error}") from error
        return Subscore(name, float(read_verdict(reply.text)), weight, reply.text)

    # The contract

    @property
    def traits(self) -> Traits:
        return Traits(wants_agent=True, rescores=False, capacity=self.capacity)

    def tasks(self) -> Sequence[Task]:
        """Every task minted so far."""
        return list(self._minted.values())

    def open(self, task: Task) -> TemplateSession:
        return TemplateSession(self.create_rollout(task))

    def restore(self, task: Task, recorded: RecordedPlay) -> RestoredTemplateSession:
        """A session of a rollout that was played before, to be scored again."""
        return RestoredTemplateSession(self.create_rollout(task), recorded)

    def explain_unrestorable(self) -> str | None:
        if self.workspaces:
            return "it scores what an agent left in a workspace, and that folder is gone"
        if self.lends_tools:
            return "it lends tools, and what they changed is gone"
        return None

    def fingerprint(self) -> Fingerprint:
        """A template asks and scores in one function. Where it lends nothing, its prompts tell whether it
        still asks the same."""
        scoring = hash_code(self.templates, self._judges, without=LIVE)
        if not (self.lends_tools or self.workspaces):
            return Fingerprint("", scoring)
        lent = (self.tools, self.servers, self.shared_servers, self.workspaces)
        return Fingerprint(hash_code(self.templates, *lent, without=LIVE), scoring)

    @property
    def lends_tools(self) -> bool:
        """Whether there are tools other than those for workspaces."""
        return bool(self.tools or self.servers or self.shared_servers)

    @property
    def workspace_tools(self) -> frozenset[str]:
        """The names of the tools for workspaces."""
        return frozenset(workspace_tools() if any(spec.tools for spec in self.workspaces) else ())

    def create_rollout(self, task: Task) -> TemplateRollout:
        """A rollout of the task, not started yet."""
        return TemplateRollout(self, self.template_of(task), task.args)

    def template_of(self, task: Task) -> Template[...]:
        template = self.templates.get(task.template)
        if template is None:
            near = did_you_mean(task.template, self.templates)
            raise EnvError(f"{self.name!r} has no template {task.template!r}{near}")
        return template

    def check_task(self, task: Task) -> None:
        """Refuse a task that could not be started."""
        try:
            self.template_of(task).validate(task.args)
        except (EnvError, ToolArgumentsError) as error:
            raise ConfigError(f"Task {task.slug!r}: {error}") from error

    async def check(self) -> None:
        await self._judges.check()
        for spec in self.workspaces:
            await spec.check_usable(self.hidden_paths(), self.threads)

    def hidden_paths(self) -> list[Path]:
        """The source files of this environment, which no agent may read."""
        if self._hidden is None:
            templates = (template.function for template in self.templates.values())
            self._hidden = find_sources([*templates, *(tool.function for tool in self.tools.values())])
        return self._hidden

    async def start(self) -> None:
        """Call every initializer once. If one fails, the next rollout calls it again."""
        if not self._pending:
            return
        async with self._starting:
            while self._pending:
                await self.threads.call(self._pending[0])
                self._started = True
                self._pending.pop(0)

    async def close(self) -> None:
        """Call the shutdown functions; a later run initializes again."""
        failure: Exception | None = None
        for function in self._shutdowns if self._started or not self._initializers else ():
            try:
                await self.threads.call(function)
            except Exception as error:
                failure = failure or error
        self._reset_initializers()
        await self.connections.close()
        await self._judges.close()
        if failure is not None:
            raise failure

    def set_concurrency(self, concurrency: int) -> None:
        self.threads.resize(recommended_max_workers(concurrency))

    def keep(self, task: MintedTask) -> MintedTask:
        return self._minted.setdefault(task.slug, task)

    def _reset_initializers(self) -> None:
        self._pending = [*self._initializers]
        self._started = False
        self._starting = asyncio.Lock()
