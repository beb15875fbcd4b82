"""`--follow` through restarts of the server and cuts of the network: every line once, and the right end."""

from __future__ import annotations

import re
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.server.workplace import Person, Workplace, workplace
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("sandboxes")

TASKS = 24
TALKING = '''
"""Say so when something is scored."""

from proctor import Rubric, SingleTurnEnv


def spoken(answer):
    print(f"scored {answer}.")
    return 1.0


def load_environment(tasks: int = 6):
    rows = [{"question": f"say {number}", "answer": f"say {number}"} for number in range(tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(spoken))
'''


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path / "w") as made:
        yield made


class Cable(socketserver.ThreadingTCPServer):
    """Carries connections to a port, until it is cut."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), Carrying)
        self.port = port
        self.whole = True
        self.open: set[socket.socket] = set()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cut(self) -> None:
        self.whole = False
        with self.lock:
            for end in self.open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.whole = True


class Carrying(socketserver.BaseRequestHandler):
    server: Cable

    def handle(self) -> None:
        near = self.request
        if not self.server.whole:
            return
        with socket.create_connection(("127.0.0.1", self.server.port)) as far:
            with self.server.lock:
                self.server.open |= {near, far}
            back = threading.Thread(target=carry, args=(far, near), daemon=True)
            back.start()
            carry(near, far)
            back.join()
            with self.server.lock:
                self.server.open -= {near, far}


def carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def cable(port: int) -> Iterator[Cable]:
    with Cable(port) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.cut()
            made.shutdown()
            thread.join()


def start_following(ada: Person) -> subprocess.Popen[str]:
    words = ("-m", "slow-parrot", "-n", "-1", "-r", "1", "-c", "2", "-a", f'{{"tasks": {TASKS}}}')
    return ada.start("eval", "run", "ada/talking", "--hosted", "--follow", "--poll-interval", "0.5", *words)


def wait_until_settled(place: Workplace, number: int) -> None:
    """So many rollouts of the only run."""
    wait_for(lambda: sum(run["progress"]["settled"] for run in place.root.get("/runs")["items"]) >= number)


def need_every_line_once(following: subprocess.Popen[str]) -> None:
    stdout, stderr = following.communicate(timeout=120)
    assert following.returncode == 0, (stdout, stderr)
    assert sorted(map(int, re.findall(r"scored say (\d+)\.", stderr))) == list(range(TASKS)), stderr
    assert stderr.count("Attempt 1 of") == 1
    assert f"{TASKS} of {TASKS} rollouts scored" in stdout


def pushed(place: Workplace) -> Person:
    ada = place.person("ada")
    ada.write_environment("talking", TALKING)
    ada.ok("env", "push", "talking", "--wait")
    return ada


def test_who_follows_through_a_kill_of_the_server_reads_every_line_once(place: Workplace) -> None:
    following = start_following(pushed(place))
    for share in (4, TASKS // 2):
        wait_until_settled(place, share)
        place.kill()
        place.start()
    need_every_line_once(following)


def test_who_follows_through_cuts_of_the_network_reads_every_line_once(place: Workplace) -> None:
    pushed(place)
    with cable(place.port) as wire:
        far = Person(place.folder / "far", wire.url)
        far.ok("login", wire.url, stdin=place.token + "\n")
        following = start_following(far)
        for share in (TASKS // 4, TASKS // 2, TASKS * 3 // 4):
            wait_until_settled(place, share)
            wire.cut()
            wait_until_settled(place, share + 2)
            wire.mend()
        need_every_line_once(following)
