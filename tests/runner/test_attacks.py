"""Environments that try to get at what is not theirs.

Each attack is made twice, without walls and behind them: what does not work without walls proves nothing.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from proctor.isolation import limits
from proctor.isolation.command_line import SandboxUser
from proctor.isolation.untrusted_tree import occupied_bytes
from proctor.runner import launch as walls
from proctor.runner.launch import launch
from tests.runner.playing import PYTHON, disable_bubblewrap, play, spec_of

pytestmark = [
    pytest.mark.usefixtures("sandboxes"),
    pytest.mark.skipif(not Path(PYTHON).exists(), reason="the attackers are written in Python"),
]

READ = """
import sys
try:
    print("got", open(sys.argv[1]).read())
except OSError as error:
    print("missed", error)
"""


@pytest.fixture(params=["open", "walled"])
def succeeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether an attack is expected to work: only where there are no walls."""
    if request.param == "open":
        disable_bubblewrap(monkeypatch)
        monkeypatch.setattr(limits, "find_parent_cgroups", list)
    return bool(request.param == "open")


@pytest.mark.parametrize("file", ["data/proctor.db", "data/secret.key", "data/blobs/x", "runs/other/results"])
def test_what_belongs_to_the_server_and_to_other_runs_cannot_be_read(
    file: str, succeeds: bool, tmp_path: Path
) -> None:
    secret = tmp_path / file
    secret.parent.mkdir(parents=True)
    secret.write_text("treasure")

    told = play(spec_of(READ, tmp_path / "runs" / "mine", str(secret)))

    assert ("treasure" in told.text) == succeeds


def test_what_is_hidden_cannot_be_read_even_in_a_folder_that_is_shown(tmp_path: Path) -> None:
    data = tmp_path / "checkout" / "data"
    data.mkdir(parents=True)
    (data / "proctor.db").write_text("treasure")
    shown = spec_of(READ, tmp_path / "run", str(data / "proctor.db"), paths=(str(data.parent),))
    covered = spec_of(
        READ, tmp_path / "run", str(data / "proctor.db"), paths=(str(data.parent),), hidden=(data,)
    )

    assert "treasure" in play(shown).text
    assert "treasure" not in play(covered).text


@pytest.mark.parametrize("secret_of", ["environ", "cmdline"])
def test_other_processes_and_their_variables_cannot_be_seen(
    secret_of: str, succeeds: bool, tmp_path: Path
) -> None:
    search = """
        import glob, sys
        for file in glob.glob("/proc/[0-9]*/" + sys.argv[1]):
            try:
                if "trea" + "sure" in open(file).read():
                    print("got")
            except OSError:
                pass
    """
    with subprocess.Popen(
        [sys.executable, "-c", "input()", "treasure" if secret_of == "cmdline" else ""],
        env={"KEY": "treasure"},
        stdin=subprocess.PIPE,
    ) as server:
        told = play(spec_of(search, tmp_path / "run", secret_of))
        server.communicate(b"\n")

    assert ("got" in told.lines) == succeeds


@pytest.mark.parametrize("kind", ["tcp", "abstract"])
def test_the_hosts_loopback_cannot_be_reached(kind: str, succeeds: bool, tmp_path: Path) -> None:
    reach = """
        import socket, sys
        kind, where = sys.argv[1:]
        try:
            if kind == "tcp":
                socket.create_connection(("127.0.0.1", int(where)), 5)
            else:
                socket.socket(socket.AF_UNIX).connect("\\0" + where)
            print("got")
        except OSError as error:
            print("missed", error)
    """
    with listening(kind) as where:
        told = play(spec_of(reach, tmp_path / "run", kind, where))

    assert ("got" in told.lines) == succeeds


def test_there_is_no_network_card_behind_walls(tmp_path: Path) -> None:
    told = play(
        spec_of("import socket; print([name for _, name in socket.if_nameindex()])", tmp_path / "run")
    )
    assert told.lines == ["['lo']"]


@contextmanager
def listening(kind: str) -> Iterator[str]:
    if kind == "tcp":
        server = socket.create_server(("127.0.0.1", 0))
        where = str(server.getsockname()[1])
    else:
        where = f"proctor-test-{os.getpid()}"
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"\0{where}")
        server.listen()
    thread = threading.Thread(target=accept_all, args=(server,), daemon=True)
    thread.start()
    try:
        yield where
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def accept_all(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            server.accept()[0].close()


DAEMON = """
import os, subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(100)", sys.argv[1]], start_new_session=True,
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
)
print("left behind")
"""


def test_nothing_that_a_run_starts_outlives_it(succeeds: bool, tmp_path: Path) -> None:
    told = play(spec_of(DAEMON, tmp_path / "run", f"daemon-of-{tmp_path}"))

    left = processes_named(f"daemon-of-{tmp_path}")
    for pid in left:
        os.kill(pid, 9)
    assert told.lines == ["left behind"]
    assert bool(left) == succeeds


@pytest.mark.skipif(not limits.find_parent_cgroups(), reason="no control group can be made here")
def test_a_control_group_ends_what_is_left_behind_even_without_walls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disable_bubblewrap(monkeypatch)
    assert play(spec_of(DAEMON, tmp_path / "run", f"daemon-of-{tmp_path}")).lines == ["left behind"]
    assert not processes_named(f"daemon-of-{tmp_path}")


def processes_named(word: str) -> list[int]:
    files = Path("/proc").glob("[0-9]*/cmdline")
    return [int(file.parent.name) for file in files if word.encode() in contents(file).split(b"\0")]


HOST = """
import asyncio, sys
from pathlib import Path
from proctor.runner.launch import ProcessSpec, launch

async def main():
    command = ("/usr/bin/python3", "-c", "print('up', flush=True); import time; time.sleep(100)", sys.argv[1])
    running = await launch(ProcessSpec(run_id="orphan", command=command, folder=Path(sys.argv[2])))
    async for line in running.output:
        print(line, flush=True)

asyncio.run(main())
"""


def test_a_run_dies_with_its_host_even_if_that_is_killed(tmp_path: Path) -> None:
    word = f"run-of-{tmp_path}"
    with subprocess.Popen(
        [sys.executable, "-c", HOST, word, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "up\n"
        inside = [pid for pid in processes_named(word) if pid != host.pid]
        handles = [os.pidfd_open(pid) for pid in inside]
        host.kill()

    assert inside
    for handle in handles:
        ended(handle)
    for folder in [
        path for place in limits.find_parent_cgroups() for path in place.folder.glob("*-orphan-*")
    ]:
        assert limits.try_remove(folder)


def ended(handle: int) -> None:
    """Waits until a process is gone."""
    waiting = select.poll()  # select takes no descriptor above 1,023
    waiting.register(handle, select.POLLIN)
    ready = waiting.poll(10_000)
    os.close(handle)
    assert ready, "a process lives on"


def test_secrets_reach_the_run_and_no_command_line(tmp_path: Path) -> None:
    """Those of the whole machine are looked at, bubblewrap's own among them."""

    async def look_meanwhile() -> list[str]:
        code = "import os, time; print(os.environ['API_KEY']); time.sleep(100)"
        spec = spec_of(code, tmp_path / "run", f"run-of-{tmp_path}", variables={"API_KEY": "treasure"})
        running = await launch(spec)
        try:
            assert await anext(running.output) == "treasure"
            assert processes_named(f"run-of-{tmp_path}")
            files = Path("/proc").glob("[0-9]*/cmdline")
            return [str(file) for file in files if b"treasure" in contents(file)]
        finally:
            await running.end(0)

    assert asyncio.run(look_meanwhile()) == []


def contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def test_the_hosts_own_variables_are_not_given_to_a_run(
    succeeds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even without walls."""
    del succeeds
    monkeypatch.setenv("OPENAI_API_KEY", "treasure")
    told = play(spec_of("import os; print(os.environ.get('OPENAI_API_KEY'))", tmp_path / "run"))
    assert told.lines == ["None"]


def test_what_a_run_may_only_read_it_cannot_change(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir(mode=0o777)
    shown.chmod(0o777)
    code = "import sys; open(sys.argv[1] + '/x', 'w')"
    told = play(spec_of(code, tmp_path / "run", str(shown), paths=(str(shown),)))
    assert told.ended.code == 1
    assert "Read-only file system" in told.text


# What bubblewrap says of a sandbox

WRITE_STATUS = """
import os
for number in range(3, 40):
    try:
        if os.readlink(f"/proc/1/fd/{number}").startswith("pipe:"):
            pipe = os.open(f"/proc/1/fd/{number}", os.O_WRONLY | os.O_NONBLOCK)
            while True:
                os.write(pipe, WORDS)
    except OSError:
        continue
raise SystemExit(3)
"""


@pytest.mark.parametrize("words", [b'{"exit-code": 0}\n', b"x", b"{", b"\xff\n"])
def test_a_run_that_fills_the_pipe_of_its_sandbox_ends_with_its_own_exit_code(
    words: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a user namespace, as any host but root has it, the first process can be looked into."""
    monkeypatch.setattr(walls, "choose_sandbox_user", SandboxUser)

    ended = play(spec_of(WRITE_STATUS.replace("WORDS", repr(words)), tmp_path / "run")).ended

    assert ended.code == 3


# The disk

SLOW_TO_MEASURE = """
import os, time
for number in range(2_000):
    os.symlink("x", f"entry-{number}")
time.sleep(3)
for number in range(80):
    with open(f"file-{number}", "wb") as file:
        file.write(bytes(2**20))
print("written", flush=True)
time.sleep(600)
"""


def test_a_run_that_is_slow_to_measure_is_ended_as_soon_as_the_disk_fills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walls, "DISK_SHARE", 1e6)  # as if it had so many entries
    # As if nobody else used the disk: what others free meanwhile would hide what the run writes.
    monkeypatch.setattr(walls, "free_bytes", lambda folders: 2**40 - occupied_bytes(folders, 2**40))

    ended = play(spec_of(SLOW_TO_MEASURE, tmp_path / "run", limits=limits.RunLimits(disk_mb=40))).ended

    assert ended.reason == "disk"
