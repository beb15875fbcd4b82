"""Instances of a run: programs with a port, reached through the server."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proctor.server.db.tables import tokens, users
from tests.server.sandboxes.playing import Run, a_run
from tests.server.serving import Served
from tests.waiting import SECONDS

PAGE = """
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = int(self.headers.get("content-length") or 0)
        told = "|".join([self.command, self.path, self.rfile.read(size).decode(), str(self.headers)]).encode()
        self.send_response(418)
        self.send_header("content-type", "text/html")
        self.send_header("set-cookie", "session=stolen")
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    do_POST = do_GET

http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""
SOCKET = """
import base64, hashlib, socketserver

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        key = b""
        while (line := self.rfile.readline()).strip():
            name, _, value = line.partition(b":")
            key = value.strip() if name.lower() == b"sec-websocket-key" else key
        accept = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        self.wfile.write(b"HTTP/1.1 101 Switching\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n")
        self.wfile.write(b"Sec-WebSocket-Accept: " + base64.b64encode(accept) + b"\\r\\n\\r\\n")
        head = self.rfile.read(2)
        mask, size = self.rfile.read(4), head[1] & 127
        said = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
        self.wfile.write(bytes([0x81, size]) + said.upper())
        self.wfile.write(bytes([0x88, 2, 3, 232]))

socketserver.ThreadingTCPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""

ANSWER_FOR_ANOTHER = """
import ctypes, os, socket, time

GETFD = 438
system = ctypes.CDLL(None).syscall

def sockets():
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()):
            process = os.pidfd_open(int(name))
            for number in range(12):
                taken = system(GETFD, process, number, 0)
                try:
                    yield socket.socket(fileno=taken)
                except (OSError, ValueError):
                    continue

def flood(taken):
    if taken.family == socket.AF_UNIX and not taken.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        for _ in range(400):
            taken.sendall(bytes(2**20))

end = time.monotonic() + 3
while time.monotonic() < end:
    for taken in sockets():
        try:
            flood(taken)
        except OSError:
            continue
"""
ENDLESS_MESSAGE = SOCKET.replace(
    "        head = self.rfile.read(2)",
    """
        self.wfile.write(bytes([0x82, 127]) + (2**40).to_bytes(8, "big"))
        for _ in range(400):
            self.wfile.write(bytes(2**20))
        head = self.rfile.read(2)""",
)
MUCH_MEMORY = 150 * 2**20


class PeakMemory:
    """How much more memory this process had at once than at the beginning; the server is in it."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is that from now on
        self._before = self._peak()

    @staticmethod
    def _peak() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024

    @property
    def growth(self) -> int:
        return self._peak() - self._before


def started(run: Run, script: str = PAGE, **more: Any) -> dict[str, Any]:
    asked = {"command": ["python3", "server.py"], "port": 8000, "files": {"server.py": script}, **more}
    made: dict[str, Any] = run.post("/instances", asked)
    return made


def test_a_program_is_reached_through_the_server_as_soon_as_it_is_ready(run: Run) -> None:
    made = started(run)
    assert made["status"] == "ready", made

    answer = run("POST", f"{made['url']}a%20b/c?d=e%2Ff", data=b"pear")

    method, path, body, _ = answer.body.split("|", 3)
    assert (answer.status, method, path, body) == (418, "POST", "/a%20b/c?d=e%2Ff", "pear")
    assert run("GET", f"/instances/{made['id']}/port").body.split("|")[1] == "/"


def test_a_program_never_sees_the_token_and_does_not_speak_for_the_server(run: Run) -> None:
    answer = run("GET", started(run)["url"], headers={"X-Api-Key": run.token})
    assert run.token not in answer.body
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers.get("set-cookie") is None


def test_a_websocket_is_carried_both_ways(run: Run) -> None:
    made = started(run, SOCKET)

    async def talk() -> Any:
        headers = {"authorization": f"Bearer {run.token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(run.url + made["url"] + "chat", headers=headers) as socket,
        ):
            await socket.send_str("pear")
            return (await socket.receive(5)).data

    assert asyncio.run(talk()) == "PEAR"


def test_an_open_websocket_is_cut_when_the_owner_of_its_run_is_disabled(shared: Served, run: Run) -> None:
    shared.user("olga")
    run.change(owner="olga")
    own = tokens.update().where(tokens.c.run_id == run.id).values(user="olga")
    shared.platform.database.write_now(lambda connection: connection.execute(own))
    made = started(run, SOCKET)
    # By another server, or by hand: this one is not told.
    disabled = users.update().where(users.c.name == "olga").values(disabled_at=1.0)

    async def talk() -> tuple[Any, int | None]:
        headers = {"authorization": f"Bearer {run.token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(run.url + made["url"] + "chat", headers=headers) as socket,
        ):
            shared.platform.database.write_now(lambda connection: connection.execute(disabled))
            message = await socket.receive(SECONDS)
            return message.type, socket.close_code

    assert asyncio.run(talk()) == (aiohttp.WSMsgType.CLOSE, 4401)


def test_a_program_that_answers_without_end_whether_it_listens_fills_no_memory(run: Run) -> None:
    memory = PeakMemory()

    made = started(run, ANSWER_FOR_ANOTHER)

    assert made["status"] == "failed"
    assert memory.growth < MUCH_MEMORY


def test_a_websocket_message_without_end_is_cut_off_and_fills_no_memory(run: Run) -> None:
    made = started(run, ENDLESS_MESSAGE)
    memory = PeakMemory()

    async def talk() -> Any:
        headers = {"authorization": f"Bearer {run.token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(run.url + made["url"] + "chat", headers=headers) as socket,
        ):
            return (await socket.receive(SECONDS)).type

    assert asyncio.run(talk()) == aiohttp.WSMsgType.CLOSE
    assert memory.growth < MUCH_MEMORY


def test_a_websocket_of_another_run_is_refused(shared: Served, run: Run) -> None:
    made, other = started(run, SOCKET), a_run(shared, instances=True)

    async def talk(token: str) -> None:
        headers = {"authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(run.url + made["url"], headers=headers)

    asyncio.run(talk(other.token))
    asyncio.run(talk("proctor_none_none"))


def test_a_program_that_ends_before_it_listens_says_why(run: Run) -> None:
    made = started(run, "raise SystemExit('no pears today')")
    assert made["status"] == "failed"
    assert "exit code 1" in made["message"]
    assert "no pears today" in made["message"]


def test_a_program_that_is_not_there_is_told(run: Run) -> None:
    made = run.post("/instances", {"command": ["no-such-program"], "port": 80})
    assert (made["status"], "no-such-program" in made["message"]) == ("failed", True)


def test_a_program_that_dies_later_is_noticed(run: Run) -> None:
    made = started(
        run, PAGE.replace("ThreadingHTTPServer", "HTTPServer").replace("serve_forever", "handle_request")
    )
    run("GET", made["url"])  # the first connection was that of the probe, or this one ends it
    for _ in range(100):
        shown = run.get(f"/instances/{made['id']}")
        if shown["status"] != "ready":
            break
    assert shown["status"] == "failed"
    assert "exit code 0" in shown["message"]
    assert run("GET", made["url"]).code == "place_not_ready"


def test_another_run_does_not_reach_the_port(shared: Served, run: Run) -> None:
    made, other = started(run), a_run(shared, instances=True)
    assert other("GET", made["url"]).status == 404
    assert other("GET", f"/instances/{made['id']}").status == 404
    assert shared.nobody("GET", made["url"]).status == 401
    assert shared.user("eve")("GET", made["url"]).status == 403


def test_an_instance_ends_with_its_run(shared: Served, run: Run) -> None:
    made = started(run)
    shared.call(shared.platform.sandboxes.reap, run.id)
    assert shared.root.get(f"/instances/{made['id']}")["status"] == "ended"
    assert [*(shared.platform.data / "places").iterdir()] == []


@pytest.mark.parametrize("wish", [{"port": 0}, {"port": 70_000}, {"command": []}, {"files": {"../x": ""}}])
def test_what_cannot_be_started_is_refused(run: Run, wish: dict[str, Any]) -> None:
    assert run("POST", "/instances", {"command": ["true"], "port": 80, **wish}).status == 422


ENDLESS = """
import base64, hashlib, socketserver, struct

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        key = b""
        while (line := self.rfile.readline()).strip():
            name, _, value = line.partition(b":")
            key = value.strip() if name.lower() == b"sec-websocket-key" else key
        accept = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        self.wfile.write(b"HTTP/1.1 101 Switching\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n")
        self.wfile.write(b"Sec-WebSocket-Accept: " + base64.b64encode(accept) + b"\\r\\n\\r\\n")
        self.wfile.write(HEAD)
        for _ in range(300):
            self.wfile.write(PIECE)

socketserver.ThreadingTCPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        ('struct.pack(">BBQ", 0x82, 127, 2**40)', "bytes(2**20)"),
        ('struct.pack(">BBQ", 0x02, 127, 0)', 'struct.pack(">BBQ", 0x00, 127, 2**20) + bytes(2**20)'),
    ],
    ids=["one frame", "many frames"],
)
def test_a_message_without_end_is_cut_before_it_fills_the_memory(run: Run, head: str, piece: str) -> None:
    made = started(run, ENDLESS.replace("HEAD", head).replace("PIECE", piece))
    before = resident_bytes()

    async def listen() -> Any:
        headers = {"authorization": f"Bearer {run.token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(run.url + made["url"] + "chat", headers=headers) as socket,
        ):
            await socket.receive(SECONDS)
            return socket.close_code

    code = asyncio.run(listen())
    assert code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
    assert resident_bytes() - before < 150 * 2**20


def resident_bytes() -> int:
    """The server is in this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
