"""Several servers behind a load balancer, on one PostgreSQL, with runners: and somebody who breaks them."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from proctor.api.common import BASE
from proctor.server.secrets.vault import KEY_FILE_VARIABLE, new_key
from tests.server.balancer import Balancer, balancing
from tests.server.killing import kill_each
from tests.server.postgres import Cluster
from tests.server.serving import Answer, Api
from tests.server.storage.seaweed import BUCKET, find_program, seaweed
from tests.server.workplace import Person, Workplace, processes
from tests.waiting import wait_for

WORDS = (
    *("--runs-at-once", "0", "--lease-seconds", "6", "--most-crashes", "1000"),
    *("--drain-seconds", "1", "--no-local-model", "--pending-runs-per-user", "10000"),
)
PATIENCE_SECONDS = 120.0
PROBE_SECONDS = 0.25
LONGEST_GAP_SECONDS = 5.0


class FileStore(NamedTuple):
    """Where all servers keep files."""

    words: tuple[str, ...]
    environ: Mapping[str, str]


@contextmanager
def open_file_store(folder: Path) -> Iterator[FileStore]:
    """Object storage where its server is installed, else a folder that the servers share."""
    if find_program() is None:
        yield FileStore(("--files", str(folder / "files")), {})
        return
    with seaweed(folder / "weed") as weed:
        yield FileStore(("--storage", f"s3://{BUCKET}/files"), weed.environ)


class Fleet:
    """The servers, their balancer, database and runners."""

    def __init__(self, folder: Path, cluster: Cluster, servers: int, models: str, files: FileStore) -> None:
        self.folder = folder
        self.cluster = cluster
        self.database = cluster.fresh()
        key = folder / "shared.key"
        key.write_bytes(new_key())
        environ = {KEY_FILE_VARIABLE: str(key), "PROVIDER_KEY": "k", **files.environ}
        words = (*WORDS, "--database", self.database, *files.words)
        self.servers = []
        for number in range(servers):
            place = folder / f"server-{number}"
            place.mkdir(parents=True)
            self.servers.append(Workplace(place, *words, environ=environ, models=models))
        self.runners: list[Runner] = []
        self.balancer: Balancer
        self.paused: set[int] = set()
        """Servers that are not expected to answer now, by number."""

    @contextmanager
    def running(self, runners: int) -> Iterator[None]:
        with ExitStack() as stack:
            self.balancer = stack.enter_context(balancing([server.port for server in self.servers]))
            for server in self.servers:
                server.words = (*server.words, "--public-url", self.balancer.url)
                stack.callback(server.stop)
                server.start()
            self.token = self.servers[0].token
            wait_for(lambda: len(self.balancer.ready) == len(self.servers))
            for number in range(runners):
                made = self.ask("POST", "/hosts", {"name": f"runner-{number}"}).body
                runner = Runner(self.folder / f"runner-{number}", self.balancer.url, made["token"])
                stack.callback(runner.stop)
                runner.start()
                self.runners.append(runner)
            yield

    @property
    def api(self) -> Api:
        return Api(self.balancer.url, self.token)

    def ask(
        self, method: str, path: str, body: Any = None, *, api: Api | None = None, key: str = ""
    ) -> Answer:
        """As a patient client does: again until it is answered, with the same idempotency key."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        headers = {"idempotency-key": key} if key else {}
        while True:
            with suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
                answer = (api or self.api)(method, path, body, headers=headers)
                if answer.status < 500:
                    assert answer.status < 400, (method, path, answer)
                    return answer
            assert time.monotonic() < deadline, (method, path)
            time.sleep(0.2)

    def person(self, name: str) -> Person:
        made = self.ask("POST", "/users", {"name": name}, key=f"user-{name}").body
        person = Person(self.folder / name, self.balancer.url)
        person.ok("login", self.balancer.url, stdin=made["token"] + "\n")
        return person


class Runner:
    """`proctor runner`, through the balancer."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self.person = Person(folder, url)
        (folder / "token").write_text(token)
        (folder / "token").chmod(0o600)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ("--token-file", "token", "--data", "data", "--runs-at-once", "2")
        with (self.person.home / "log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "proctor", "runner", "--server", self.person.url, *words],
                cwd=self.person.home,
                env=self.person.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def pids(self) -> list[int]:
        """Its own process, the host below it and the runs that are played: as a machine that goes away."""
        assert self.process is not None
        home = str(self.person.home)
        return [
            each.pid
            for each in processes()
            if each.folder.startswith(home) or home in each.environ or each.pid == self.process.pid
        ]

    def kill(self) -> None:
        kill_each(self.pids())
        assert self.process is not None
        self.process.wait(60)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(90)
        kill_each([pid for pid in self.pids() if self.process is None or pid != self.process.pid])


# Those who watch


class StreamFollower(threading.Thread):
    """Follows a run by server-sent events, and continues after the last event when it is cut off."""

    def __init__(self, api: Api, run_id: str) -> None:
        super().__init__(daemon=True)
        self.api = api
        self.run_id = run_id
        self.seqs: list[int] = []
        self.cuts = 0
        self.longest_gap = 0.0
        """Seconds between losing one stream and having the next."""
        self.ended = threading.Event()
        self.start()

    def run(self) -> None:
        lost_at = time.monotonic()
        while not self.ended.is_set():
            with suppress(OSError, http.client.HTTPException):
                self._follow(lost_at)
            if not self.ended.is_set():
                self.cuts += 1
                lost_at = time.monotonic()
                time.sleep(0.1)

    def _follow(self, lost_at: float) -> None:
        where = urlsplit(self.api.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=25)
        try:
            after = self.seqs[-1] if self.seqs else 0
            path = f"{BASE}/runs/{self.run_id}/events/stream?after={after}"
            connection.request("GET", path, headers={"authorization": f"Bearer {self.api.token}"})
            response = connection.getresponse()
            if response.status != 200:
                return
            self.longest_gap = max(self.longest_gap, time.monotonic() - lost_at)
            for line in response:
                if line.startswith(b"id: "):
                    self.seqs.append(int(line[4:]))
                elif line.startswith(b"event: end"):
                    self.ended.set()
                    return
        finally:
            connection.close()


class HealthProbe(threading.Thread):
    """Asks every server that should answer, and the balancer, whether they are healthy."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(daemon=True)
        self.fleet = fleet
        self.asked = 0
        self.failures: list[str] = []
        self.stopping = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.stopping.wait(PROBE_SECONDS):
            self._need(self.fleet.balancer.url, None)
            for number, server in enumerate(self.fleet.servers):
                if number not in self.fleet.paused:
                    self._need(server.url, number)

    def _need(self, url: str, number: int | None) -> None:
        """Healthy at the first try, or once more where a connection was cut in between."""
        self.asked += 1
        why = ""
        for _ in range(3):
            try:
                answer = Api(url)("GET", "/health")
                if answer.status == 200:
                    return
                why = str(answer)
            except (OSError, http.client.HTTPException) as error:
                why = repr(error)
            time.sleep(0.3)
        if number not in self.fleet.paused:
            self.failures.append(f"{url}: {why}")

    def stop(self) -> None:
        self.stopping.set()
        self.join(30)


# Who breaks it


class Breaker:
    """Breaks one thing after the other, by a seeded plan, and puts it right again."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.fleet = fleet
        self.chance = random.Random(seed)
        self.done: Counter[str] = Counter()

    def strike(self, what: str = "") -> None:
        """Break something, or what is named."""
        ways: dict[str, Callable[[], None]] = {
            "server killed": self.kill_server,
            "server paused": self.pause_server,
            "server restarted": self.restart_server,
            "runner killed": self.kill_runner,
            "runner paused": self.pause_runner,
            "database crashed": self.crash_database,
            "database paused": self.pause_database,
        }
        what = what or self.chance.choice(list(ways))
        ways[what]()
        self.done[what] += 1

    @contextmanager
    def _unexpected(self) -> Iterator[Workplace]:
        number = self.chance.randrange(len(self.fleet.servers))
        self.fleet.paused.add(number)
        try:
            yield self.fleet.servers[number]
        finally:
            self.fleet.paused.discard(number)

    def kill_server(self) -> None:
        with self._unexpected() as server:
            server.kill()
            time.sleep(self.chance.uniform(0, 3))
            server.start()

    def restart_server(self) -> None:
        with self._unexpected() as server:
            server.stop()
            server.start()

    def pause_server(self) -> None:
        with self._unexpected() as server:
            assert server.process is not None
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(self.chance.choice((self.chance.uniform(0.2, 3), self.chance.uniform(8, 20))))
            server.process.send_signal(signal.SIGCONT)
            wait_for(lambda: Api(server.url)("GET", "/health").status == 200)

    def kill_runner(self) -> None:
        runner = self.chance.choice(self.fleet.runners)
        runner.kill()
        time.sleep(self.chance.uniform(0, 2))
        runner.start()

    def pause_runner(self) -> None:
        pids = self.chance.choice(self.fleet.runners).pids()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        time.sleep(self.chance.choice((1.0, self.chance.uniform(7, 15))))  # longer than a lease
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def crash_database(self) -> None:
        self.fleet.cluster.stop()
        time.sleep(self.chance.uniform(0, 5))
        self.fleet.cluster.start()

    def pause_database(self) -> None:
        with self.fleet.cluster.frozen():
            time.sleep(self.chance.uniform(0.5, 5))
