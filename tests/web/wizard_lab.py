"""A server for the wizard: models with and without prices, environments with secrets and a past, and people.

`ada` owns the environment, `rita` may read it, `sam` may see nothing of it, and `root` is the admin. The
server can go away and come back, with its data, at the same address.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, update

from proctor.api.hub import TaskInfo
from proctor.server.db.tables import runs, versions
from proctor.server.hub.tasks import store_tasks
from proctor.server.runs import queue
from proctor.server.runs.incoming import read_row
from proctor.server.runs.rows import store_rows
from tests.ports import free_port
from tests.server.runs import making
from tests.server.serving import Api, Served, serving, settings_in
from tests.web.lab import add_person

MODELS = """
[[endpoint]]
endpoint_id = "parrot"
model = "parrot"
type = "scripted"
context_tokens = 4096

[[endpoint]]
endpoint_id = "priced"
model = "priced"
type = "openai_chat_completions"
url = "http://127.0.0.1:9/v1"
price = { input = 1.0, output = 5.0 }

[[endpoint]]
endpoint_id = "unpriced"
model = "some-model"
type = "openai_chat_completions"
url = "http://127.0.0.1:9/v1"
"""
SLUG = "ada/sums"


class WizardLab:
    """The server and its people."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "endpoints.toml").write_text(MODELS)
        self._settings = replace(settings_in(folder, endpoints=folder / "endpoints.toml"), port=free_port())
        self._running = ExitStack()
        self.people: dict[str, Api] = {}
        self.server: Served
        self.start()
        self._fill()

    @property
    def url(self) -> str:
        return self.server.url

    def start(self) -> None:
        self.server = self._running.enter_context(serving(self._settings))

    def stop(self) -> None:
        self._running.close()

    def count_runs(self, person: str = "ada") -> int:
        return int(self.people[person].get("/runs?limit=1")["total"])

    def _fill(self) -> None:
        write = self.server.platform.database.write_now
        for name in ("ada", "rita", "sam"):
            self.people[name] = Api(self.url, write(add_person, name))
        ada = self.people["ada"]
        write(making.environment)
        write(making.environment, "ada", "shop")
        write(describe_versions)
        write(store_tasks, "ver-ada-shop", [TaskInfo(slug="buy", template="buy", args={"item": "tea"})])
        write(play_before)
        for slug in ("sums", "shop"):
            ada.ok("PUT", f"/environments/ada/{slug}/collaborators", {"name": "rita", "role": "read"})
        ada.post("/environments/ada/sums/secrets", {"name": "JUDGE_KEY", "value": "judge-value"})
        linked = ada.post("/secrets", {"name": "SHARED_KEY", "value": "shared-value"})
        ada.ok("PUT", f"/environments/ada/sums/secrets/links/{linked['id']}")


def describe_versions(connection: Connection) -> None:
    connection.execute(update(versions).values(check_tasks=40, check_facts={"mean_prompt_characters": 400}))
    connection.execute(update(versions).where(versions.c.id == "ver-ada-sums").values(secrets=["JUDGE_KEY"]))


def play_before(connection: Connection) -> None:
    """A finished run of the model with a price, by which the next one is estimated."""
    run_id = making.run(connection, model="priced", now=1_700_000_000.0, name="earlier")
    usage: dict[str, Any] = {"token_usage": {"input_tokens": 1000, "output_tokens": 200}}
    rows = [
        making.row(task, number, reward=float((task + number) % 3 > 0), timing={"total": 30.0}, **usage)
        for task in range(8)
        for number in range(2)
    ]
    store_rows(connection, run_id, [read_row(each) for each in rows])
    queue.start_attempt(connection, queue.find_run(connection, run_id), "host-1@none", 1_700_000_001.0, 60.0)
    queue.end_run(connection, queue.find_run(connection, run_id), "finished", None, 1_700_000_100.0)
    interval = {"low": 0.57, "high": 0.65, "kind": "wilson", "level": 0.95}
    score = {"mean": 0.61, "interval": interval, "tasks": 8, "coverage": 1.0}
    ended = {"score": score, "cost": 33_600, "settled": 16, "status": "finished"}
    connection.execute(update(runs).where(runs.c.id == run_id).values(**ended))
