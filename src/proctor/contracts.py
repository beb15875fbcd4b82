"""The contracts between the parts, on one page.

A model answers requests. An environment offers tasks and opens a session for each rollout. The engine
gives every session a seat: its only way to models, and the place where everything is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from proctor.errors import ModelError, RolloutError
from proctor.events import Event
from proctor.rollout import Score
from proctor.task import Task, TaskId
from proctor.trace import Content, Message, Reply, ToolSpec, Trace


class Request(msgspec.Struct, frozen=True):
    """What a model is asked once."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    sampling: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    route: TaskId | None = None
    """Requests of one route want the same server, which may still remember their common beginning."""


class Model(Protocol):
    """Answers requests; raises ModelError, and nothing else, when it cannot."""

    @property
    def name(self) -> str: ...
    async def check(self) -> None:
        """Raise before anything is paid for if no request can succeed."""

    async def complete(self, request: Request) -> Reply: ...
    async def close(self) -> None: ...


class Traffic(msgspec.Struct, eq=False):
    """What went through a door, kept up to date until it is closed."""

    answered: int = 0
    """Requests that the model answered."""
    refused: bool = False
    """More was asked than the door lets through."""
    failure: ModelError | None = None
    """Why the last request was not answered, if it was not."""
    main_failure: ModelError | None = None
    """The same of the last request in the main conversation, which what is asked beside it does not mend."""
    last_text: str = ""
    """What the model said last in the main conversation."""


class HttpEndpoint(msgspec.Struct, frozen=True):
    """An address where the evaluated model is asked over HTTP, by programs that want a URL."""

    url: str
    """Base of the API, without `/v1`."""
    key: str
    """Good for one rollout, until the door is closed."""
    socket: str
    """Path of a Unix socket that leads to the same place, for who has no network."""
    model: str = ""
    """The name of who answers there, whatever name is asked for."""
    traffic: Traffic = msgspec.field(default_factory=lambda: Traffic())
    """What went through so far."""


class CommandResult(msgspec.Struct, frozen=True):
    """A command that has ended."""

    code: int | None
    """Its exit code; None if it was ended for taking too long."""
    output: str = ""
    """What it printed; where that is long, the middle is left out and says so."""


class Workspace(Protocol):
    """A folder of one rollout, and a shell in it that sees nothing else of the machine."""

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        door: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
    ) -> CommandResult:
        """Run a command there: a text by `sh`, a list as it is. With a door, whatever it starts can reach
        that, and nothing else, over HTTP. `mounts` are paths of this machine that it may read as well."""


class Toolbox(Protocol):
    """What an environment lends to whoever works on a task."""

    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    @property
    def workspace(self) -> Workspace | None:
        """Where files are worked on, if the task has such a place; tools may lead there too."""

    async def call(self, name: str, arguments: str) -> Content:
        """Use a tool, with the arguments as the model wrote them; what goes wrong is told to the model."""


class Desk(Protocol):
    """All an agent may touch: the conversation so far, the tools, and the model that is evaluated."""

    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    async def ask(
        self, messages: Sequence[Message] | None = None, *, sampling: Mapping[str, Any] | None = None
    ) -> Reply:
        """Ask the model to go on with the conversation, or with another one; without another, the reply is
        added to the conversation."""

    async def use(self, call: Mapping[str, Any]) -> Message:
        """Make a tool call; its result is added to the conversation, in the order in which calls began."""

    def add(self, message: Message) -> None:
        """Add to the conversation without asking anybody; a system message goes before everything else."""

    def ended_by(self, reason: str, *, truncated: bool = False) -> None:
        """Say why the work is over; `truncated` when there was more to do."""

    @property
    def workspace(self) -> Workspace | None:
        """Where files are worked on, if the task has such a place."""

    def door(self, *, max_requests: int | None = None) -> AbstractAsyncContextManager[HttpEndpoint]:
        """An HTTP address of the model, for a program that wants one, until the block ends. What is asked
        there is recorded like everything else; after `max_requests` answers nothing more is."""


class Agent(Protocol):
    """Does what a task asks. One object serves many rollouts at once, so it keeps nothing of any."""

    @property
    def name(self) -> str: ...
    async def __call__(self, desk: Desk) -> str:
        """Work at the desk; what is returned is the answer. Cancelled when its time is up.

        An agent may also have `check(environment)`, which raises ConfigError before anything is paid for.
        """


class Seat(Protocol):
    """One rollout's place at the table, owned by the engine."""

    trace: Trace
    facts: Mapping[str, Any]
    """What per-request headers and saved columns may read; a session may put its own state here."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        sampling: Mapping[str, Any] | None = None,
        role: str = "agent",
        model: Model | None = None,
    ) -> Reply:
        """Ask the evaluated model, or another one; recorded either way, answered or not.

        `sampling` are defaults of the environment: what the user asked for wins, as long as the evaluated
        model is asked in its own role.
        """

    async def drive(self, messages: Sequence[Message], toolbox: Toolbox | None = None) -> str:
        """Have the chosen agent answer these messages, which follow whatever was said before.

        An agent whose time is up has answered what it came to until then; `trace.timed_out` says so, and
        from then on every answer is empty.
        """


class HttpEndpointOpener(Protocol):
    """Opens HTTP doors to the evaluated model."""

    def open(
        self, seat: Seat, max_requests: int | None = None
    ) -> AbstractAsyncContextManager[HttpEndpoint]: ...


class Session(Protocol):
    """One task being played once."""

    async def play(self, seat: Seat) -> None: ...
    async def score(self, seat: Seat) -> Score: ...


class Traits(msgspec.Struct, frozen=True):
    """What the engine must know about an environment before it plays."""

    wants_agent: bool = False
    """Its tasks are worked on by an agent that the user chooses; others own their turns."""
    grouped: bool = False
    """A task's rollouts are scored together."""
    rescores: bool = True
    """Scoring may be tried again without playing again."""
    capacity: int | None = None
    """Most sessions it can hold open at once."""


class EnvironmentProtocol(Protocol):
    """Where tasks come from, and where they are played."""

    @property
    def traits(self) -> Traits: ...
    def tasks(self) -> Iterable[Task]: ...
    def open(self, task: Task) -> AbstractAsyncContextManager[Session]: ...
    async def check(self) -> None:
        """Raise before anything is paid for if no rollout can succeed."""

    async def close(self) -> None:
        """Release what all rollouts shared."""


class GroupEnvironment(EnvironmentProtocol, Protocol):
    """An environment that scores all rollouts of a task at once."""

    async def score_group(self, played: Sequence[tuple[Session, Seat]]) -> Sequence[Score | RolloutError]: ...


class Listener(Protocol):
    """Hears every event, in order, at once. A slow one keeps a queue of its own."""

    def __call__(self, event: Event) -> None: ...
