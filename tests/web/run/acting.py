"""Runs of ada's to act on, made for one test and deleted after it; and what happens to them elsewhere."""

from __future__ import annotations

import time

from sqlalchemy import Connection, delete, update

from proctor.api.runs import CauseCode, RunVisibility
from proctor.run import RunStatus
from proctor.server.db.tables import browser_sessions
from proctor.server.db.tables import runs as runs_table
from proctor.server.runs import queue
from proctor.server.runs.causes import build_cause
from tests.web.lab import ENDINGS, Lab, add_hosted_run, start


class OwnRuns:
    """Makes runs on the lab's server, and deletes them in the end."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._ids: list[str] = []

    def add(
        self,
        name: str,
        *,
        cause: CauseCode | None = None,
        visibility: RunVisibility = "private",
        **columns: object,
    ) -> str:
        """A run that is being played or, with a cause, has ended."""

        def work(connection: Connection) -> str:
            run_id = add_hosted_run(connection, name, time.time())
            start(connection, run_id, time.time())
            values = {"visibility": visibility, **columns}
            connection.execute(update(runs_table).where(runs_table.c.id == run_id).values(values))
            if cause is not None:
                finish(connection, run_id, ENDINGS.get(cause, "failed"), cause)
            return run_id

        self._ids.append(self._lab.server.platform.database.write_now(work))
        self.wake()
        return self._ids[-1]

    def end(self, run_id: str, status: RunStatus = "stopped") -> None:
        """Its host reports that it has ended."""
        self._lab.server.platform.database.write_now(finish, run_id, status, None)
        self.wake()

    def wake(self) -> None:
        async def tell() -> None:
            self._lab.server.platform.runs.feed.wake(self._ids[-1])

        self._lab.server.call(tell)

    def delete_all(self) -> None:
        def work(connection: Connection) -> None:
            connection.execute(delete(runs_table).where(runs_table.c.id.in_(self._ids)))

        self._lab.server.platform.database.write_now(work)


def finish(connection: Connection, run_id: str, status: RunStatus, cause: CauseCode | None) -> None:
    why = None if cause is None else build_cause(cause, f"What went wrong is called {cause}.")
    queue.end_run(connection, queue.find_run(connection, run_id), status, why, time.time())


def expire_sessions(lab: Lab) -> None:
    """Every browser's session is over."""
    lab.server.platform.database.write_now(lambda connection: connection.execute(delete(browser_sessions)))

    async def forget() -> None:
        lab.server.platform.callers.forget()

    lab.server.call(forget)
