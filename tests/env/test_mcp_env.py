"""What someone whose tools live in MCP servers would notice."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from proctor.env.mcp import McpServer
from proctor.env.mcp_env import McpEnv
from proctor.env.state import State
from proctor.errors import ConfigError
from proctor.models.scripted import Scripted, Step
from proctor.rollout import Rollout

Play = Callable[..., list[Rollout]]

ONE_TASK = [{"question": "Use your tools."}]

SERVER = """
import json, os, sys

counted = 0
kind = sys.argv[1]


def refuse(code, message, **data):
    return {"error": {"code": code, "message": message, "data": data}}


def text(words, is_error=False):
    return {"content": [{"type": "text", "text": words}], "isError": is_error}


def call(name, arguments):
    global counted
    match name:
        case "count":
            counted += arguments.get("by", 1)
            return text(str(counted))
        case "fail":
            return text("the drawer is stuck", is_error=True)
        case "show.all":
            image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            note = {"type": "resource", "resource": {"uri": "note:1", "text": "a note"}}
            return {"content": [{"type": "text", "text": "look:"}, image, note]}
        case "weigh":
            return {"content": [], "structuredContent": {"grams": 5}}
        case "variable":
            return text(str(os.environ.get(arguments["name"])))
        case "die":
            print("out of memory", file=sys.stderr, flush=True)
            os._exit(1)
    return None


def tool(name):
    schema = {"type": "object", "properties": {"by": {"type": "integer"}}}
    return {"name": name, "description": f"Will {name}.", "inputSchema": schema}


def answer(method, params):
    modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if kind == "modern" else {}
    match method:
        case "initialize" if kind == "modern":
            return refuse(-32022, "too old", supported=["2026-07-28"], requested="2025-11-25")
        case "server/discover" if kind == "modern":
            about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            return {"result": about | modern}
        case "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "drawer", "version": "1"}}
            return {"result": about | {"protocolVersion": params["protocolVersion"]}}
        case "tools/list" if "cursor" not in params:
            return {"result": {"tools": [tool("count"), tool("fail")], "nextCursor": "2"} | modern}
        case "tools/list":
            names = ["show.all", "weigh", "variable", "die", "refuse"]
            return {"result": {"tools": [tool(name) for name in names]} | modern}
        case "tools/call":
            result = call(params["name"], params.get("arguments", {}))
            return refuse(-32000, "not today") if result is None else {"result": result | modern}
    if kind == "old":
        os._exit(1)  # as some do when the first request is not the handshake
    return refuse(-32601, "no such method")


print("noise on stderr", file=sys.stderr, flush=True)
for line in sys.stdin:
    if kind == "noisy":
        print("noise on stdout", flush=True)
    message = json.loads(line)
    if "id" in message:
        reply = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"""

PACKAGED = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("packaged")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run()
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("servers")
    (folder / "drawer.py").write_text(SERVER)
    (folder / "packaged.py").write_text(PACKAGED)
    return folder


@pytest.fixture
def drawer(folder: Path) -> Callable[..., McpServer]:
    """A server that counts for as long as it lives."""

    def drawer(name: str = "drawer", kind: str = "", **settings: Any) -> McpServer:
        return McpServer(
            name=name, command=sys.executable, args=["-S", str(folder / "drawer.py"), kind], **settings
        )

    return drawer


Drawer = Callable[..., McpServer]


def python(code: str, **settings: Any) -> McpServer:
    return McpServer(name="broken", command=sys.executable, args=["-S", "-c", code], **settings)


def ask(*calls: str | tuple[str, Mapping[str, Any] | str]) -> Step:
    pairs = [(call, {}) if isinstance(call, str) else call for call in calls]
    return Step(tool_calls=[{"name": name, "arguments": arguments} for name, arguments in pairs])


def heard(rollout: Rollout) -> list[str]:
    return [message["content"] for message in rollout.trace.completion if message["role"] == "tool"]


def failure(rollout: Rollout) -> str:
    assert rollout.failure is not None
    assert rollout.outcome == "environment_error"
    return rollout.failure.message


# Programs


def test_a_model_sees_and_calls_the_tools_of_a_server(play: Play, drawer: Drawer) -> None:
    model = Scripted([ask(("count", {"by": 3})), ask("count"), "done"])
    [rollout] = play(McpEnv(ONE_TASK, servers=[drawer()]), model)

    assert heard(rollout) == ["3", "4"]
    offered = model.requests[0].tools
    assert [tool.name for tool in offered][:4] == ["count", "fail", "show_all", "weigh"]
    assert offered[0].description == "Will count."
    assert offered[0].parameters == {"type": "object", "properties": {"by": {"type": "integer"}}}
    assert rollout.score is not None
    assert rollout.score.metrics["total_tool_calls"] == 2.0
    assert rollout.score.metrics["count_calls"] == 2.0
    assert rollout.score.metrics["tool_errors"] == 0.0


def test_a_server_made_with_the_mcp_package_works(play: Play, folder: Path) -> None:
    server = {"name": "packaged", "command": sys.executable, "args": [str(folder / "packaged.py")]}
    script = [ask(("add", {"a": 2, "b": 3}), ("add", {"a": "two", "b": 3})), "5"]
    [rollout] = play(McpEnv(ONE_TASK, servers=[server]), script)

    right, wrong = heard(rollout)
    assert right == "5"
    assert "unable to parse string as an integer" in wrong
    assert rollout.score is not None
    assert rollout.score.metrics["tool_errors"] == 1.0


def test_what_a_server_remembers_stays_in_its_rollout(play: Play, drawer: Drawer) -> None:
    env = McpEnv(ONE_TASK, servers=[drawer()])
    rollouts = play(env, [ask("count"), "done"], rollouts_per_task=3, at_once=1)

    assert [heard(rollout) for rollout in rollouts] == [["1"], ["1"], ["1"]]


def test_a_shared_server_is_one_for_the_whole_run(play: Play, drawer: Drawer) -> None:
    env = McpEnv(ONE_TASK, servers=[drawer()], per_rollout=False)
    rollouts = play(env, [ask("count"), "done"], rollouts_per_task=3, at_once=1)

    assert sorted(heard(rollout)[0] for rollout in rollouts) == ["1", "2", "3"]


def test_a_shared_server_answers_many_rollouts_at_once(play: Play, drawer: Drawer) -> None:
    tasks = [{"question": f"question {number}."} for number in range(10)]
    script = {f"question {number}.": [ask("count"), "done"] for number in range(10)}
    rollouts = play(McpEnv(tasks, servers=[drawer()], per_rollout=False), script)

    assert sorted(int(heard(rollout)[0]) for rollout in rollouts) == list(range(1, 11))


def test_names_that_two_servers_share_get_the_servers_name_in_front(play: Play, drawer: Drawer) -> None:
    def weigh() -> str:
        return "by hand"

    env = McpEnv(ONE_TASK, servers=[drawer("left"), drawer("right")], tools=[weigh])
    model = Scripted([ask(("left_count", {"by": 2}), "right_count", "weigh", "left_weigh"), "done"])
    [rollout] = play(env, model)

    assert heard(rollout) == ["2", "1", "by hand", '{"grams": 5}']
    names = [tool.name for tool in model.requests[0].tools]
    assert names[:3] == ["weigh", "left_count", "left_fail"]
    assert len(set(names)) == 15


def test_a_failure_the_server_reports_is_told_to_the_model_and_counted(play: Play, drawer: Drawer) -> None:
    script = [ask("fail", ("count", "{broken"), "cuont"), "done"]
    [rollout] = play(McpEnv(ONE_TASK, servers=[drawer()]), script)

    reported, broken, unknown = heard(rollout)
    assert reported == "the drawer is stuck"
    assert "not valid JSON" in broken
    assert unknown == "There is no tool 'cuont'; did you mean 'count'?"
    assert rollout.score is not None
    assert rollout.score.metrics["tool_errors"] == 3.0


def test_results_of_every_kind_become_text(play: Play, drawer: Drawer) -> None:
    [rollout] = play(McpEnv(ONE_TASK, servers=[drawer()]), [ask("show_all", "weigh"), "done"])

    assert heard(rollout) == ["look:\n[image/png, which cannot be shown]\na note", '{"grams": 5}']


def test_a_server_gets_the_variables_it_was_given_and_no_others(
    play: Play, drawer: Drawer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    calls = ask(("variable", {"name": "DRAWER"}), ("variable", {"name": "SECRET_KEY"}))
    [rollout] = play(McpEnv(ONE_TASK, servers=[drawer(env={"DRAWER": "top"})]), [calls, "done"])

    assert heard(rollout) == ["top", "None"]


def test_a_server_that_dies_ends_its_rollout_only(play: Play, drawer: Drawer) -> None:
    tasks = [{"question": "break it"}, {"question": "use it"}]
    script = {"break": [ask("die", "die"), "never asked"], "use": [ask("count"), "done"]}
    broken, fine = play(McpEnv(tasks, servers=[drawer()]), script)

    assert failure(broken) == "MCP server 'drawer' was lost: Connection closed (last output: out of memory)"
    assert broken.failure is not None
    assert broken.failure.transient
    assert len(broken.trace.calls) == 1
    assert heard(fine) == ["1"]


def test_a_shared_server_that_dies_is_started_again_for_the_next_rollout(play: Play, drawer: Drawer) -> None:
    tasks = [{"question": "break it"}, {"question": "use it"}]
    script = {"break": [ask("count"), ask("die")], "use": [ask("count"), "done"]}
    broken, fine = play(McpEnv(tasks, servers=[drawer()], per_rollout=False), script, at_once=1)

    assert "was lost" in failure(broken)
    assert heard(fine) == ["1"]


def test_a_shared_server_that_died_is_no_models_business(play: Play, drawer: Drawer) -> None:
    tasks = [{"question": "break it"}, {"question": "use it"}]
    later = Step(tool_calls=[{"name": "count"}], delay_seconds=1.5)
    script = {
        "break": [Step(tool_calls=[{"name": "die"}], delay_seconds=0.5)],
        "use": [ask("count"), later, "never asked"],
    }
    for rollout in play(McpEnv(tasks, servers=[drawer()], per_rollout=False), script):
        assert (
            failure(rollout) == "MCP server 'drawer' was lost: Connection closed (last output: out of memory)"
        )


def test_a_refusal_in_the_servers_own_words_is_told_to_the_model(play: Play, drawer: Drawer) -> None:
    [rollout] = play(McpEnv(ONE_TASK, servers=[drawer()]), [ask("refuse"), ask("count"), "done"])

    assert heard(rollout) == ["not today", "1"]


@pytest.mark.parametrize("per_rollout", [True, False])
def test_a_server_that_never_starts_is_named(play: Play, drawer: Drawer, per_rollout: bool) -> None:
    asleep = python("import time; time.sleep(60)", start_seconds=0.2)
    env = McpEnv(ONE_TASK, servers=[drawer(), asleep], per_rollout=per_rollout)
    model = Scripted(["never asked"])
    rollouts = play(env, model, rollouts_per_task=3)

    for rollout in rollouts:
        assert failure(rollout) == "MCP server 'broken' did not start within 0.2 s"
        assert rollout.failure is not None
        assert rollout.failure.transient
    assert model.requests == []


def test_a_server_that_crashes_at_the_start_says_why(play: Play) -> None:
    [rollout] = play(McpEnv(ONE_TASK, servers=[python("import nonesuch")]), ["never asked"])

    assert failure(rollout) == (
        "MCP server 'broken' failed to start: Connection closed "
        "(last output: ModuleNotFoundError: No module named 'nonesuch')"
    )


def test_a_program_that_is_not_there_is_not_tried_again(play: Play) -> None:
    env = McpEnv(ONE_TASK, servers=[{"name": "files", "command": "no-such-program"}])
    [rollout] = play(env, ["never asked"], max_retries=3)

    assert failure(rollout) == (
        "MCP server 'files' cannot be started: No such file or directory: 'no-such-program'"
    )
    assert rollout.earlier == ()


@pytest.mark.parametrize("kind", ["old", "modern"])
def test_servers_of_every_age_are_spoken_to_in_their_own_way(play: Play, drawer: Drawer, kind: str) -> None:
    [rollout] = play(McpEnv(ONE_TASK, servers=[drawer(kind=kind)]), [ask("count"), "done"])

    assert rollout.failure is None
    assert heard(rollout) == ["1"]


def test_nothing_a_server_prints_reaches_the_terminal(
    play: Play, drawer: Drawer, capfd: pytest.CaptureFixture[str]
) -> None:
    [rollout] = play(McpEnv(ONE_TASK, servers=[drawer(kind="noisy")]), [ask("count", "fail"), "done"])

    assert heard(rollout) == ["1", "the drawer is stuck"]
    assert capfd.readouterr() == ("", "")


def test_a_rollout_that_takes_too_long_leaves_no_server_behind(
    play: Play, tmp_path: Path, folder: Path
) -> None:
    """Neither one that plays nor one that is still starting."""
    alive = tmp_path / "alive"
    code = (
        f"import atexit, pathlib, runpy, sys; mark = pathlib.Path({str(alive)!r}); mark.touch();"
        f"atexit.register(mark.unlink); sys.argv = ['', '']; runpy.run_path({str(folder / 'drawer.py')!r})"
    )
    slow = [Step(tool_calls=[{"name": "count"}], delay_seconds=60)]
    [rollout] = play(McpEnv(ONE_TASK, servers=[python(code)]), slow, rollout_seconds=0.5)

    assert rollout.outcome == "model_error"
    assert not alive.exists()

    [rollout] = play(
        McpEnv(ONE_TASK, servers=[python("import sys; sys.stdin.read()")]), slow, start_seconds=0.2
    )
    assert rollout.outcome == "timeout"


def test_an_author_prepares_a_rollout_with_the_servers_own_tools(play: Play, drawer: Drawer) -> None:
    class Prepared(McpEnv):
        async def setup_state(self, state: State) -> None:
            await self.tools_of(state)["count"].function(by=10)

    [rollout] = play(Prepared(ONE_TASK, servers=[drawer()]), [ask("count"), "done"])

    assert heard(rollout) == ["11"]


def test_a_failed_setup_closes_the_servers(play: Play, drawer: Drawer) -> None:
    class Unprepared(McpEnv):
        async def setup_state(self, state: State) -> None:
            raise RuntimeError("no luck today")

    env = Unprepared(ONE_TASK, servers=[drawer()])

    async def watch() -> list[str]:
        with pytest.raises(RuntimeError, match="no luck today"):
            async with env.open(next(iter(env.tasks()))):
                pass
        return [task.get_name() for task in asyncio.all_tasks() if "mcp server" in task.get_name()]

    assert asyncio.run(watch()) == []


# Addresses


class Web(ThreadingHTTPServer):
    """A streamable HTTP server that counts for each session."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), WebHandler)
        self.sessions: dict[str, int] = {}
        self.numbers = count()
        self.headers_seen: list[str | None] = []
        self.refusal = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def answer(self, session: str, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                version = message["params"]["protocolVersion"]
                about = {"name": "web", "version": "1"}
                return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            case "tools/list":
                return {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
        self.sessions[session] = self.sessions.get(session, 0) + 1
        return {"content": [{"type": "text", "text": str(self.sessions[session])}]}


class WebHandler(BaseHTTPRequestHandler):
    server: Web

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.headers_seen.append(self.headers.get("authorization"))
        session = self.headers.get("mcp-session-id") or f"session-{next(self.server.numbers)}"
        if self.server.refusal and message["method"] == "tools/call":
            self.reply(self.server.refusal, b"<html>no</html>", "text/html", session)
        elif "id" not in message:
            self.reply(202, b"", "application/json", session)
        else:
            result = self.server.answer(session, message)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            self.reply(200, body, "application/json", session)

    def do_GET(self) -> None:
        self.reply(405, b"", "text/plain", "")

    def do_DELETE(self) -> None:
        self.server.sessions.pop(self.headers["mcp-session-id"], None)
        self.reply(200, b"", "text/plain", "")

    def reply(self, status: int, body: bytes, kind: str, session: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_server_may_be_an_address(play: Play, web: Web) -> None:
    server = {"name": "web", "url": web.url, "headers": {"Authorization": "Bearer hush"}}
    script = [ask("count"), ask("count"), "done"]
    rollouts = play(McpEnv(ONE_TASK, servers=[server]), script, rollouts_per_task=2, at_once=1)

    assert [heard(rollout) for rollout in rollouts] == [["1", "2"], ["1", "2"]]
    assert set(web.headers_seen) == {"Bearer hush"}
    assert web.sessions == {}


@pytest.mark.parametrize(("status", "why"), [(502, "502 Bad Gateway"), (404, "Session terminated")])
def test_a_broken_gateway_or_a_lost_session_is_not_told_to_the_model(
    play: Play, web: Web, status: int, why: str
) -> None:
    web.refusal = status
    [rollout] = play(McpEnv(ONE_TASK, servers=[{"name": "web", "url": web.url}]), [ask("count"), "never"])

    assert failure(rollout).startswith("MCP server 'web' was lost: ")
    assert why in failure(rollout)


def test_an_address_where_nobody_listens_is_named(play: Play) -> None:
    env = McpEnv(ONE_TASK, servers=[McpServer(name="web", url="http://127.0.0.1:9/mcp")])
    [rollout] = play(env, ["never asked"])

    assert failure(rollout).startswith("MCP server 'web' failed to start")


# Words


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ([], "at least one server"),
        ([{"name": "x"}], "'x' needs either a 'command' or a 'url'"),
        ([McpServer(name="x", command="a", url="b")], "'x' needs either a 'command' or a 'url'"),
        ([{"name": "x", "comand": "a"}], "unknown field `comand`"),
        ([{"command": "a"}], "missing required field `name`"),
        ([{"name": "x", "command": "a"}, {"name": "x", "url": "b"}], "Two MCP servers are called 'x'"),
    ],
)
def test_servers_that_cannot_be_are_refused(servers: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        McpEnv(ONE_TASK, servers=servers)


def test_without_the_package_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    with pytest.raises(ConfigError, match=r"pip install 'proctor\[mcp\]'"):
        McpEnv(ONE_TASK, servers=[{"name": "x", "command": "a"}])


def test_servers_can_be_set_after_construction() -> None:
    env = McpEnv(ONE_TASK, servers=[{"name": "x", "command": "a"}])
    env.configure({"servers": [{"name": "y", "url": "http://localhost/mcp"}]})

    assert env.servers == (McpServer(name="y", url="http://localhost/mcp"),)
