"""What a run finds behind its walls, and how it is ended."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from proctor.errors import ConfigError
from proctor.isolation.limits import RunLimits
from proctor.packages.host_venv import host_import_paths, host_paths
from proctor.runner import launch as walls
from proctor.runner import server_relay as relay_module
from proctor.runner.internet_proxy import open_internet_proxy
from proctor.runner.launch import ProcessExit, ProcessSpec, launch
from proctor.runner.output_lines import MOST_LINES
from proctor.runner.server_relay import open_server_relay
from tests.runner.playing import Played, disable_bubblewrap, play, played, spec_of

pytestmark = pytest.mark.usefixtures("sandboxes")

OWN_PYTHON = str(Path(sys.base_prefix).resolve() / "bin" / "python3")


FAR = "127.0.0.2"
"""Stands for a place on the internet: loopback too, but not what a run calls its own."""


@contextmanager
def web(answer: bytes, host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A server on loopback that always says the same."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((host, port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


FETCH = """
import os, sys, urllib.error, urllib.request
address = sys.argv[1] if sys.argv[1:] else os.environ["PROCTOR_API_URL"]
try:
    print(urllib.request.urlopen(address, timeout=10).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("missed", error)
"""


@pytest.mark.parametrize("walled", [True, False])
def test_a_run_reaches_its_server(walled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not walled:
        disable_bubblewrap(monkeypatch)

    async def main(port: int) -> Played:
        async with open_server_relay(f"http://127.0.0.1:{port}") as socket:
            return await played(spec_of(FETCH, tmp_path / "run", socket=socket))

    with web(b"welcome") as port:
        assert asyncio.run(main(port)).lines == ["welcome"]


def test_a_hundred_connections_at_once_are_carried(tmp_path: Path) -> None:
    code = """
        import os, urllib.request
        from concurrent.futures import ThreadPoolExecutor
        address = os.environ["PROCTOR_API_URL"]
        with ThreadPoolExecutor(50) as pool:
            got = list(pool.map(lambda _: len(urllib.request.urlopen(address).read()), range(100)))
        print(set(got))
    """

    async def main(port: int) -> Played:
        async with open_server_relay(f"http://127.0.0.1:{port}") as socket:
            return await played(spec_of(code, tmp_path / "run", socket=socket, limits=RunLimits()))

    with web(b"x" * 200_000) as port:
        assert asyncio.run(main(port)).lines == ["{200000}"]


def test_a_run_holds_no_more_connections_to_the_server_than_one_address_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those above wait for their turn, and those above these are closed."""
    monkeypatch.setattr(relay_module, "MAX_CONNECTIONS", 5)
    held: list[asyncio.StreamWriter] = []

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    async def main() -> None:
        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, open_server_relay(f"http://127.0.0.1:{port}") as door:
            ends = [await asyncio.open_unix_connection(door) for _ in range(30)]
            closed = [asyncio.ensure_future(reader.read()) for reader, _ in ends[10:]]
            await asyncio.wait(closed)
            while len(held) < 5:
                await asyncio.sleep(0.01)
            assert len(held) == 5

            held[0].close()
            while len(held) < 6:
                await asyncio.sleep(0.01)
            for _, writer in ends:
                writer.close()
            for writer in held:
                writer.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_server_that_is_away_refuses_the_connection_and_one_that_is_back_does_not(tmp_path: Path) -> None:
    again = "import time\nwhile not os.path.exists('/workspace/back'): time.sleep(0.01)\n"

    async def main() -> list[str]:
        with web(b"") as port:
            pass
        async with open_server_relay(f"http://127.0.0.1:{port}", patience=0.0) as socket:
            running = await launch(spec_of(FETCH + again + FETCH, tmp_path / "run", socket=socket))
            lines = [await anext(running.output)]
            with web(b"back", port=port):
                (tmp_path / "run" / "back").touch()
                await running.wait()
            return lines + [line async for line in running.output]

    first, second = asyncio.run(main())
    assert first.startswith("missed")
    assert second == "back"


def test_an_address_that_is_none_is_refused() -> None:
    async def main() -> None:
        async with open_server_relay("localhost:8700"):
            pass

    with pytest.raises(ConfigError, match="not the address of a server"):
        asyncio.run(main())


# The internet


@pytest.mark.parametrize("granted", [True, False])
def test_the_internet_is_reached_only_by_who_was_granted_it(granted: bool, tmp_path: Path) -> None:
    async def main(port: int) -> Played:
        async with open_internet_proxy(lambda address: address == FAR) as socket:
            way = {"outward": socket} if granted else {}
            address = f"http://{FAR}:{port}/page"
            return await played(spec_of(FETCH, tmp_path / "run", address, **way))

    with web(b"the internet", FAR) as port:
        told = asyncio.run(main(port))
    assert (told.lines == ["the internet"]) == granted


def test_the_way_to_the_internet_does_not_lead_to_the_hosts_own_network(tmp_path: Path) -> None:
    async def main(port: int) -> Played:
        async with open_internet_proxy() as socket:
            address = f"http://{FAR}:{port}/"
            return await played(spec_of(FETCH, tmp_path / "run", address, outward=socket))

    with web(b"treasure", FAR) as port:
        told = asyncio.run(main(port)).text
    assert told.startswith("403")
    assert "is not on the public internet" in told


def test_a_tunnel_through_the_proxy_carries_what_is_encrypted(tmp_path: Path) -> None:
    code = """
        import http.client, sys
        connection = http.client.HTTPConnection("127.0.0.1", 8701)
        connection.set_tunnel(sys.argv[1], int(sys.argv[2]))
        connection.request("GET", "/")
        print(connection.getresponse().read().decode())
    """

    async def main(port: int) -> Played:
        async with open_internet_proxy(lambda _: True) as socket:
            return await played(spec_of(code, tmp_path / "run", FAR, str(port), outward=socket))

    with web(b"through", FAR) as port:
        assert asyncio.run(main(port)).lines == ["through"]


# A run's own things


def test_a_runs_folder_is_kept_over_attempts(tmp_path: Path) -> None:
    code = """
        import os
        print(os.path.exists("/workspace/kept") and open("/workspace/kept").read())
        open("/workspace/kept", "a").write("x")
    """
    told = [play(spec_of(code, tmp_path / "run")).lines for _ in range(3)]
    assert told == [["False"], ["x"], ["xx"]]


def test_what_lies_in_tmp_is_gone_with_the_attempt(tmp_path: Path) -> None:
    code = "import os; print(os.listdir('/tmp')); open('/tmp/left', 'w')"
    assert [play(spec_of(code, tmp_path / "run")).lines for _ in range(2)] == [["[]"], ["[]"]]


NESTED = """
import asyncio
from proctor.support.threads import Threads
from proctor.workspaces.folder import RolloutFolder
from proctor.workspaces.spec import WorkspaceSpec

async def main():
    spec, threads = WorkspaceSpec("inner"), Threads()
    await spec.check_usable((), threads)
    folder = RolloutFolder(spec, (), threads)
    folder.make()
    ran = await folder.run("ls -A /workspace; echo made > x; cat x; ls /proc/1/root 2>&1", seconds=20)
    print(ran.output)
    await folder.close()

asyncio.run(main())
"""


def test_an_environment_may_make_sandboxes_of_its_own(tmp_path: Path) -> None:
    told = play(
        spec_of(
            NESTED,
            tmp_path / "run",
            python=OWN_PYTHON,
            paths=host_paths(),
            variables={"PYTHONPATH": ":".join(host_import_paths())},
        )
    )
    assert told.ended.code == 0, told.text
    assert told.lines[0] == "made"


# Its end


def test_how_it_ended_and_what_it_said_last_are_told(tmp_path: Path) -> None:
    told = play(spec_of("import sys; print('a'); sys.exit('b')", tmp_path / "run"))
    assert told.ended == ProcessExit(code=1, last_lines=("a", "b"))


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = play(ProcessSpec(run_id="r", command=("no-such-program",), folder=tmp_path / "run"))
    assert told.lines == ["cannot start no-such-program: No such file or directory"]


PATIENT = """
import signal, sys, time
def leave(*_):
    print("left in order")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave if sys.argv[1] == "leaves" else signal.SIG_IGN)
print("up")
time.sleep(100)
"""


@pytest.mark.parametrize("walled", [True, False])
@pytest.mark.parametrize(("manner", "code"), [("leaves", 0), ("stays", 137)])
def test_a_run_is_asked_to_end_and_then_made_to(
    manner: str, code: int, walled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not walled:
        disable_bubblewrap(monkeypatch)

    async def main() -> ProcessExit:
        running = await launch(spec_of(PATIENT, tmp_path / "run", manner), allow_no_sandbox=True)
        assert await anext(running.output) == "up"
        return await running.end(10 if manner == "leaves" else 0.2)

    ended = asyncio.run(main())
    assert ended.code == code
    assert ("left in order" in ended.last_lines) == (manner == "leaves")


def test_who_prints_faster_than_anybody_reads_is_not_held_up(tmp_path: Path) -> None:
    async def main() -> tuple[ProcessExit, list[str]]:
        spec = spec_of(f"for number in range({MOST_LINES + 500}): print(number)", tmp_path / "run")
        running = await launch(spec)
        ended = await running.wait()
        return ended, [line async for line in running.output]

    ended, lines = asyncio.run(main())
    assert ended.code == 0
    assert lines[0].startswith("… 500 lines omitted")
    assert lines[-1] == str(MOST_LINES + 499)


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    told = play(spec_of("import sys; sys.stdout.write('x' * 1_000_000)", tmp_path / "run"))
    assert told.ended.code == 0
    assert max(map(len, told.lines)) <= 8192


def test_without_bubblewrap_nothing_is_played_unless_the_operator_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disable_bubblewrap(monkeypatch)
    walls.warn_of_no_sandbox.cache_clear()
    spec = spec_of("print('played')", tmp_path / "run")

    with pytest.raises(ConfigError, match="--allow-no-sandbox"):
        asyncio.run(launch(spec))
    assert play(spec).lines == play(spec).lines == ["played"]
    assert caplog.text.count("bubblewrap is not installed") == 1
