"""What a run is given, and what wins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, select

from proctor.server.db.tables import run_secrets, runs, secrets
from proctor.server.problems import InvalidError
from proctor.server.runs.service import settle_ended_runs
from proctor.server.secrets.resolution import (
    find_missing,
    list_available_names,
    save_run_secrets,
    secret_values_of_run,
    variables_of_run,
)
from proctor.server.secrets.vault import UnreadableError
from tests.server.secrets.conftest import AddEnvironment
from tests.server.secrets.test_secrets import add_run
from tests.server.serving import Served

NAMES = ["A", "B", "C", "D"]


@pytest.fixture
def run(served: Served, add_environment: AddEnvironment) -> Any:
    """A run whose environment sets A to D, each of them once more by whatever ranks higher."""
    ada = served.user("ada")
    place = add_environment("ada", "maze")
    for name in NAMES:
        ada.post(f"{place}/variables", {"name": name, "value": f"{name}-variable"})
    made = ada.post("/secrets", {"name": "B", "value": "B-linked"})
    ada.ok("PUT", f"{place}/secrets/links/{made['id']}")
    for name in "CD":
        ada.post(f"{place}/secrets", {"name": name, "value": f"{name}-environment"})
    return SimpleNamespace(id=add_run(served, "ada"), environment_id="env-ada-maze")


def found_by(served: Served, run: Any, *, may_write: bool) -> dict[str, str]:
    def work(connection: Connection) -> dict[str, str]:
        values = secret_values_of_run(connection, served.platform.vault, run, may_write=may_write)
        return variables_of_run(connection, run, values)

    return served.platform.database.read_now(work)


def test_the_more_particular_wins(served: Served, run: Any) -> None:
    served.platform.database.write_now(save_run_secrets, served.platform.vault, run.id, {"D": "D-run"})
    given = found_by(served, run, may_write=True)
    assert given == {"A": "A-variable", "B": "B-linked", "C": "C-environment", "D": "D-run"}


def test_secrets_of_an_environment_reach_only_who_may_change_it(served: Served, run: Any) -> None:
    served.platform.database.write_now(save_run_secrets, served.platform.vault, run.id, {"D": "D-run"})
    given = found_by(served, run, may_write=False)
    assert given == {"A": "A-variable", "B": "B-variable", "C": "C-variable", "D": "D-run"}


def test_variables_are_not_taken_out_of_what_a_run_says(served: Served, run: Any) -> None:
    values = served.platform.database.read_now(
        secret_values_of_run, served.platform.vault, run, may_write=True
    )
    assert values == {"B": "B-linked", "C": "C-environment", "D": "D-environment"}


def test_a_run_that_has_finished_leaves_none_of_its_secrets(served: Served, run: Any) -> None:
    database = served.platform.database
    database.write_now(save_run_secrets, served.platform.vault, run.id, {"D": "D-run"})
    finished = runs.update().where(runs.c.id == run.id).values(status="finished", ended_at=1.0)
    database.write_now(lambda connection: connection.execute(finished))
    database.write_now(settle_ended_runs, 2.0)
    assert database.read_now(lambda connection: connection.execute(select(run_secrets)).all()) == []


def test_a_run_cannot_be_given_what_would_change_its_process(served: Served, run: Any) -> None:
    with pytest.raises(InvalidError, match="'LD_PRELOAD' would change how the run itself works"):
        served.platform.database.write_now(
            save_run_secrets, served.platform.vault, run.id, {"LD_PRELOAD": "x"}
        )


def test_what_an_environment_needs_and_nobody_gives_is_named(served: Served, run: Any) -> None:
    names = served.platform.database.read_now(list_available_names, run.environment_id, may_write=True)
    assert find_missing(["A", "Z", "Y"], names | {"Y"}) == ["Z"]


def test_sealed_values_that_were_swapped_in_the_database_are_refused(served: Served, run: Any) -> None:
    def swap(connection: Any) -> None:
        rows = connection.execute(select(secrets.c.id, secrets.c.sealed)).all()
        first, second = rows[0], rows[1]
        connection.execute(secrets.update().where(secrets.c.id == first.id).values(sealed=second.sealed))

    served.platform.database.write_now(swap)
    with pytest.raises(UnreadableError):
        found_by(served, run, may_write=True)
