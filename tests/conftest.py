"""What every test may ask for: a user's empty home, a provider that does as it is told, the command line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import HealthCheck, settings

from tests.commands import COMMANDS
from tests.waiting import SECONDS

settings.register_profile("proctor", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("proctor")  # a busy machine is no reason to fail

KEYS = ("PRIME_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
SERVERS = ("PROCTOR_API_URL", "PROCTOR_API_KEY", "PROCTOR_CONTEXT", "PROCTOR_HUB_URL")
WIDTHS = ("COLUMNS", "LINES")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups first, the largest before: each keeps one worker busy, and must not be left for the end."""
    sizes = Counter(filter(None, map(group_of, items)))
    items.sort(key=lambda item: -sizes[group_of(item)])
    for item in items:
        if item.get_closest_marker("slow") or item.get_closest_marker("interop"):
            item.add_marker(pytest.mark.timeout(0))


def group_of(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return "" if mark is None else str(mark.args[0])


@pytest.fixture(scope="session", autouse=True)
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs of fixtures that outlive a test stay out of the developer's own list of runs."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        yield


@pytest.fixture(scope="session", autouse=True)
def end_of_commands() -> Iterator[None]:
    yield
    COMMANDS.close()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals and logins are the test's own, no keys, proxies or widths of the caller's terminal are used;
    the model cache is shared."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in (*KEYS, *SERVERS, *WIDTHS):
        monkeypatch.delenv(name, raising=False)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to stand in; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name, module in sys.modules.items() if is_below(tmp_path, module)]:
        del sys.modules[name]


def is_below(folder: Path, module: Any) -> bool:
    """Whether a module, or a package without a file, is in `folder`.

    Nothing else may be forgotten: an extension such as DuckDB's crashes when it is imported a second time.
    """
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(place is not None and Path(place).is_relative_to(folder) for place in places)


@pytest.fixture(scope="session")
def sandboxes() -> None:
    """Skips where no sandbox can be made."""
    from proctor.errors import ConfigError
    from proctor.support.threads import Threads
    from proctor.workspaces.spec import WorkspaceSpec

    try:
        asyncio.run(WorkspaceSpec("probe").check_usable((), Threads()))
    except ConfigError as error:
        pytest.skip(str(error))


# A provider


class Answer(TypedDict, total=False):
    """What the provider does with one request. Everything left out is as a healthy provider has it."""

    text: str
    reasoning_content: str
    tool_calls: Sequence[Mapping[str, Any]]
    """In OpenAI's shape."""
    message: Mapping[str, Any]
    """The whole message, instead of the three above."""
    finish_reason: str
    usage: Mapping[str, Any]
    status: int
    headers: Mapping[str, str]
    body: Any
    """The whole body: an object to send as JSON, or text to send as it is."""
    delay_seconds: float
    hangs: bool
    """Never answers."""
    closes: str
    """'mid_body', 'unanswered', 'reset' (unanswered, and rudely), or 'afterwards' (without announcing it)."""


Script = Sequence[str | Answer] | Mapping[str, str | Answer | Sequence[str | Answer]]


@dataclass
class Received:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    """By their names in lower case; a header that was sent twice has both values."""
    body: Any
    connection: int
    content: bytes
    """The body, byte for byte."""


@dataclass
class Provider:
    """An HTTP server on this machine that answers by a script.

    The script is a list of answers, taken in turn, of which the last is repeated; or a mapping from a piece
    of the last user message to such a list. Where it has nothing to say, the question is repeated.
    """

    script: Script = ()
    models: Answer = field(default_factory=lambda: Answer(body={"data": []}))
    """The answer to a request for the list of models."""
    url: str = ""
    requests: list[Received] = field(default_factory=list)
    """Everything that was posted."""
    checks: list[Received] = field(default_factory=list)
    """Everything else."""
    in_flight: int = 0
    most_in_flight: int = 0
    connections: int = 0
    _taken: dict[str, int] = field(default_factory=dict)
    _never: asyncio.Event = field(default_factory=asyncio.Event)
    """Held on to, or the collector would take tasks that wait for nothing anybody knows of."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        try:
            while (request := await read_request(reader, connection)) is not None:
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    if not await self.answer(request, writer):
                        return
                finally:
                    self.in_flight -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the client left
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def answer(self, request: Received, writer: asyncio.StreamWriter) -> bool:
        """Do what the script says; tell whether the connection stays open."""
        (self.requests if request.method == "POST" else self.checks).append(request)
        answer = self.next_answer(request) if request.method == "POST" else self.models
        if answer.get("hangs"):
            await self._never.wait()
        await asyncio.sleep(answer.get("delay_seconds", 0))
        closes = answer.get("closes")
        if closes == "reset":
            reset_on_close(writer)
        if closes in ("unanswered", "reset"):
            return False
        content = body_of(answer, request)
        writer.write(head_of(answer, len(content)) + (content[:-20] if closes == "mid_body" else content))
        await writer.drain()
        return closes is None

    def next_answer(self, request: Received) -> Answer:
        script = self.script if isinstance(self.script, Mapping) else {"": self.script}
        question = last_question(request.body)
        for piece, steps in script.items():
            listed = [steps] if isinstance(steps, (str, dict)) else list(steps)
            if listed and piece in question:
                number = self._taken[piece] = self._taken.get(piece, 0) + 1
                step = listed[min(number, len(listed)) - 1]
                return {"text": step} if isinstance(step, str) else step
        return {"text": question}


@pytest.fixture
def provider() -> Iterator[Callable[..., Provider]]:
    """Start providers: `provider("hello", {"status": 500})`, `provider({"task 3": {"hangs": True}})`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="provider", daemon=True)
    thread.start()
    servers: list[asyncio.Server] = []

    async def listen(server: Provider) -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        servers.append(listening)
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"

    async def shut_down() -> None:
        for server in servers:
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def start(*steps: str | Answer | Mapping[str, Any], models: Answer | None = None) -> Provider:
        by_question = len(steps) == 1 and isinstance(steps[0], dict) and not is_answer(steps[0])
        server = Provider(script=steps[0] if by_question else steps)  # type: ignore[arg-type]
        if models is not None:
            server.models = models
        asyncio.run_coroutine_threadsafe(listen(server), loop).result(SECONDS)
        return server

    yield start
    asyncio.run_coroutine_threadsafe(shut_down(), loop).result(SECONDS)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(SECONDS)
    loop.close()


def is_answer(step: Mapping[str, Any]) -> bool:
    return bool(step) and step.keys() <= Answer.__annotations__.keys()


async def read_request(reader: asyncio.StreamReader, connection: int) -> Received | None:
    """The next request of a connection, or None when the client is done."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode().split("\r\n")[:-2]
    method, path, _ = first.split(" ", 2)
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        before = headers.get(name.lower())
        headers[name.lower()] = value.strip() if before is None else f"{before}, {value.strip()}"
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(method, path, headers, json.loads(content) if content else None, connection, content)


def head_of(answer: Answer, length: int) -> bytes:
    lines = [f"HTTP/1.1 {answer.get('status', 200)} As Scripted", f"Content-Length: {length}"]
    headers = {"Content-Type": "application/json", **answer.get("headers", {})}
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def body_of(answer: Answer, request: Received) -> bytes:
    if "body" in answer:
        body = answer["body"]
        if isinstance(body, bytes):
            return body
        return body.encode() if isinstance(body, str) else json.dumps(body).encode()
    if answer.get("status", 200) >= 400:
        return json.dumps({"error": {"message": answer.get("text", "scripted to fail")}}).encode()
    finish_reason = answer.get("finish_reason", "tool_calls" if "tool_calls" in answer else "stop")
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason}
    if request.path.endswith("/chat/completions"):
        choice["message"] = answer.get("message") or {
            "role": "assistant",
            "content": answer.get("text"),
            "reasoning_content": answer.get("reasoning_content"),
            "tool_calls": answer.get("tool_calls"),
        }
    else:
        choice["text"] = answer.get("text", "")
    usage = answer.get("usage", {"prompt_tokens": 7, "completion_tokens": 3})
    return json.dumps({"id": "reply-1", "model": "served", "choices": [choice], "usage": usage}).encode()


def last_question(body: Any) -> str:
    if "messages" not in body:
        return str(body.get("prompt", ""))
    asked = [message["content"] for message in body["messages"] if message["role"] == "user"]
    return asked[-1] if asked and isinstance(asked[-1], str) else ""


def reset_on_close(writer: asyncio.StreamWriter) -> None:
    """Closing a socket that lingers for no time sends a reset instead of a farewell."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# The command line


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    stdout: str
    stderr: str
    cwd: Path

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The results that `--json` points to, by task and rollout."""
        rows = [json.loads(line) for line in (self.folder / "results.jsonl").read_text().splitlines()]
        return sorted(rows, key=lambda row: (row["example_id"], row["rollout"]))

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = json.loads((self.folder / "metadata.json").read_text())
        return metadata

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads(self.stdout)["summary"]
        return summary

    @property
    def folder(self) -> Path:
        return self.cwd / str(json.loads(self.stdout)["folder"])


@pytest.fixture
def proctor(tmp_path: Path) -> Callable[..., Ran]:
    """Runs the command line in a process of its own: `proctor("eval", "run", "echo", "-m", "scripted")`.

    `environ` adds to the environment variables, `under` is a command that starts it; further keywords go to
    subprocess.run.
    """

    def run(
        *words: str, environ: Mapping[str, str] | None = None, under: Sequence[str] = (), **settings: Any
    ) -> Ran:
        usual = {"cwd": tmp_path, "env": {**os.environ, **(environ or {})}, "timeout": 2 * SECONDS}
        if not under and settings.keys() <= {"cwd", "timeout", "input"}:
            done = COMMANDS.run(words, **{**usual, **settings})
            return Ran(done.returncode, done.stdout, done.stderr, tmp_path)
        captured = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
        done = subprocess.run(
            [*under, sys.executable, "-m", "proctor", *words], **{**usual, **captured, **settings}
        )
        return Ran(done.returncode, done.stdout, done.stderr, tmp_path)

    return run
