"""A server for measures: as `proctor server` starts it, with runs in its queue and tokens that are printed.

python -m benchmarks.prepared_server FOLDER RUNS [DATABASE]
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from sqlalchemy import Connection

from proctor.api.runs import Permissions
from proctor.server.people.first_login import ADMIN
from proctor.server.people.tokens import default_scopes, make_token
from proctor.server.runs.records import Submission, add_run
from proctor.server.server import create_http_server, open_server
from proctor.server.settings import Quotas, Settings
from proctor.support.loop import raise_file_limit

FOLLOWERS = 2_000


def queued(connection: Connection, count: int) -> None:
    from benchmarks.published import publish

    environment_id, version_id = publish(connection, ADMIN)
    for number in range(count):
        asked = Submission(
            name=f"run {number}",
            owner=ADMIN,
            team=None,
            environment_id=environment_id,
            version_id=version_id,
            environment=f"{ADMIN}/sums",
            version="1.0",
            content_hash="0" * 64,
            model="scripted",
            settings={},
            permissions=Permissions(),
            timeout_minutes=60,
            max_cost=None,
        )
        add_run(connection, asked, float(number))


def main(folder: Path, runs: int, database_url: str | None = None) -> None:
    raise_file_limit()
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    port = listening.getsockname()[1]
    settings = Settings(
        data=folder / "data",
        database=database_url,
        port=port,
        runs_at_once=0,
        lease_seconds=3600.0,
        quotas=Quotas(streams_per_user=FOLLOWERS),  # all of them are one user's
    )
    opened = open_server(settings)
    database = opened.platform.database
    database.write_now(queued, runs)
    root = database.write_now(
        lambda connection: (
            make_token(connection, user=ADMIN, scopes=default_scopes(True), expires_at=None).secret
        )
    )
    host = database.write_now(
        lambda connection: (
            make_token(connection, kind="host", user=None, name="bench", scopes=[], expires_at=None).secret
        )
    )
    print(json.dumps({"url": settings.url, "root": root, "host": host}), flush=True)
    create_http_server(opened.platform).run([listening])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
