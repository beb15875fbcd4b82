"""The contracts between the parts, on one page.

A model answers requests. An environment offers tasks and opens a session for each rollout. The engine gives
every session a seat: its only access to models, where everything is recorded. What an environment, agent,
provider or listener may offer beyond its contract is in `optional_contracts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from proctor.errors import ModelError, RolloutError
from proctor.events import Event
from proctor.rollout import RolloutKey, Score
from proctor.task import Task, TaskId
from proctor.trace import Content, Message, ModelCall, Piece, Reply, ToolSpec, Trace

PASS_THRESHOLD = 0.5
"""The reward from which a rollout counts as passed, unless its environment has its own."""


class PieceListener(Protocol):
    """Gets a reply's text piece by piece while it is written."""

    @property
    def is_begun(self) -> bool:
        """It got a piece, so that the request can no longer be sent again."""

    def __call__(self, piece: Piece) -> None: ...


class Request(msgspec.Struct, frozen=True):
    """One request to a model."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    sampling: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    route: TaskId | None = None
    """Requests of one route prefer the same server, which may have cached their common prefix."""
    pieces: PieceListener | None = None
    """Wants the text of the reply as it is written; a model that cannot stream leaves it out."""

    @property
    def is_begun(self) -> bool:
        """Parts of the reply were passed on, so that the request can no longer be sent again."""
        return self.pieces is not None and self.pieces.is_begun


class Model(Protocol):
    """Answers requests; raises ModelError, and nothing else, when it cannot."""

    @property
    def name(self) -> str: ...
    async def check(self) -> None:
        """Raise before the first model call if no request can succeed."""

    async def complete(self, request: Request) -> Reply: ...
    async def close(self) -> None: ...


class Traffic(msgspec.Struct, eq=False):
    """What passed through an HTTP endpoint, kept up to date until it is closed."""

    answered: int = 0
    """Requests that the model answered."""
    refused: bool = False
    """A request exceeded the endpoint's maximum."""
    failure: ModelError | None = None
    """Why the last request failed, if it did."""
    main_failure: ModelError | None = None
    """The same for the last request of the main conversation; requests beside it do not clear this."""
    last_text: str = ""
    """The model's last message in the main conversation."""


class HttpEndpoint(msgspec.Struct, frozen=True):
    """An HTTP address of the evaluated model, for programs that want a URL."""

    url: str
    """Base URL of the API, without `/v1`."""
    key: str
    """Valid for one rollout, until the endpoint is closed."""
    socket: str
    """Path of a Unix socket to the same endpoint, for programs without a network."""
    model: str = ""
    """The model that answers, whatever name a request gives."""
    traffic: Traffic = msgspec.field(default_factory=lambda: Traffic())
    """What has passed through so far."""


class CommandResult(msgspec.Struct, frozen=True):
    """A command that has exited."""

    code: int | None
    """Its exit code; None if it was killed for taking too long."""
    output: str = ""
    """What it printed; a note replaces the middle of a long output."""
    errors: str = ""
    """What it printed to standard error, where that was kept apart from its output."""


class Workspace(Protocol):
    """One rollout's folder, and a shell in it that sees nothing else of the machine."""

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        endpoint: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
    ) -> CommandResult:
        """Run a command: a string through `sh`, a list as it is. Its processes can reach `endpoint` over HTTP
        and nothing else on the network, and can read `mounts`, paths on this machine."""


class Toolbox(Protocol):
    """What an environment lends to the agent that works on a task."""

    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    @property
    def workspace(self) -> Workspace | None:
        """The task's workspace, if it has one; tools may use it too."""

    async def call(self, name: str, arguments: str) -> Content:
        """Call a tool with the arguments as the model wrote them; an error is returned for it to read."""


class Desk(Protocol):
    """All an agent may use: the conversation so far, the tools, and the evaluated model."""

    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    async def ask(
        self, messages: Sequence[Message] | None = None, *, sampling: Mapping[str, Any] | None = None
    ) -> Reply:
        """Ask the model to continue the conversation, adding its reply, or to continue other `messages`."""

    async def use(self, call: Mapping[str, Any]) -> Message:
        """Make a tool call; results are added to the conversation in the order in which the calls began."""

    def add(self, message: Message) -> None:
        """Add to the conversation without asking the model; a system message goes first."""

    def ended_by(self, reason: str, *, truncated: bool = False) -> None:
        """Record why the work ended; `truncated` if there was more to do."""

    @property
    def workspace(self) -> Workspace | None:
        """The task's workspace, if it has one."""

    def door(self, *, max_requests: int | None = None) -> AbstractAsyncContextManager[HttpEndpoint]:
        """Open an HTTP endpoint to the model, for a program that wants one, until the block ends. Its
        requests are recorded like all others; after `max_requests` answers, further ones are refused."""


class Agent(Protocol):
    """Works on tasks. One object serves many rollouts at once, so it must keep no state of any of them."""

    @property
    def name(self) -> str: ...
    async def __call__(self, desk: Desk) -> str:
        """Work at the desk and return the answer. Cancelled when its time is up."""


class Seat(Protocol):
    """One rollout's access to models, owned by the engine."""

    trace: Trace
    facts: Mapping[str, Any]
    """Read by per-request headers and saved columns; a session may put its own state here."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        sampling: Mapping[str, Any] | None = None,
        role: str = "agent",
        model: Model | None = None,
        pieces: PieceListener | None = None,
    ) -> Reply:
        """Ask the evaluated model, or another one; the call is recorded, answered or not.

        `sampling` holds the environment's defaults; the user's settings override them when the evaluated
        model is called in its own role. `pieces` gets the reply as it is written, where the model streams.
        """

    async def drive(self, messages: Sequence[Message], toolbox: Toolbox | None = None) -> str:
        """Have the chosen agent answer these messages, which follow the conversation so far.

        If the agent's time runs out, its answer is what it had by then and `trace.timed_out` is set; every
        later answer is empty.
        """

    def open_endpoint(self, max_requests: int | None = None) -> AbstractAsyncContextManager[HttpEndpoint]:
        """Open an HTTP endpoint to the evaluated model, for code that wants one, until the block ends."""


class HttpEndpointOpener(Protocol):
    """Opens HTTP endpoints to the evaluated model."""

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
    """An agent that the user chooses works on its tasks; other environments own their turns."""
    grouped: bool = False
    """A task's rollouts are scored together."""
    rescores: bool = True
    """Scoring may be retried without playing again."""
    capacity: int | None = None
    """How many sessions it can hold open at once."""
    play_limit: str = "--timeout"
    """The setting that limits the time of playing, for messages about it."""
    scoring_limit: str = "--scoring-timeout"
    """The same for scoring."""


class EnvironmentProtocol(Protocol):
    """Where tasks come from, and where they are played."""

    @property
    def traits(self) -> Traits: ...
    def tasks(self) -> Iterable[Task]: ...
    def open(self, task: Task) -> AbstractAsyncContextManager[Session]: ...
    async def check(self) -> None:
        """Raise before the first model call if no rollout can succeed."""

    async def close(self) -> None:
        """Release what all rollouts shared."""


class GroupEnvironment(EnvironmentProtocol, Protocol):
    """An environment that scores all rollouts of a task at once."""

    async def score_group(self, played: Sequence[tuple[Session, Seat]]) -> Sequence[Score | RolloutError]: ...


class ReplySource(Protocol):
    """Knows replies of one rollout that need not be asked for again."""

    def find(self, call: ModelCall, model: Model) -> Reply | None:
        """The reply to a call; each reply is given once for each time it was recorded."""

    def keep(self, call: ModelCall, reply: Reply) -> None:
        """Take note of how a call was answered that was not found."""


class ReplyStore(Protocol):
    """Knows replies of many rollouts."""

    def for_rollout(self, key: RolloutKey) -> ReplySource: ...


class Listener(Protocol):
    """Gets every event, in order, synchronously; keep a queue if yours is slow."""

    def __call__(self, event: Event) -> None: ...


def wants_traces(listener: Listener) -> bool:
    """Whether a listener looks at the traces of finished rollouts: it does unless it says otherwise. If no
    listener does, workers do not send traces."""
    return bool(getattr(listener, "wants_traces", True))
