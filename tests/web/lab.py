"""A server as a lab uses it: four people, an environment, and runs of every kind.

`ada` owns the environment and the runs; `rita` may read the environment; `sam` may see nothing of it; `root`
is the admin. Finished runs were played by the engine and uploaded; those of a host are as the server leaves
them, with a cause for every code there is.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple, get_args

from sqlalchemy import Connection, update

from proctor.api.people import NewUser
from proctor.api.runs import CauseCode
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.evaluation.execute import Result
from proctor.listeners.upload import UploadNames, push_folder
from proctor.run import RunStatus
from proctor.server.db.tables import runs as runs_table
from proctor.server.people.records import add_user
from proctor.server.people.tokens import default_scopes, make_token
from proctor.server.runs import queue
from proctor.server.runs.causes import build_cause
from proctor.server.runs.event_log import append_events, build_log_event
from proctor.server.runs.incoming import read_row
from proctor.server.runs.rows import store_rows
from tests.server.runs import making
from tests.server.serving import Api, Served
from tests.web.played_runs import play_hostile, play_shop, play_sums, run_async

ENVIRONMENT = "ada/sums"
MODELS = '[[endpoint]]\nendpoint_id = "scripted"\nmodel = "scripted"\ntype = "scripted"\n'
"""The model of hosted runs."""
LEASE_SECONDS = 1e6
"""No host renews it."""
LOG_LINES = [
    ("INFO", "Installing sums 1.0 …"),
    ("INFO", "\x1b[32m✓\x1b[0m ready after 1.2 s"),
    ("WARNING", "the model answered slowly"),
    ("ERROR", "\x1b[31mTraceback (most recent call last):\x1b[0m\n  File 'sums.py', line 3\nKeyError: 'x'"),
]


ENDINGS: dict[str, RunStatus] = {"stopped_by_user": "stopped", "time_limit": "timed_out"}


class Lab(NamedTuple):
    """A filled server."""

    server: Served
    people: dict[str, Api]
    """Requests as `root`, `ada`, `rita` and `sam` make them."""
    runs: dict[str, str]
    """The ids of runs: `sums`, `careless`, `shop`, `hostile`, `pending`, `running` (rita reads it), and
    one per cause code."""
    link: str
    """By which anybody reads `sums`."""

    @property
    def url(self) -> str:
        return self.server.url


def fill_lab(server: Served, folder: Path) -> Lab:
    people = {"root": server.root}
    for name in ("ada", "rita", "sam"):
        people[name] = Api(server.url, server.platform.database.write_now(add_person, name))
    server.platform.database.write_now(making.environment)
    ada = people["ada"]
    ada.ok("PUT", "/environments/ada/sums/collaborators", {"name": "rita", "role": "read"})
    played = {
        "sums": play_sums(folder / "careful"),
        "careless": play_sums(folder / "careless", "careless", mistakes=3),
        "shop": play_shop(folder / "shop"),
        "hostile": play_hostile(folder / "hostile"),
    }
    runs = {name: upload(ada, result, name) for name, result in played.items()}
    runs |= server.platform.database.write_now(add_hosted_runs)
    ada.ok("PUT", f"/runs/{runs['running']}/visibility", {"visibility": "readers"})
    link = ada.ok("PUT", f"/runs/{runs['sums']}/visibility", {"visibility": "link"})["link"]
    return Lab(server, people, runs, str(link))


def add_person(connection: Connection, name: str) -> str:
    add_user(connection, NewUser(name=name))
    made = make_token(connection, user=name, name="test", scopes=default_scopes(False), expires_at=None)
    return made.secret


def upload(api: Api, result: Result, name: str) -> str:
    """As `proctor eval push` does."""
    environment = ENVIRONMENT if name in ("sums", "careless") else ""
    return upload_folder(api, result.folder, UploadNames(environment=environment, name=name))


def upload_folder(api: Api, folder: Path, names: UploadNames = UploadNames()) -> str:  # noqa: B008
    async def push() -> str:
        async with ServerConnection(Context(url=api.url, token=api.token)) as server:
            run, _ = await push_folder(server, folder, names)
            return run.id

    return run_async(push())


def add_hosted_runs(connection: Connection) -> dict[str, str]:
    """Runs of a host, as the server leaves them: one that waits, one under way, and one per cause."""
    now = time.time()
    found = {"pending": add_hosted_run(connection, "pending", now)}
    found["running"] = add_hosted_run(connection, "running", now)
    start(connection, found["running"], now)
    for number, code in enumerate(get_args(CauseCode), 1):
        ended_at = now - 60.0 * number
        found[code] = add_hosted_run(connection, code, ended_at - 30.0)
        start(connection, found[code], ended_at - 20.0)
        ending = ENDINGS.get(code, "failed")
        cause = build_cause(code, f"What went wrong is called {code}.")
        queue.end_run(connection, queue.find_run(connection, found[code]), ending, cause, ended_at)
    return found


def add_hosted_run(connection: Connection, name: str, now: float) -> str:
    run_id = making.run(connection, now=now, name=name, settings={"num_examples": 4, "temperature": 0.7})
    append_events(
        connection, run_id, [build_log_event(text, at=now, level=level) for level, text in LOG_LINES]
    )
    return run_id


def start(connection: Connection, run_id: str, now: float) -> None:
    """A host takes the run, and two of its four rollouts end."""
    queue.start_attempt(connection, queue.find_run(connection, run_id), "host-1@none", now, LEASE_SECONDS)
    connection.execute(update(runs_table).where(runs_table.c.id == run_id).values(planned=4))
    rows = [making.row("one"), making.row("two", outcome="model_error", reward=None)]
    store_rows(connection, run_id, [read_row(each) for each in rows])
