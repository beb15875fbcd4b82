"""Early stop of hosted runs: which baselines a request may name, and what the run's process reads of one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection

from proctor.cli.commands.hosted_requests import build_request
from proctor.config.schema import HostedOptions
from proctor.config.suite import SuiteEntry
from proctor.errors import ConfigError
from proctor.server.people.tokens import make_token
from proctor.server.runs import queue
from proctor.server.runs.incoming import read_row
from proctor.server.runs.rows import store_rows
from tests.server.hub.packages import made, push
from tests.server.runs import making
from tests.server.runs.test_former_members import MODELS
from tests.server.serving import Api, Served, serving, settings_in


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "endpoints.toml").write_text(MODELS)
    with serving(settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml")) as server:
        yield server


@pytest.fixture
def ada(served: Served, tmp_path: Path) -> Api:
    api = served.user("ada")
    push(api, made(tmp_path / "p"))
    return api


def start(api: Api, **settings: Any) -> Any:
    return api("POST", "/runs", {"environment": "ada/greet", "model": "parrot", "settings": settings})


def end(api: Api, run_id: str) -> None:
    api.post(f"/runs/{run_id}/stop", {})


def token_of(served: Served, run_id: str) -> Api:
    """As the process of a run calls the server, once a host has taken the run."""

    def work(connection: Connection) -> str:
        row = queue.start_attempt(
            connection, queue.find_run(connection, run_id), "host@none", time.time(), 1e6
        )
        names = {"user": "ada", "name": run_id, "run_id": run_id, "attempt": row.attempt}
        return make_token(connection, kind="run", scopes=["inference"], expires_at=None, **names).secret

    return Api(served.url, served.platform.database.write_now(work))


def test_a_request_may_stop_early_by_precision_or_against_a_run_that_has_ended(ada: Api) -> None:
    baseline = start(ada).body["id"]
    early = start(ada, until_decided=baseline)
    end(ada, baseline)

    decided, precise = start(ada, until_decided=baseline), start(ada, until_halfwidth=0.05)

    assert early.status == 422
    assert f"{baseline} has not ended" in early.body["message"]
    assert decided.status == precise.status == 201
    assert ada.get(f"/runs/{decided.body['id']}")["settings"] == {"until_decided": baseline}


def test_a_baseline_is_one_that_the_owner_may_read(served: Served, ada: Api) -> None:
    theirs = start(ada).body["id"]
    end(ada, theirs)
    ben = served.user("ben")
    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "ben", "role": "read"})

    refused = start(ben, until_decided=theirs)
    negative = start(ben, until_halfwidth=-1)
    both = start(ben, until_halfwidth=0.1, until_decided=theirs)

    assert refused.status == negative.status == both.status == 422
    assert "that you may read" in refused.body["message"]
    assert refused.body["details"]["field"] == "settings.until_decided"


def test_the_process_of_a_run_reads_the_scores_of_its_baseline_and_nothing_else(
    served: Served, ada: Api
) -> None:
    baseline = start(ada).body["id"]
    rows = [making.row("one"), making.row("two", outcome="model_error", reward=None)]

    def fill(connection: Connection) -> None:
        store_rows(connection, baseline, [read_row(each) for each in rows])

    served.platform.database.write_now(fill)
    end(ada, baseline)
    run_id = start(ada, until_decided=baseline).body["id"]
    alone = start(ada).body["id"]

    answer = token_of(served, run_id)("GET", "/runner/baseline.jsonl")
    none = token_of(served, alone)("GET", "/runner/baseline.jsonl")
    person = ada("GET", "/runner/baseline.jsonl")

    told = answer.body if isinstance(answer.body, dict) else msgspec.json.decode(answer.body)
    assert set(told) == {"example_id", "rollout", "outcome", "reward", "task_hash"}
    assert told["example_id"] == "one"
    assert (none.status, person.status) == (404, 403)


def test_the_command_line_refuses_a_baseline_that_the_server_cannot_see() -> None:
    entry = SuiteEntry(given={"env_id": "ada/greet", "until_decided": "latest"}, origins={}, line=1)

    with pytest.raises(ConfigError, match="a server cannot see it"):
        build_request(entry, HostedOptions(), None)
