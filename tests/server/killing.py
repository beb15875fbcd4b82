"""Kill servers, hosts and runs at random moments, and look at what is left: for tests of crash safety.

The provider of the model lives in the process of the test, and survives everything: it knows which answers
it really gave, each with a number of tokens of its own.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sqlalchemy import Connection, func, select

from proctor.run import ENDED
from proctor.server.db.database import Database
from proctor.server.db.tables import accounts, calls, entries, holds, runs
from tests.server.serving import Api
from tests.server.workplace import Workplace, processes
from tests.waiting import wait_for

PRICED = """
[[endpoint]]
endpoint_id = "priced"
model = "priced"
url = "{url}/v1"
key = "PROVIDER_KEY"
price = {{ input = 1.0, output = 0.0 }}
"""
VICTIMS = ("server", "host", "inside", "server and host", "all")
INSIDE = "proctor.runner.inside"
POLL_SECONDS = 0.05
MIDWAY, MIDWAY_SECONDS = 0.7, 15.0
"""So often a kill waits, for at most so long, until the run has got on since the last one."""


# The provider


class Provider(ThreadingHTTPServer):
    """Answers every question with the question, after a while; never twice with the same usage."""

    daemon_threads = True

    def __init__(self, delay_seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.delay_seconds = delay_seconds
        self.lock = threading.Lock()
        self.given = 0

    @property
    def models(self) -> str:
        return PRICED.format(url=f"http://127.0.0.1:{self.server_port}")

    def next(self) -> int:
        with self.lock:
            self.given += 1
            return self.given

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked was killed."""


class Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(self.server.delay_seconds)
        message = {"role": "assistant", "content": asked["messages"][-1]["content"]}
        usage = {"prompt_tokens": self.server.next(), "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._answer({"id": "1", "model": "priced", "choices": [choice], "usage": usage})

    def do_GET(self) -> None:
        self._answer({"data": []})

    def _answer(self, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def providing(delay_seconds: float) -> Iterator[Provider]:
    with Provider(delay_seconds) as provider:
        thread = threading.Thread(target=provider.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join()


# A follower


class Poller(threading.Thread):
    """Asks for the events of a run behind the last it has, until the run has ended."""

    def __init__(self, api: Api, run_id: str) -> None:
        super().__init__(daemon=True)
        self.api = api
        self.run_id = run_id
        self.events: list[dict[str, Any]] = []
        self.ended = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ended.is_set():
            with suppress(OSError, json.JSONDecodeError):
                after = self.events[-1]["seq"] if self.events else 0
                news = self.api.get(f"/runs/{self.run_id}/events?after={after}")
                self.events += news["items"]
                if news["ended"]:
                    self.ended.set()
            time.sleep(POLL_SECONDS)

    def wait_for_more(self, seconds: float) -> None:
        """Until more rollouts are told of, or the run has ended."""
        known, until = len(self.rollouts), time.monotonic() + seconds
        while len(self.rollouts) == known and time.monotonic() < until and not self.ended.is_set():
            time.sleep(POLL_SECONDS)

    @property
    def rollouts(self) -> list[tuple[str, int]]:
        told = [event["rollout"] for event in self.events if event.get("rollout")]
        return [(brief["task"], brief["number"]) for brief in told]


# The killer


class Killer:
    """Kills what it finds, by a seeded plan of moments and victims."""

    def __init__(self, place: Workplace, seed: int) -> None:
        self.place = place
        self.chance = random.Random(seed)
        self.killed: Counter[str] = Counter()

    def strike(self, poller: Poller) -> bool:
        """Wait for a moment, kill, and see to it that there is a server again; whether anybody was hit."""
        chance = self.chance
        if chance.random() < MIDWAY:
            poller.wait_for_more(MIDWAY_SECONDS)
        time.sleep(chance.choice((chance.uniform(0.0, 0.5), chance.uniform(0.0, 3.0))))
        victim = chance.choice(VICTIMS)
        hit = 0
        if victim in ("inside", "all"):
            hit += kill_each(insides(self.place))
        if victim in ("server", "server and host", "all"):
            self.place.kill()
            hit += 1
        if victim in ("host", "server and host", "all"):
            hit += kill_each(self.place.hosts())
        if hit:
            self.killed[victim] += 1
        if self.place.process is not None and self.place.process.poll() is not None:
            time.sleep(chance.choice((0.0, chance.uniform(0.0, 2.0), chance.uniform(0.0, 4.0))))
            self.place.start()
        return bool(hit)


def insides(place: Workplace) -> list[int]:
    """Processes that play a run behind walls for somebody of this workplace."""
    data = str(place.data)
    return [each.pid for each in processes() if each.words[-1] == INSIDE and each.words[0].startswith(data)]


def kill_each(pids: list[int]) -> int:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(pids)


# What must be true


def need_whole(place: Workplace, poller: Poller, planned: int) -> None:
    """Of one run that has ended: nothing lost, nothing doubled, nothing left."""
    run_id, root = poller.run_id, place.root
    run = root.get(f"/runs/{run_id}")
    assert (run["status"], run["cause"]) == ("finished", None), run
    assert run["progress"]["settled"] == planned, run["progress"]
    exported = root("GET", f"/runs/{run_id}/results.jsonl").body
    rows = [json.loads(line) for line in exported.splitlines()]
    keys = [(str(row["example_id"]), row["rollout"]) for row in rows]
    assert len(keys) == len(set(keys)) == planned
    assert all(row["reward"] == 1.0 for row in rows)
    seqs = [event["seq"] for event in poller.events]
    assert seqs == list(range(1, run["last_seq"] + 1))
    assert Counter(poller.rollouts) == Counter(keys)
    wait_for(lambda: not [each.pid for each in processes() if f"PROCTOR_RUN_ID={run_id}" in each.environ], 20)


def need_true_books(database: Database, provider: Provider, owner: str) -> None:
    """Every call was an answer of the provider, charged once; nothing is held any more."""

    def read(connection: Connection) -> None:
        made = connection.execute(select(calls)).all()
        used = [call.input_tokens for call in made]
        assert len(used) == len(set(used)), "an answer was charged twice"
        assert set(used) <= set(range(1, provider.given + 1))
        assert all(call.cost == call.input_tokens for call in made)
        charges = connection.execute(select(entries).where(entries.c.kind == "charge")).all()
        assert len({charge.reference for charge in charges}) == len(charges)
        total = sum(call.cost for call in made)
        assert -sum(charge.amount for charge in charges) == total
        account = connection.execute(select(accounts).where(accounts.c.owner == owner)).one()
        assert account.spent == total
        by_run = select(calls.c.run_id, func.sum(calls.c.cost)).group_by(calls.c.run_id)
        spent = {run_id: int(cost) for run_id, cost in connection.execute(by_run)}
        assert spent == {run.id: run.cost for run in connection.execute(select(runs))}
        assert connection.execute(select(holds)).all() == []
        statuses = connection.execute(select(runs.c.status)).scalars()
        assert all(status in ENDED for status in statuses)

    database.read_now(read)
