"""No value of any parameter makes the server fail: each is taken or refused, whichever the database."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection as Transaction

from proctor.config.schema import EvalConfig
from proctor.server.people.tokens import make_token
from proctor.server.runs import assignments, queue
from proctor.server.settings import SandboxLimits
from tests.server.hostile import Call, Connection, calls, replaced
from tests.server.runs import making
from tests.server.serving import Served, serving, settings_in

NAMES = {"owner": "ada", "name": "sums", "version": "1.0", "team": "lab", "user": "ada", "model": "parrot"}
ROW = {"example_id": 1, "rollout": 0, "outcome": "scored", "reward": 1.0, "metrics": {"a": 1.0}}
LINE = {"level": "INFO", "text": "x", "at": 1.0}
SETTINGS = {
    name: value
    for field in msgspec.structs.fields(EvalConfig)
    if isinstance(value := field.default, int | float | str | bool) and (name := field.name)
}
REPORT = {"batch": 1, "planned": 1, "rows": [ROW], "logs": [LINE], "metadata": {"seed": 1, "a": {}}}
CHAT = {"model": "parrot", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "stream": False}
DOCUMENTED = "/api/v1"
BODIES: dict[str, Any] = {
    f"POST {DOCUMENTED}/runs": {"environment": "ada/sums@1.0", "model": "parrot", "settings": SETTINGS},
    f"POST {DOCUMENTED}/runs/check": {
        "environment": "ada/sums@1.0",
        "model": "parrot",
        "settings": {**SETTINGS, "until_decided": "run-0", "task_ids": [1]},
    },
    f"POST {DOCUMENTED}/runs/estimate": {
        "environment": "ada/sums@1.0",
        "model": "parrot",
        "settings": {**SETTINGS, "num_examples": 1, "max_tokens": 1},
        "team": "lab",
    },
    f"POST {DOCUMENTED}/uploads/{{run_id}}/reports": REPORT,
    f"POST {DOCUMENTED}/hosts/checks/claims": {"host": "elsewhere"},
}
GATEWAY = {
    "/v1/chat/completions": CHAT,
    "/v1/messages": CHAT,
    "/v1/messages/count_tokens": CHAT,
    "/v1/responses": {
        "model": "parrot",
        "input": "x",
        "max_output_tokens": 1,
        "tools": [{"type": "function"}],
    },
}
REGISTRY = '[[endpoint]]\nendpoint_id = "parrot"\nmodel = "parrot"\ntype = "scripted"\n'

pytestmark = pytest.mark.xdist_group("hostile values")
every_nth = pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
"""`make soak` sends every call. The step shares no factor with the number of hostile values, so that each
value reaches some operation and each operation gets some values."""


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "endpoints.toml").write_text(REGISTRY)
    database = None if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    settings = settings_in(
        folder,
        database=database,
        endpoints=folder / "endpoints.toml",
        default_balance_usd=5.0,
        sandboxes=SandboxLimits(at_once=0),
    )
    with serving(settings) as server:
        server.platform.database.write_now(making.user, "ada")
        server.platform.database.write_now(making.environment, "ada", "sums")
        server.root.post("/teams", {"name": "lab"})
        yield server


def failures(
    served: Served, token: str, made: Iterator[Call], declared: Mapping[str, Collection[int]] | None = None
) -> list[str]:
    """What the server failed at, which calls it did not outlive, and answers that the document does not know.

    `declared` are the statuses of each operation.
    """
    connection, found = Connection(served.url, token), []
    for call in made:
        status, _ = connection.status(call)
        unknown = declared is not None and call.operation and status not in declared[call.operation]
        if status >= 500 or unknown:
            found.append(f"{status} {call.method} {call.path[:100]}: {call.why}")
    connection.close()
    return found


def declared_statuses(document: Mapping[str, Any]) -> dict[str, set[int]]:
    return {
        operation["operationId"]: {int(status) for status in operation["responses"]}
        for operations in document["paths"].values()
        for operation in operations.values()
    }


@every_nth
def test_no_value_of_any_parameter_makes_an_operation_fail(lab: Served, step: int) -> None:
    document = lab.nobody.get("/schema/openapi.json")
    upload = lab.root.post("/uploads", {"client_run_id": "a", "environment": "x", "model": "m"})["id"]
    names = {**NAMES, "run_id": upload}
    made = list(calls(document, names, BODIES))
    assert len(made) > 10_000
    made = made[::step]

    assert failures(lab, lab.root.token, iter(made), declared_statuses(document)) == []

    reading = [  # nothing that was taken makes anything unreadable
        Call("GET", call.path.partition("?")[0], None, "honest") for call in made if call.method == "GET"
    ]
    assert failures(lab, lab.root.token, iter(dict.fromkeys(reading))) == []
    everything = [Call("GET", f"/api/v1/{path}", None, "all") for path in ("runs", "environments", "tokens")]
    assert failures(lab, lab.root.token, iter(everything)) == []


@every_nth
def test_nothing_that_a_run_reports_makes_the_server_fail(lab: Served, step: int) -> None:
    def begin(transaction: Transaction) -> tuple[str, str]:
        run_id = making.run(transaction, "ada")
        row = queue.start_attempt(
            transaction, queue.find_run(transaction, run_id), "host", time.time(), 3600.0
        )
        scopes = assignments.RUN_SCOPES
        return run_id, make_token(
            transaction,
            kind="run",
            user="ada",
            scopes=scopes,
            expires_at=None,
            run_id=run_id,
            attempt=row.attempt,
        ).secret

    run_id, token = lab.platform.database.write_now(begin)
    reports = (
        Call("POST", "/api/v1/runner/reports", body.replace(b'"batch": 1', b'"batch": %d' % number), why)
        for number, (why, body) in enumerate(itertools.islice(replaced(REPORT), None, None, step), 1)
    )
    assert failures(lab, token, reports) == []
    paths = ("", "/rows", "/events", "/results.jsonl", "/metadata.json")
    reading = [Call("GET", f"/api/v1/runs/{run_id}{path}", None, "honest") for path in paths]
    assert failures(lab, lab.root.token, iter(reading)) == []


@every_nth
def test_nothing_that_a_host_says_makes_the_server_fail(lab: Served, step: int) -> None:
    document = lab.nobody.get("/schema/openapi.json")
    host = lab.root.post("/hosts", {"name": "elsewhere"})["token"]
    run_id = lab.platform.database.write_now(making.run, "ada")
    names = {**NAMES, "run_id": run_id, "version_id": "ver-ada-sums", "sha256": "a" * 64}
    made = [call for call in calls(document, names, BODIES) if "/hosts" in call.path]
    assert failures(lab, host, iter(made[::step]), declared_statuses(document)) == []


@every_nth
def test_nothing_that_is_asked_of_the_gateway_makes_the_server_fail(lab: Served, step: int) -> None:
    made = (
        Call("POST", path, body, why) for path, honest in GATEWAY.items() for why, body in replaced(honest)
    )
    sent = itertools.islice(made, None, None, step)
    found = [line for line in failures(lab, lab.root.token, sent) if line.startswith("500")]
    assert found == []


def test_a_header_that_was_made_to_hurt_is_refused(lab: Served) -> None:
    connection = Connection(lab.url, lab.root.token)
    hostile = ("\xff", "9" * 5_000, "x" * 20_000, "Basic \xff", "Basic " + "AA" * 5_000, "Bearer ", "²")
    for name in ("idempotency-key", "last-event-id", "authorization", "x-api-key", "content-type", "range"):
        for value in hostile:
            for method, path in (("POST", "/api/v1/tokens"), ("GET", "/api/v1/runs/run-0/events/stream")):
                call = Call(method, path, b"{}" if method == "POST" else None, f"{name}: {value[:20]!r}")
                status, _ = connection.status(call, {name: value.encode("latin-1")})  # type: ignore[dict-item]
                assert status < 500, (call, status)
    connection.close()


@pytest.mark.parametrize("value", ["abc", None, [], {}, 1.5, "9" * 5_000])
@pytest.mark.parametrize("name", ["num_examples", "rollouts_per_example", "max_tokens"])
def test_an_estimate_of_what_could_not_be_run_is_refused(lab: Served, name: str, value: Any) -> None:
    body = {"environment": "ada/sums", "model": "parrot", "settings": {name: value}}
    asked, run = lab.root("POST", "/runs/estimate", body), lab.root("POST", "/runs", body)
    assert asked.status == run.status or value is None
    assert asked.status in (200, 201, 422)


@pytest.mark.parametrize("name", ["num_examples", "rollouts_per_example"])
def test_more_rollouts_than_anybody_could_play_are_estimated_or_refused(lab: Served, name: str) -> None:
    for count in (10**15, 2**63, 10**30):
        body = {"environment": "ada/sums", "model": "parrot", "settings": {name: count}}
        assert lab.root("POST", "/runs/estimate", body).status in (200, 422)


@pytest.mark.parametrize("version", ["9" * 5_000, "1!" + "9" * 5_000, "1.0rc" + "9" * 5_000])
def test_a_version_of_thousands_of_digits_is_refused_by_name(lab: Served, version: str) -> None:
    answer = lab.root("GET", f"/environments/ada/sums/versions/{version}")
    assert (answer.status, answer.code) == (422, "invalid")
    assert "characters" in answer.body["message"]
