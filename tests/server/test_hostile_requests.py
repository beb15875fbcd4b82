"""Requests that no honest client would make: each is refused, and changes nothing for others."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, update

from proctor.api.people import Scope
from proctor.api.runs import Permissions
from proctor.server.db.tables import runs
from proctor.server.people.tokens import make_token
from proctor.server.runs import assignments, queue
from proctor.server.secrets import resolution
from tests.server.runs import making
from tests.server.serving import Answer, Api, Served, serving, settings_in

SECRET = "hunter2-hunter2"
SCOPES: list[Scope] = ["environments:read", "environments:write", "runs:read", "runs:write"]


class Played(NamedTuple):
    """A run that is being played."""

    id: str
    inside: Api


pytestmark = pytest.mark.xdist_group("hostile")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(settings_in(tmp_path_factory.mktemp("lab"), default_balance_usd=5.0)) as server:
        server.platform.database.write_now(making.user, "ada")
        server.platform.database.write_now(making.environment, "ada", "sums")
        yield server


def of(served: Served, user: str, *, scopes: list[Scope] | None = None) -> Api:
    """Somebody with another token."""
    wanted = SCOPES if scopes is None else scopes

    def work(connection: Connection) -> str:
        return make_token(connection, user=user, scopes=wanted, expires_at=None).secret

    return Api(served.url, served.platform.database.write_now(work))


def play(served: Served, owner: str = "ada", **changes: Any) -> Played:
    """A run as a host has it that has just begun to play it."""

    def work(connection: Connection) -> Played:
        run_id = making.run(connection, owner, **changes)
        resolution.save_run_secrets(connection, served.platform.vault, run_id, {"API_KEY": SECRET})
        row = queue.start_attempt(connection, queue.find_run(connection, run_id), "host", time.time(), 3600.0)
        made = make_token(
            connection,
            kind="run",
            user=owner,
            scopes=assignments.RUN_SCOPES,
            expires_at=None,
            run_id=run_id,
            attempt=row.attempt,
        )
        return Played(run_id, Api(served.url, made.secret))

    return served.platform.database.write_now(work)


def host_of(served: Served) -> Api:
    return Api(served.url, served.root.post("/hosts", {"name": "elsewhere"})["token"], host_key="k" * 64)


def report(run: Played, *rows: bytes, **more: Any) -> Answer:
    head = json.dumps({"batch": 1, **more})[:-1].encode()
    body = head + b', "rows": [' + b",".join(rows) + b"]}"
    return run.inside("POST", "/runner/reports", data=body)


# Every route, for everybody who has no business there

OPEN = {
    "/api/v1/health",
    "/api/v1/ready",
    "/api/v1/session",
    "/api/v1/environments",
    "/api/v1/environments/facets",
    "/api/v1/datasets",
    "/api/v1/schema/openapi.json",
}
"""For anybody."""
OF_RUNS = {
    "/api/v1/runner/results.jsonl",
    "/api/v1/sandboxes",
    "/api/v1/instances",
    "/api/v1/prices",
    "/api/v1/models",
}


def read_routes(served: Served) -> list[str]:
    names = {"owner": "ada", "name": "sums", "version": "1.0", "run_id": "run-0", "path": "x"}
    paths = served.nobody.get("/schema/openapi.json")["paths"]
    found = [path for path, told in paths.items() if "get" in told]
    return [re.sub(r"{(\w+)}", lambda match: names.get(match[1], "x-0"), path) for path in found]


def test_without_a_token_every_route_is_closed_but_those_for_everybody(lab: Served) -> None:
    routes = read_routes(lab)
    assert len(routes) > 30
    opened = {path for path in routes if lab.nobody("GET", path).status not in (401, 403, 404)}
    assert opened <= OPEN


def test_a_runs_token_reads_what_is_the_runs_and_nothing_else(lab: Served) -> None:
    run = play(lab)
    opened = {path for path in read_routes(lab) if run.inside("GET", path).status not in (401, 403, 404)}
    assert {path for path in opened if "/environments/ada/sums" not in path} <= OPEN | OF_RUNS


def test_a_hosts_token_is_no_persons(lab: Served) -> None:
    host = host_of(lab)
    opened = {path for path in read_routes(lab) if host("GET", path).status not in (401, 403, 404)}
    assert opened <= OPEN
    assert host("POST", "/runs", {"environment": "ada/sums"}).status == 403
    assert host("POST", "/v1/chat/completions", {"messages": []}).status in (401, 403)


def test_a_persons_token_is_no_hosts(lab: Served) -> None:
    for path, body in (
        ("/hosts/claims", {"host": "mine"}),
        ("/hosts/checks/claims", {}),
        ("/runner/end", {"status": "failed"}),
    ):
        assert lab.root("POST", path, body).status == 403
    assert lab.root("GET", f"/hosts/wheels/{'a' * 64}").status == 403


def test_a_token_of_an_admin_that_was_not_made_for_it_sees_no_more_than_anybodys(lab: Served) -> None:
    run = play(lab)
    lesser = of(lab, "root")

    assert lab.root.get(f"/runs/{run.id}")["owner"] == "ada"
    assert lesser("GET", f"/runs/{run.id}").status == 404
    assert lesser("POST", f"/runs/{run.id}/stop", {}).status == 404
    assert lesser.get("/runs")["items"] == []
    assert lesser("GET", "/balance?owner=ada").status == 404
    assert lesser("GET", "/sandboxes").status == 403


# Money and time


def test_founding_teams_makes_no_money(lab: Served) -> None:
    ada = of(lab, "ada")
    ada.post("/teams", {"name": "mint"})
    assert ada.get("/balance?owner=mint")["available_usd"] == 0


@pytest.mark.parametrize(
    "more",
    [{"timeout_minutes": 10**6}, {"timeout_minutes": -1}, {"max_cost_usd": 1e300}, {"max_cost_usd": -1}],
)
def test_a_run_that_is_resumed_has_the_limits_of_any_run(lab: Served, more: dict[str, Any]) -> None:
    run, ada = play(lab), of(lab, "ada")
    run.inside.post("/runner/end", {"status": "failed", "cause": {"code": "crashed", "message": "x"}})
    assert ada("POST", f"/runs/{run.id}/resume", more).status == 422


def test_runs_of_a_user_who_is_disabled_are_stopped(lab: Served) -> None:
    mallory = lab.user("mallory")
    lab.platform.database.write_now(making.environment, "mallory", "bad")
    waiting = lab.platform.database.write_now(making.run, "mallory")
    run = play(lab, "mallory")

    lab.root.ok("PATCH", "/users/mallory?disabled=true")

    assert mallory("GET", "/runs").code == "user_disabled"
    assert run.inside("GET", "/runner/results.jsonl").code == "user_disabled"
    assert lab.root.get(f"/runs/{waiting}")["status"] == "stopped"
    assert lab.root.get(f"/runs/{run.id}")["status"] == "stopping"


# Keys to create once


def test_a_key_to_create_once_is_only_its_users_own(lab: Served) -> None:
    grace, heidi = lab.user("grace"), lab.user("heidi")
    key = {"Idempotency-Key": "the-same"}
    mine = grace.ok("POST", "/tokens", {"name": "t"}, key)
    theirs = heidi.ok("POST", "/tokens", {"name": "t"}, key)
    assert mine["secret"] != theirs["secret"]


@pytest.mark.usefixtures("sandboxes")
def test_a_key_of_one_run_gives_nothing_of_another_run_of_the_same_user(lab: Served) -> None:
    ways = [play(lab, permissions=Permissions(sandboxes=True)) for _ in range(2)]
    key = {"Idempotency-Key": "the-same"}
    first, second = (run.inside.ok("POST", "/sandboxes", {}, key) for run in ways)
    assert (first["run"], second["run"]) == (ways[0].id, ways[1].id)
    assert first["id"] != second["id"]


# What a run says


@pytest.mark.parametrize("way", ["ending", "loss", "report"])
def test_no_secret_is_in_why_a_run_failed(lab: Served, way: str) -> None:
    run = play(lab)
    why = {"code": "environment_error", "message": f"KeyError: {SECRET}", "next_step": f"use {SECRET}"}
    if way == "ending":
        run.inside.ok("POST", "/runner/end", {"status": "failed", "cause": why, "metadata": {"key": SECRET}})
    elif way == "loss":
        host = host_of(lab)
        held = update(runs).where(runs.c.id == run.id).values(host=f"host@{host.token.split('_')[1]}")
        lab.platform.database.write_now(lambda connection: connection.execute(held))
        path = f"/hosts/runs/{run.id}/lost?host=host&attempt=1"
        host.ok("POST", path, {"cause": why, "retry": False})
    else:
        log = {"level": "ERROR", "text": f"KeyError: {SECRET}", "at": 1.0}
        assert report(run, making.row(SECRET), logs=[log], metadata={"key": SECRET}).status == 200

    ada = of(lab, "ada")
    told = [ada("GET", f"/runs/{run.id}{path}").body for path in ("", "/events", "/rows", "/metadata.json")]
    assert SECRET not in json.dumps(told)
    assert "[secret API_KEY]" in json.dumps(told)


def test_a_row_that_spans_lines_is_one_line_of_the_results(lab: Served) -> None:
    run = play(lab)
    assert (
        report(run, b'{"example_id": 1,\n\r\n"rollout": 0, "outcome": "scored", "reward": 1.0}').status == 200
    )
    raw = urlopened(of(lab, "ada"), f"/runs/{run.id}/results.jsonl")
    (line,) = raw.splitlines()
    assert json.loads(line)["example_id"] == 1


@pytest.mark.parametrize(
    "row",
    [
        b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": 1.0, "note": "\xff\xfe"}',
        b'{"example_id": 1, "rollout": 0, "outcome": "won", "reward": 1.0}',
        b'{"example_id": 1, "rollout": 1%s, "outcome": "scored", "reward": 1.0}' % (b"0" * 30),
        b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": 1.0, "note": %s}' % (b"[" * 100_000),
        b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": 1e308}',
        b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": -1e308}',
        b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": 1, "metrics": {"a": 1e308}}',
        b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": NaN}',
        b'{"example_id": 1, "rollout": 0, "outcome": "scored", "reward": 1%s}' % (b"0" * 400),
        b"1",
    ],
    ids=[
        *("no text", "unknown outcome", "huge number", "deep"),
        *("huge reward", "huge below", "huge metric", "nan", "long integer", "no row"),
    ],
)
def test_what_is_no_row_is_refused_and_the_run_can_still_be_read(lab: Served, row: bytes) -> None:
    run = play(lab)
    assert report(run, row).status == 422
    assert of(lab, "ada").get(f"/runs/{run.id}/rows") == {"items": [], "next_cursor": None}


def test_a_run_with_the_largest_rewards_there_may_be_is_read_with_its_report(served_on_both: Served) -> None:
    database = served_on_both.platform.database
    database.write_now(making.user, "ada")
    database.write_now(making.environment, "ada", "sums")
    run = play(served_on_both)
    rows = [making.row(f"t{number}", 0, reward=1e100 * (-1) ** (number // 4)) for number in range(8)]
    assert report(run, *rows).status == 200
    run.inside.ok("POST", "/runner/end", {"status": "finished"})

    told = served_on_both.root.get(f"/runs/{run.id}")

    assert told["summary"]["scored"] == told["progress"]["scored"] == 8
    assert abs(told["progress"]["mean_reward"]) < 1e86
    assert told["summary"]["reward"]["interval"]["high"] > 0


def test_rows_that_are_small_when_packed_do_not_fill_the_memory_together(lab: Served) -> None:
    run, ada = play(lab), of(lab, "ada")
    for number in range(4):
        row = making.row("a", number, note="x" * (12 * 2**20))
        assert report(run, row, batch=number + 1).status == 200

    seen: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page = ada.get(f"/runs/{run.id}/rows?limit=1000&cursor={cursor}")
        assert len(page["items"]) == 1
        seen += [row["rollout"] for row in page["items"]]
        cursor = page["next_cursor"]
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "metadata",
    [
        {"rollouts_per_example": 10**18},
        {"rollouts_per_example": "many"},
        {"seed": []},
        {"pass_threshold": {}},
    ],
)
def test_a_report_is_made_whatever_a_run_says_of_itself(lab: Served, metadata: dict[str, Any]) -> None:
    run = play(lab)
    assert report(run, making.row("a"), metadata=metadata).status == 200
    run.inside.ok("POST", "/runner/end", {"status": "finished"})
    assert of(lab, "ada").get(f"/runs/{run.id}")["summary"]["scored"] == 1


def test_metadata_that_would_make_every_list_long_is_refused(lab: Served) -> None:
    run = play(lab)
    assert report(run, metadata={"x": "x" * (5 * 2**20)}).status == 413
    upload = {"client_run_id": "a", "environment": "x", "model": "m", "metadata": {"x": "x" * (5 * 2**20)}}
    assert of(lab, "ada")("POST", "/uploads", upload).status == 413
    assert of(lab, "ada")("POST", "/uploads", {**upload, "metadata": {"config": "x"}}).status == 422


def test_who_follows_from_the_future_hears_the_present_and_disturbs_nobody(lab: Served) -> None:
    run, ada = play(lab), of(lab, "ada")
    run.inside.ok("POST", "/runner/end", {"status": "failed"})
    for after in (10**9, 10**30):
        answer = ada("GET", f"/runs/{run.id}/events/stream?after={after}")
        assert answer.body == "event: end\ndata: {}\n\n"


# Bodies, numbers, headers


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"name":' * 200_000,
        b'{"name": "A", "value": "b", "description": ' + b"9" * 10_000 + b"}",
        b'{"name": "A\x00", "value": "b"}',
        b"\xff\xfe",
        gzip.compress(b'{"name": "A", "value": "' + b"b" * 10_000 + b'"}'),
        b"",
    ],
    ids=["deep lists", "deep objects", "long number", "nul", "no text", "packed", "nothing"],
)
def test_a_body_that_is_made_to_hurt_is_refused(lab: Served, body: bytes) -> None:
    headers = {"content-encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
    for path in ("/tokens", "/secrets", "/runs", "/uploads", "/v1/chat/completions"):
        answer = lab.root("POST", path, data=body, headers=headers)
        assert answer.status in {*range(400, 500), 503}, (path, answer)


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800"])
def test_characters_that_no_database_keeps_are_refused(served_on_both: Served, text: str) -> None:
    root = served_on_both.root
    for path, body in (
        ("/tokens", {"name": text}),
        ("/uploads", {"client_run_id": text, "environment": text, "model": text}),
        ("/grants", {"owner": "root", "amount_usd": 1, "note": text}),
        ("/grants", {"owner": text, "amount_usd": 1}),
        ("/runs", {"environment": f"a/{text}"}),
    ):
        answer = root("POST", path, body)
        assert answer.status != 500, (path, answer)
    for path in (
        "/runs?name=%00",
        "/environments?search=%00",
        "/runs/%00",
        "/environments/a/%00",
        "/simple/%00",
    ):
        answer = root("GET", path)
        assert answer.status < 500, (path, answer)


@pytest.mark.parametrize(
    "query",
    [
        "/runs?limit=1e9",
        "/runs?limit=-1",
        f"/runs?limit={10**40}",
        "/runs?cursor=W10",
        "/runs?cursor=%00%ff",
        "/environments?cursor=WyJhIiwgMV0",
        "/environments?sort=password",
        f"/usage?since={10**400}",
        "/environments/ada/sums/versions/1.0/files?max_bytes=-1",
        "/runs/run-0/events?after=999999999999999999999999",
    ],
)
def test_numbers_and_cursors_that_were_tampered_with_are_refused(lab: Served, query: str) -> None:
    assert lab.root("GET", query).status in (404, 422)


def test_no_cursor_leads_into_another_run(lab: Served) -> None:
    first, second = play(lab), play(lab)
    report(first, making.row("first", 0), making.row("first", 1))
    report(second, making.row("second", 0), making.row("second", 1))
    ada = of(lab, "ada")
    cursor = ada.get(f"/runs/{first.id}/rows?limit=1")["next_cursor"]
    rows = ada.get(f"/runs/{second.id}/rows?cursor={cursor}")["items"]
    assert [row["example_id"] for row in rows] == ["second"]


def test_no_other_page_may_read_the_api(lab: Served) -> None:
    for method in ("GET", "OPTIONS"):
        headers = {"origin": "https://evil.example", "access-control-request-method": "GET"}
        answer = lab.root(method, "/whoami", headers=headers)
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_what_proxies_say_of_a_request_is_not_believed(lab: Served) -> None:
    headers = {"host": "evil.example", "x-forwarded-host": "evil.example", "x-forwarded-proto": "https"}
    for path in ("/health", "/environments", "/simple/", "/schema/openapi.json"):
        assert "evil.example" not in json.dumps(lab.root("GET", path, headers=headers).body)


def test_every_answer_says_what_it_is_and_is_kept_by_nobody(lab: Served) -> None:
    for path in ("/whoami", "/runs/nothing", "/nowhere", "/v1/models", "/v1/nothing", "/schema/openapi.json"):
        headers = {name.lower(): value for name, value in lab.root("GET", path).headers.items()}
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["content-type"].split(";")[0].endswith("json"), path
        assert "server" not in headers, path
        if "schema" not in path:
            assert headers["cache-control"] == "no-store", path


def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing(lab: Served) -> None:
    answer = lab.nobody("GET", "/schema")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"<script|<img|<link|<iframe|src=|url\(|https?:|javascript:|\son\w+=", answer.body)


def test_a_models_name_without_end_is_refused(lab: Served) -> None:
    body = {"model": "gpt-" + "x" * 1000, "messages": []}
    assert lab.root("POST", "/v1/chat/completions", body).status == 422


def test_a_refusal_never_repeats_a_token(lab: Served) -> None:
    wrong = lab.root.token[:-1] + ("a" if lab.root.token[-1] != "a" else "b")
    for headers in (
        {"authorization": f"Bearer {wrong}"},
        {"x-api-key": wrong},
        {"authorization": f"Basic {wrong}"},
    ):
        answer = lab.nobody("GET", "/whoami", headers=headers)
        assert 400 <= answer.status < 500
        assert wrong not in json.dumps(answer.body)


def urlopened(api: Api, path: str) -> str:
    """The text of an answer of several JSON documents."""
    request = urllib.request.Request(api.address(path), headers={"authorization": f"Bearer {api.token}"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return str(response.read().decode())


def test_nobody_without_a_token_has_a_body_read(lab: Served) -> None:
    for path in (
        "/users",
        "/runs",
        "/secrets",
        "/tokens",
        "/hosts/claims",
        "/sandboxes/x/exec",
        "/environments",
    ):
        with socket.create_connection(("127.0.0.1", port_of(lab)), 10) as connection:
            head = f"POST /api/v1{path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: 60000000\r\n\r\n[".encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 401"), path


def port_of(served: Served) -> int:
    return int(served.url.rpartition(":")[2])


def test_who_loses_the_right_to_read_a_run_does_not_follow_it_to_its_end(lab: Served) -> None:
    run, ivan = play(lab), lab.user("ivan")
    given = update(runs).where(runs.c.id == run.id).values(owner="ivan")
    lab.platform.database.write_now(lambda connection: connection.execute(given))
    request = urllib.request.Request(ivan.address(f"/runs/{run.id}/events/stream"))
    request.add_header("authorization", f"Bearer {ivan.token}")
    with urllib.request.urlopen(request, timeout=20) as stream:
        assert b"id: 1" in stream.readline()
        me = ivan.get("/whoami")["token"]["id"]
        ivan.ok("DELETE", f"/tokens/{me}")
        report(run, logs=[{"level": "INFO", "text": "for members only", "at": 1.0}])
        assert b"for members only" not in stream.read()


# Names that are not what they look like


@pytest.mark.parametrize(
    "hidden",
    [
        "\u202e",
        "\u2066",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\x1b]0;x\x07",
        "\x9b2J",
        "\r",
        "\n",
        "\ue000",
        "e\u0301",
    ],
    ids=lambda text: "+".join(f"{ord(char):04x}" for char in text),
)
def test_a_name_shows_all_that_it_holds(lab: Served, hidden: str) -> None:
    name = f"gnp.{hidden}exe"
    upload = {"client_run_id": "a", "environment": "x", "model": "m"}
    for path, body in (
        ("/tokens", {"name": name}),
        ("/teams", {"name": name}),
        ("/users", {"name": name}),
        ("/hosts", {"name": name}),
        ("/secrets", {"name": name, "value": "v"}),
        ("/environments/ada/sums/variables", {"name": name, "value": "v"}),
        ("/runs", {"environment": "ada/sums", "name": name}),
        ("/runs/estimate", {"environment": "ada/sums", "name": name}),
        *(("/uploads", {**upload, field: name}) for field in (*upload, "name")),
    ):
        answer = lab.root("POST", path, body)
        assert (answer.status, answer.code) == (422, "invalid"), (path, answer)
    assert host_of(lab)("POST", "/hosts/claims", {"host": name}).status == 422


def test_a_name_in_any_script_is_a_name(lab: Served) -> None:
    for name in ("Grüße", "評価 3", "проверка", "🚀 nightly", "تقييم"):
        assert lab.root.post("/tokens", {"name": name})["token"]["name"] == name
