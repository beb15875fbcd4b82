"""Every route, tried by everyone who must not: nothing of another's is read, and nothing of it changes.

The tables below say which routes answer whom at all. A route that is new answers nobody until it is added to
one of them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from sqlalchemy import Connection as Transaction
from sqlalchemy import select

from proctor.api.common import HOST_KEY_HEADER
from proctor.api.runner import RunAssignment
from proctor.api.runs import Permissions
from proctor.server.db.tables import metadata
from proctor.server.runs import assignments
from proctor.server.settings import SandboxLimits
from tests.server.datasets.pushing import ROWS, push_rows, sha256_of
from tests.server.hostile import Call, Connection, filled, sample, schema_of
from tests.server.runs import making
from tests.server.serving import Api, Served, serving, settings_in

pytestmark = pytest.mark.xdist_group("roles")

TREASURE = "treasure4711"
"""In everything that is Ada's, and in nothing else."""
REGISTRY = '[[endpoint]]\nendpoint_id = "parrot"\nmodel = "parrot"\ntype = "scripted"\n'

OPEN = {
    "health",
    "list_datasets",
    "list_environments",
    "log_out",
    "read_environment_facets",
    "read_login",
    "ready",
}
"""Routes that answer anyone: with what everyone may read."""
FOR_USERS = {
    "add_login_code",
    "add_team",
    "add_token",
    "check_run",
    "follow_feed",
    "list_dataset_uploads",
    "list_global",
    "list_logins",
    "list_models",
    "list_prices",
    "list_run_facets",
    "list_runs",
    "list_sessions",
    "list_sources",
    "list_suites",
    "list_teams",
    "list_tokens",
    "read_example",
    "resolve_model",
    "whoami",
}
"""Routes that answer any user: with what is theirs."""
FOR_HOSTS = {
    "claim_check",
    "claim_run",
    "heartbeat",
    "list_attempts_over",
    "list_leftovers",
    "report_lost",
}
"""Routes that answer a host: with work that waits for one, and to one that plays nothing of the sort."""
FOR_RUNS = {
    "export_own_rows",
    "list_instances",
    "list_models",
    "list_prices",
    "list_sandboxes",
    "resolve_model",
    "take_ending",
    "take_report",
}
"""Routes that answer the process of a run: for that run."""
WITHOUT_SCOPES = OPEN - {"list_datasets", "list_environments", "read_environment_facets"}
ANSWERS: dict[str, set[str]] = {
    "nobody": OPEN,
    "stranger": OPEN | FOR_USERS,
    "former member": OPEN | FOR_USERS,
    "token without scopes": WITHOUT_SCOPES,
    "run": OPEN | FOR_RUNS,
    "stand-in": OPEN | {"list_leftovers"},
    "host": OPEN | FOR_HOSTS,
}
POLICY = '[[rules]]\nmeasure = "mean"\nat_least = 0.5\n'
OF_USE = ("last_used_at", "expires_at", "host_key_hash")
FOR_ADMINS = {
    "list_audit_log",
    "list_balances",
    "list_hosts",
    "list_users",
    "list_waiting",
    "list_working_hosts",
    "read_storage",
}
FOR_MACHINES = {
    "export_baseline",
    "export_own_rows",
    "list_instances",
    "list_sandboxes",
    "read_file",
    "read_wheel_for_host",
    "show_instance",
    "show_sandbox",
}
LACKING = {
    "compare_runs",
    "read_files",
    "read_rollout_call",
    "read_rollout_file",
    "read_rollout_image",
    "read_source",
    "read_wheel",
    "show_session",
}
"""Routes for what Ada has not: a second run, a model call, a file of her version."""
REFUSED = (401, 403, 404)
NOT_TRIED = {
    "add_instance": 409,  # this server makes none
    "add_sandbox": 409,
    "push": 422,  # it has a form of its own
    "report_check": 409,  # nobody checks this version
    "start_example": 409,  # this server has no embedded model
}
"""What is refused for another reason."""
OF_CALLERS = {"announcements", "audit_entries", "browser_sessions", "creations", "login_codes", "servers"}
"""Tables that say what was tried, and by whom."""


class Estate(NamedTuple):
    """What Ada has, and who would like to have it."""

    served: Served
    names: Mapping[str, str]
    callers: Mapping[str, Api]


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    folder: Path = tmp_path_factory.mktemp("estate")
    (folder / "endpoints.toml").write_text(REGISTRY)
    settings = settings_in(
        folder,
        endpoints=folder / "endpoints.toml",
        default_balance_usd=5.0,
        sandboxes=SandboxLimits(at_once=0),
        source_hosts=("127.0.0.1",),
    )
    with serving(settings) as served:
        yield furnish(served)


def furnish(served: Served) -> Estate:
    ada, eve, fred = served.user("ada"), served.user("eve"), served.user("fred")
    write = served.platform.database.write_now
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "fred", "role": "admin"})
    write(making.environment)
    write(making.environment, "eve", "mine")
    ada.ok("PATCH", "/environments/ada/sums", {"description": TREASURE})
    kept = ada.post("/environments/ada/sums/secrets", {"name": "JUDGE_KEY", "value": TREASURE})
    said = ada.post("/environments/ada/sums/variables", {"name": "MODE", "value": TREASURE})
    owned = ada.post("/secrets", {"name": "SHARED", "value": TREASURE, "description": TREASURE})
    push_rows(ada, "ada", "sums", ROWS)
    ada.ok("PATCH", "/datasets/ada/sums", {"description": TREASURE})
    upload = ada.post("/datasets/ada/more/uploads", {"size": 10, "format": "jsonl"})
    told = {
        "client_run_id": "a",
        "environment": "ada/sums",
        "model": "parrot",
        "name": TREASURE,
        "team": "lab",
    }
    run = ada.post("/uploads", {**told, "metadata": {"suite": "sweep"}})["id"]
    row = json.loads(making.row(1, prompt=[{"role": "user", "content": TREASURE}]))
    ada.post(f"/uploads/{run}/reports", {"batch": 1, "rows": [row]})
    ada.post(f"/uploads/{run}/end", {"status": "finished"})
    key = ada.get(f"/runs/{run}/rollouts")["items"][0]["key"]
    comment = ada.post(f"/runs/{run}/comments", {"text": TREASURE})["id"]
    ada.post(
        f"/runs/{run}/labels", {"labels": [{"example_id": 1, "rollout": 0, "score": 1, "note": TREASURE}]}
    )
    token = ada.post("/tokens", {"name": TREASURE})["token"]["id"]
    bare = ada.post("/tokens", {"name": "bare", "scopes": []})["secret"]
    source = ada.post("/sources", {"url": "https://127.0.0.1:9/sums.git", "name": TREASURE})["source"]["id"]
    ada.ok("DELETE", "/teams/lab/members/fred")
    played, placed = write(assign_to_eve, served), write(assign_to_eve, served)
    host = served.root.post("/hosts", {"name": "gpu"})["token"]
    names = {
        "owner": "ada",
        "name": "sums",
        "version": "1.0",
        "team": "lab",
        "user": "ada",
        "who": "ada",
        "model": "parrot",
        "run_id": run,
        "key": key,
        "number": "0",
        "index": "0",
        "event": "0",
        "part": "0",
        "sha256": sha256_of(ROWS),
        "secret_id": kept["id"],
        "variable_id": said["id"],
        "upload_id": upload["id"],
        "comment_id": comment,
        "token_id": token,
        "login_id": "0123456789abcdef",
        "source_id": source,
        "commit_sha": "a" * 40,
        "suite_id": "sweep",
        "version_id": "ver-ada-sums",
        "global_id": owned["id"],
    }
    callers = {
        "owner": ada,
        "nobody": served.nobody,
        "stranger": eve,
        "former member": fred,
        "token without scopes": Api(served.url, bare),
        "run": Api(served.url, played.token),
        "stand-in": Api(served.url, placed.delegate_token),
        "host": Api(served.url, host, "k" * 32),
    }
    return Estate(served, names, callers)


def assign_to_eve(connection: Transaction, served: Served) -> RunAssignment:
    """A run of Eve's that is being played."""
    theirs: dict[str, Any] = {
        "environment": "eve/mine",
        "environment_id": "env-eve-mine",
        "version_id": "ver-eve-mine",
    }
    making.run(connection, "eve", permissions=Permissions(sandboxes=True, instances=True), **theirs)
    platform = served.platform
    made = assignments.claim_assignment(connection, platform.vault, platform.settings, "gpu@0", delegate=True)
    assert made is not None
    return made


# Every operation


class Attempt(NamedTuple):
    """One honest request, about what is Ada's."""

    operation: str
    call: Call


def list_attempts(estate: Estate) -> list[Attempt]:
    document = estate.served.nobody.get("/schema/openapi.json")
    names, run = estate.names, estate.names["run_id"]
    place = f"{run}/{names['key']}/0"
    queries = {
        "change_user": "disabled=true",
        "check_gate": "policy=" + quote(POLICY),
        "compare_runs": f"run={run}&run=run-0",
        "diff_rollouts": f"a={place}&b={place}",
        "heartbeat": "host=gpu&attempt=1",
        "list_entries": "owner=ada",
        "list_usage": "owner=ada",
        "push_dataset": "format=jsonl&visibility=public",
        "read_balance": "owner=ada",
        "report_lost": "host=gpu&attempt=1",
        "resolve_model": "name=parrot",
        "search_run": f"q={TREASURE}",
        "send_dataset_part": "offset=0",
    }
    run_of_ada = {"environment": "ada/sums", "model": "parrot"}
    said = {"rollout": "sums", "entrypoint": "main.py", "model_path": "parrot", "dataset": "sums"}
    recipe = {"experiment": said, "evaluation": {"limit": "all"}}
    dataset = {**sample_dataset(document), "sha256": names["sha256"]}
    submission = {"source": names["source_id"], "recipe": recipe, "dataset": dataset}
    bodies: dict[str, Any] = {
        "add_global": {"name": "MORE", "value": "x", "team": "lab"},
        "add_run": run_of_ada,
        "add_run_comment": {"text": "x"},
        "add_runs": {"runs": [run_of_ada]},
        "add_instance": {"command": ["sh"], "port": 80},
        "add_sandbox": {},
        "add_source": {"url": "https://127.0.0.1:9/more.git", "team": "lab"},
        "add_submission": submission,
        "add_team": {"name": f"team-of-{secrets.token_hex(4)}"},
        "add_token": {},
        "add_upload": {"client_run_id": "b", "environment": "x", "model": "m", "team": "lab"},
        "check_run": {**run_of_ada, "team": "lab", "max_cost_usd": 1000},
        "estimate_run": run_of_ada,
        "grant": {"owner": "eve", "amount_usd": 5},
        "log_in": {"token": "proctor_0_0"},
        "preview_submission": submission,
        "select_submitted_rows": {"recipe": recipe, "dataset": "ada/sums"},
        "put_member": {"user": "eve", "role": "admin"},
        "take_report": {"batch": 1},
    }
    found = []
    for path, operations in document["paths"].items():
        own = {**names, "secret_id": names["global_id"]} if path.startswith("/api/v1/secrets") else names
        for method, operation in operations.items():
            name = operation["operationId"]
            schema = schema_of(operation)
            body = bodies.get(name, None if schema is None else sample(schema, document))
            asked = filled(path, own) + ("?" + queries[name] if name in queries else "")
            encoded = None if body is None else json.dumps(body).encode()
            found.append(Attempt(name, Call(method.upper(), asked, encoded, name)))
    return sorted(found, key=lambda attempt: attempt.operation == "take_ending")  # after it, the run is over


def sample_dataset(document: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = sample({"$ref": "#/components/schemas/RunDataset"}, document)
    return found


def keep_rows(connection: Transaction) -> set[str]:
    """Everything that is stored, but when tokens were used."""
    return {
        f"{table.name} {[value for name, value in row._mapping.items() if name not in OF_USE]}"
        for table in metadata.sorted_tables
        if table.name not in OF_CALLERS
        for row in connection.execute(select(table))
    }


@pytest.mark.parametrize("caller", ANSWERS)
def test_no_route_shows_or_changes_what_is_not_the_callers(estate: Estate, caller: str) -> None:
    read = estate.served.platform.database.read_now
    before, api = read(keep_rows), estate.callers[caller]
    connection = Connection(estate.served.url, api.token)
    headers = {HOST_KEY_HEADER: api.host_key} if api.host_key else {}
    answered, shown, unclear = set(), [], []
    for operation, call in list_attempts(estate):
        status, body = connection.status(call, headers)
        if status < 300:
            answered.add(operation)
        elif status not in (*REFUSED, NOT_TRIED.get(operation)):
            unclear.append(f"{status} {call.method} {call.path}: {body.decode()[:200]}")
        if TREASURE.encode() in body:
            shown.append(f"{call.method} {call.path}")
    connection.close()

    assert shown == []
    assert unclear == [], "whether the caller may was not looked at; send what the route takes"
    assert answered == ANSWERS[caller]
    assert [row for row in before - read(keep_rows) if not is_of_eve(row)] == []


def is_of_eve(row: str) -> bool:
    """Of the run whose token is tried, and of the host that is."""
    return "'eve'" in row or (row.startswith("tokens") and "'host'" in row)


def test_what_is_tried_is_what_the_owner_may_read(estate: Estate) -> None:
    """Or the test above would try at nothing."""
    ada = Connection(estate.served.url, estate.callers["owner"].token)
    found = {}
    for operation, call in list_attempts(estate):
        if call.method == "GET":
            found[operation], _ = ada.status(call)
    ada.close()

    assert {operation for operation, status in found.items() if status in REFUSED} == (
        FOR_ADMINS | FOR_MACHINES | LACKING
    )


def test_who_has_the_address_of_a_file_in_the_index_needs_a_role_too(estate: Estate) -> None:
    for api in estate.callers.values():
        if api is not estate.callers["owner"]:
            assert api("GET", "/simple/ada/sums/").status in REFUSED
            assert api("GET", "/simple/ada/sums/sums-1.0-py3-none-any.whl").status in REFUSED


def test_a_run_does_not_learn_who_started_it_or_their_teams(estate: Estate) -> None:
    assert estate.callers["stranger"].get("/session")["user"]["name"] == "eve"
    for machine in ("stand-in", "host"):
        assert estate.callers[machine].get("/session")["user"] is None
    token = estate.served.platform.database.write_now(assign_to_eve, estate.served).token
    told = Api(estate.served.url, token).get("/session")
    assert (told["user"], told["teams"]) == (None, [])
