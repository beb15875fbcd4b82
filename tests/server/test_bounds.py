"""Requests that are too large, too many or too long: each is refused by name, and nobody waits for it."""

from __future__ import annotations

import base64
import http.client
import json
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from litestar.handlers import HTTPRouteHandler
from msgspec import inspect
from sqlalchemy import Connection, update

from proctor.api import bounds
from proctor.api.hub import EnvironmentChange, PushForm
from proctor.api.runner import Report
from proctor.api.runs import NewRun
from proctor.server.app import create_app
from proctor.server.db.tables import environments, runs
from proctor.server.requests import LONGEST_PARAMETER, METHODS_WITH_BODY, check_tables, most_bytes_of
from proctor.server.runs import incoming
from proctor.server.secrets.redaction import Redactor
from proctor.server.settings import Quotas
from tests.server.runs import making
from tests.server.serving import Api, Served, holding_up_nobody, serving, settings_in
from tests.server.test_hostile_requests import SECRET, Played, of, play, report

pytestmark = pytest.mark.xdist_group("bounds")

QUOTAS = Quotas(pending_runs_per_user=3, streams_per_user=2, run_storage_mb=1, user_storage_mb=2)
SCRIPTED = """
[[endpoint]]
endpoint_id = "parrot"
model = "parrot"
type = "scripted"
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "endpoints.toml").write_text(SCRIPTED)
    with serving(settings_in(folder, quotas=QUOTAS, endpoints=folder / "endpoints.toml")) as server:
        server.platform.database.write_now(making.user, "ada")
        server.platform.database.write_now(making.environment, "ada", "sums")
        yield server


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With the quotas that a server has by itself."""
    with serving(settings_in(tmp_path_factory.mktemp("roomy"))) as server:
        server.platform.database.write_now(making.user, "ada")
        server.platform.database.write_now(making.environment, "ada", "sums")
        yield server


# Every field of every request

WITHOUT_A_SHAPE = {
    "push": PushForm,
    "check_run": NewRun,
    "take_report": Report,
    "upload_report": Report,
    "write_file": None,
    "push_dataset": None,
    "carry_request": None,
    "heartbeat": None,
    "check_again": None,
    "claim_check": None,
    "take_webhook": None,
    "invite_user": None,
    "send_dataset_part": None,
    "finish_dataset_upload": None,
    "start_example": None,
    "delete_run_comment": None,
    "cancel_dataset_upload": None,
}
"""Handlers that read their body by themselves, as what; None: as bytes, or not at all."""


def sending_handlers(folder: Path) -> list[HTTPRouteHandler]:
    with serving(settings_in(folder)) as server:
        app = create_app(server.platform)
    found: dict[str, HTTPRouteHandler] = {}
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            if handler.http_methods & set(METHODS_WITH_BODY) and str(route.path).startswith("/api/"):
                found[handler.handler_name] = handler
    return list(found.values())


def shapes_in(folder: Path) -> set[Any]:
    """What the API takes as the body of a request."""
    shapes = set()
    for handler in sending_handlers(folder):
        data = handler.parsed_fn_signature.parameters.get("data")
        name = handler.handler_name
        assert data is not None or name in WITHOUT_A_SHAPE or not reads_body(handler), (
            f"{name} reads a body of a shape that this test does not know"
        )
        shapes.add(data.annotation if data is not None else WITHOUT_A_SHAPE.get(name))
    return {bare(shape) for shape in shapes - {None}}


def reads_body(handler: HTTPRouteHandler) -> bool:
    return "request" in handler.parsed_fn_signature.parameters


def bare(shape: Any) -> Any:
    return shape if isinstance(shape, type) else shape.__origin__


def unbounded(kind: inspect.Type, path: str, declared: Any = None) -> Iterator[str]:
    """Paths of texts, lists and tables within a type that have no bound."""
    if isinstance(kind, inspect.Metadata):
        yield from unbounded(kind.type, path, kind)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            yield from unbounded(field.type, f"{path}.{field.name}")
    elif isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from unbounded(each, path)
    elif isinstance(kind, (inspect.StrType, inspect.BytesType)):
        if kind.max_length is None:
            yield path
    elif isinstance(kind, (inspect.ListType, inspect.SetType, inspect.VarTupleType)):
        if kind.max_length is None:
            yield path
        if not is_measured(declared):
            yield from unbounded(kind.item_type, f"{path}[]")
    elif isinstance(kind, inspect.DictType):
        if kind.max_length is None:
            yield path
        if not is_measured(declared):
            yield from unbounded(kind.key_type, f"{path}[key]")
            yield from unbounded(kind.value_type, f"{path}[value]")
    elif isinstance(kind, inspect.AnyType):
        yield path


def is_measured(declared: Any) -> bool:
    """Whether its size as JSON is bounded, whatever it holds."""
    return declared is not None and bool((declared.extra or {}).get(bounds.MOST_BYTES))


def test_every_text_list_and_table_of_every_request_has_a_bound(tmp_path: Path) -> None:
    shapes = shapes_in(tmp_path)
    assert len(shapes) > 20
    assert {NewRun, EnvironmentChange, Report, PushForm} <= shapes
    found = [path for shape in shapes for path in unbounded(inspect.type_info(shape), shape.__name__)]
    assert found == []


def test_the_test_of_bounds_finds_a_field_without_one() -> None:
    class Forgetful(msgspec.Struct):
        name: str
        anything: dict[str, Any]
        names: list[bounds.Name]

    found = set(unbounded(inspect.type_info(Forgetful), "Forgetful"))
    assert {path.partition("[")[0] for path in found} == {
        "Forgetful.name",
        "Forgetful.anything",
        "Forgetful.names",
    }


def test_tables_of_anything_are_measured_wherever_they_are_taken(tmp_path: Path, lab: Served) -> None:
    """Each such field of the API, by reflection, and a request that breaks its bound."""
    fields = {
        (shape.__name__, field.name)
        for shape in shapes_in(tmp_path)
        for field in msgspec.structs.fields(shape)
        if most_bytes_of(field.type)
    }
    large, larger = {"x": "x" * 70_000}, {"x": "x" * (bounds.LARGEST_METADATA + 1)}
    many = [{"slug": "x", "prompt": "x" * 4_000} for _ in range(600)]
    run, ada = play(lab), of(lab, "ada")
    upload = ada.post("/uploads", {"client_run_id": "t", "environment": "x", "model": "m"})["id"]
    host = Api(lab.url, lab.root.post("/hosts", {"name": "far-away"})["token"], "k" * 64)
    attacks: dict[tuple[str, str], tuple[Api, str, dict[str, Any]]] = {
        ("NewRun", "settings"): (ada, "/runs", {"environment": "ada/sums", "settings": large}),
        ("NewUpload", "metadata"): (
            ada,
            "/uploads",
            {"client_run_id": "a", "environment": "x", "model": "m", "metadata": larger},
        ),
        ("UploadEnd", "metadata"): (
            ada,
            f"/uploads/{upload}/end",
            {"status": "finished", "metadata": larger},
        ),
        ("Report", "metadata"): (run.inside, "/runner/reports", {"batch": 1, "metadata": larger}),
        ("Ending", "metadata"): (run.inside, "/runner/end", {"status": "finished", "metadata": larger}),
        ("CheckResult", "facts"): (
            host,
            "/hosts/checks/x",
            {"passed": True, "message": "", "seconds": 1.0, "facts": large},
        ),
        ("CheckResult", "task_list"): (
            host,
            "/hosts/checks/x",
            {"passed": True, "message": "", "seconds": 1.0, "task_list": many},
        ),
        ("CheckResult", "details"): (
            host,
            "/hosts/checks/x",
            {"passed": True, "message": "", "seconds": 1.0, "details": {"defaults": {"x": "x" * 300_000}}},
        ),
    }
    dataset = {"owner": "ada", "name": "sums", "format": "jsonl", "sha256": "0" * 64, "selected_rows": 1}
    submitted = {"source": "ada/agents", "recipe": large, "dataset": dataset}
    attacks["NewSubmission", "recipe"] = (ada, "/submissions", submitted)
    attacks["RowsRequest", "recipe"] = (ada, "/submissions/rows", {"recipe": large})
    assert set(attacks) == fields
    for who, path, body in attacks.values():
        answer = who("POST", path, body)
        assert answer.status == 413, (path, answer)
        assert "at most" in answer.body["message"]
    assert ada("POST", "/runs/estimate", {"environment": "ada/sums", "settings": large}).status == 413


def test_tables_within_their_bound_pass() -> None:
    check_tables(NewRun(environment="a/b", settings={"x": "x" * 60_000}))


def test_no_description_fills_the_lists(roomy: Served) -> None:
    ada = of(roomy, "ada")
    answer = ada("PATCH", "/environments/ada/sums", {"description": "x" * 900_000})
    assert (answer.status, "description" in answer.body["message"]) == (422, True)
    assert ada("PATCH", "/environments/ada/sums", {"description": "x" * 50_000_000}).status == 413
    assert len(json.dumps(ada.get("/environments"))) < 10_000


def test_a_list_of_long_items_ends_early_and_can_be_read_to_its_end(roomy: Served) -> None:
    """Such as were kept before there was a bound."""

    def work(connection: Connection) -> None:
        making.user(connection, "eve")
        for number in range(6):
            making.environment(connection, "eve", f"long-{number}")
        long = update(environments).where(environments.c.owner == "eve").values(description="x" * 1_500_000)
        connection.execute(long)

    roomy.platform.database.write_now(work)
    eve = of(roomy, "eve")
    names: list[str] = []
    cursor: str | None = ""
    pages = 0
    while cursor is not None:
        page = eve.get(f"/environments?owner=eve&limit=1000&cursor={cursor}")
        assert len(page["items"]) <= 3
        names += [item["name"] for item in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert sorted(names) == [f"long-{number}" for number in range(6)]
    assert pages == 3


def test_the_list_of_runs_leaves_out_what_may_be_long(roomy: Served) -> None:
    def work(connection: Connection) -> str:
        run_id = making.run(connection)
        long = update(runs).where(runs.c.id == run_id).values(settings={"x": "x" * 5_000_000})
        connection.execute(long)
        return run_id

    run_id = roomy.platform.database.write_now(work)
    ada = of(roomy, "ada")
    assert len(json.dumps(ada.get("/runs"))) < 100_000
    assert len(ada.get(f"/runs/{run_id}")["settings"]["x"]) == 5_000_000


@pytest.mark.parametrize(
    "path",
    [
        "/environments?search={}",
        "/environments?cursor={}",
        "/runs?name={}",
        "/runs?cursor={}",
        "/runs/{}",
        "/environments/a/{}",
        "/environments/ada/sums/versions/1.0/files?path={}",
    ],
)
def test_no_word_of_an_address_is_without_end(roomy: Served, path: str) -> None:
    answer = of(roomy, "ada")("GET", path.format("x" * (LONGEST_PARAMETER + 1)))
    assert answer.status == 422
    assert "4,096" in answer.body["message"]


def test_no_key_to_create_once_is_without_end(roomy: Served) -> None:
    for path in ("/tokens", "/sandboxes/x/exec", "/runs"):
        answer = roomy.root("POST", path, {}, headers={"Idempotency-Key": "x" * 1000})
        assert answer.status == 422
        assert "Idempotency-Key" in answer.body["message"]


def test_a_request_that_is_no_upload_has_at_most_a_megabyte(roomy: Served) -> None:
    for path in ("/tokens", "/secrets", "/runs", "/teams"):
        assert roomy.root("POST", path, {"name": "x" * 2_000_000}).status == 413


# Reports


def lines(count: int, text: str = "") -> list[dict[str, Any]]:
    return [{"level": "INFO", "text": text, "at": 1.0}] * count


def test_a_report_of_two_million_lines_is_refused_while_others_are_served(roomy: Served) -> None:
    run = play(roomy)
    with holding_up_nobody(roomy, 5.0):
        body = b'{"batch": 1, "logs": [' + b",".join([b'{"level":"","text":"","at":0}'] * 1_900_000) + b"]}"
        assert run.inside("POST", "/runner/reports", data=body).status == 413
        most = bounds.MOST_LOG_BYTES // 30 + 100_000
        fitting = b'{"batch": 1, "logs": [' + b",".join([b'{"level":"","text":"","at":0}'] * most) + b"]}"
        began = time.monotonic()
        answer = run.inside("POST", "/runner/reports", data=fitting)
        assert (answer.status, answer.code) == (413, "too_large")
        assert time.monotonic() - began < 30.0
    assert of(roomy, "ada").get(f"/runs/{run.id}")["last_seq"] == 2


@pytest.mark.parametrize(
    ("rows", "more", "named"),
    [
        (0, {"logs": lines(bounds.MOST_LOG_LINES + 1)}, "log lines"),
        (bounds.MOST_ROWS + 1, {}, "rows"),
        (0, {"logs": lines(100, "x" * 60_000)}, "log lines"),
    ],
    ids=["many lines", "many rows", "long lines"],
)
def test_a_report_that_is_too_large_is_told_what_is(
    roomy: Served, rows: int, more: dict[str, Any], named: str
) -> None:
    run = play(roomy)
    answer = report(run, *[making.row("a", number) for number in range(rows)], **more)
    assert answer.status == 413
    assert named in answer.body["message"]
    assert "send" in answer.body["message"]


def test_rows_that_are_none_are_refused_before_they_are_counted(roomy: Served) -> None:
    run = play(roomy)
    answer = run.inside("POST", "/runner/reports", data=b'{"batch":1,"rows":[' + b"{}," * 4_000_000 + b"{}]}")
    assert (answer.status, answer.code) == (422, "bad_row")


def test_the_largest_report_that_is_taken_is_kept_well_within_a_lease(roomy: Served) -> None:
    run = play(roomy)
    rows = [making.row("a", number, note="x" * 10_000) for number in range(bounds.MOST_ROWS)]
    began = time.monotonic()
    assert report(run, *rows, logs=lines(bounds.MOST_LOG_LINES, "x" * 500)).status == 200
    assert time.monotonic() - began < roomy.platform.settings.lease_seconds / 3


def test_a_line_that_is_too_long_is_cut_and_says_so(roomy: Served) -> None:
    run = play(roomy)
    assert report(run, logs=lines(1, "x" * 50_000)).status == 200
    text = of(roomy, "ada").get(f"/runs/{run.id}/events?after=2")["items"][0]["text"]
    assert text.endswith("characters more)")
    assert len(text) < 17_000


def test_events_of_long_lines_come_in_several_answers(roomy: Served) -> None:
    run, ada = play(roomy), of(roomy, "ada")
    for batch in range(1, 5):
        assert report(run, logs=lines(60, "x" * 16_000), batch=batch).status == 200
    after, seen = 0, 0
    while page := ada.get(f"/runs/{run.id}/events?after={after}&limit=1000")["items"]:
        assert len(json.dumps(page)) < 2_000_000
        after, seen = page[-1]["seq"], seen + len(page)
    assert seen == after == 242


def test_reading_a_report_gives_what_was_sent() -> None:
    sent = Report(batch=3, rows=[msgspec.Raw(making.row("a"))], planned=4, metadata={"key": SECRET})
    news = incoming.prepare(incoming.read_report(msgspec.json.encode(sent)), Redactor({"K": SECRET}))
    assert (news.batch, news.planned, news.metadata) == (3, 4, {"key": "[secret K]"})
    assert [(row.task, row.line.rollout) for row in news.rows] == [('"a"', 0)]


# What a run, and a user, may store


def noise(size: int) -> str:
    """Text that gets little shorter when packed."""
    return base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()


def test_a_run_that_logs_without_end_is_told_once_that_the_rest_is_left_out(lab: Served) -> None:
    run, ada = play(lab), of(lab, "ada")
    for batch in range(1, 4):
        assert report(run, logs=lines(200, "x" * 1000), batch=batch).status == 200
    events = [event for page in pages(ada, run.id) for event in page]
    told = [event["text"] for event in events if event["kind"] == "log"]
    assert "--run-storage-mb" in told[-1]
    assert sum("--run-storage-mb" in text for text in told) == 1
    assert len(told) < 300
    assert report(run, making.row("a"), batch=9).status == 200, "rows are still kept"


def pages(api: Api, run_id: str) -> Iterator[list[dict[str, Any]]]:
    after = 0
    while page := api.get(f"/runs/{run_id}/events?after={after}&limit=1000")["items"]:
        yield page
        after = page[-1]["seq"]


def test_a_run_whose_rows_take_too_much_is_stopped_and_says_why(lab: Served) -> None:
    run, ada = play(lab), of(lab, "ada")
    text = noise(400_000)
    answers = [report(run, making.row("a", number, note=text), batch=number + 1) for number in range(4)]
    assert [answer.body["stop"] for answer in answers] == [False, False, True, True]
    run.inside.ok("POST", "/runner/end", {"status": "stopped"})
    told = ada.get(f"/runs/{run.id}")
    assert (told["status"], told["cause"]["code"]) == ("stopped", "limit_exceeded")
    assert "--run-storage-mb" in told["cause"]["message"]
    assert told["progress"]["scored"] == 2


def test_an_upload_that_takes_too_much_is_refused(lab: Served) -> None:
    bob = lab.user("bob")
    upload = bob.post("/uploads", {"client_run_id": "u", "environment": "x", "model": "m"})["id"]
    path, text = f"/uploads/{upload}/reports", noise(400_000)

    def send(number: int) -> Any:
        row = making.row("a", number, note=text).decode()
        return bob("POST", path, data=f'{{"batch": {number + 1}, "rows": [{row}]}}'.encode())

    answers = [send(number) for number in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 409, 409]
    assert answers[-1].code == "quota_exceeded"


def test_a_user_who_stores_too_much_is_refused_until_something_is_deleted(lab: Served) -> None:
    carol = lab.user("carol")

    def begin(name: str) -> Any:
        body = {"client_run_id": name, "environment": "x", "model": "m", "metadata": {"x": "x" * 900_000}}
        return carol("POST", "/uploads", body)

    made = [begin(name) for name in ("a", "b", "c")]
    assert [answer.status for answer in made] == [201] * 3
    refused = begin("d")
    assert (refused.status, refused.code) == (409, "quota_exceeded")
    assert "--user-storage-mb" in refused.body["message"]
    lab.platform.database.write_now(making.environment, "carol", "mine")
    assert carol("POST", "/runs", {"environment": "carol/mine", "model": "parrot"}).code == "quota_exceeded"
    carol.ok("DELETE", f"/runs/{made[0].body['id']}")
    carol.ok("DELETE", f"/runs/{made[1].body['id']}")
    assert begin("d").status == 201


def test_nobody_fills_the_queue(lab: Served) -> None:
    dora = lab.user("dora")
    lab.platform.database.write_now(making.environment, "dora", "sums")
    asked = {"environment": "dora/sums", "model": "parrot"}
    answers = [dora("POST", "/runs", asked) for _ in range(4)]
    assert [answer.status for answer in answers] == [201, 201, 201, 409]
    assert "--pending-runs-per-user" in answers[-1].body["message"]
    dora.post(f"/runs/{answers[0].body['id']}/stop")
    assert dora("POST", "/runs", asked).status == 201
    assert dora("POST", f"/runs/{answers[0].body['id']}/resume", {}).code == "quota_exceeded"


# Streams


def test_a_user_has_so_many_streams_open_and_no_more(lab: Served) -> None:
    run, ada = play(lab), of(lab, "ada")
    with ExitStack() as stack:
        for _ in range(QUOTAS.streams_per_user):
            stack.callback(follow(ada, run).close)
        refused = ada("GET", f"/runs/{run.id}/events/stream")
        assert (refused.status, refused.code) == (429, "too_many_requests")
        assert "--streams-per-user" in refused.body["message"]
        assert ada("GET", f"/runs/{run.id}/results.jsonl").status == 429
        assert run.inside("GET", "/runner/results.jsonl").status == 200, "a run has a share of its own"
    for _ in range(400):  # until the server has noticed that they are gone
        report(run, batch=1)
        if ada("GET", f"/runs/{run.id}/results.jsonl").status == 200:
            break
        time.sleep(0.05)
    follow(ada, run).close()


def follow(api: Api, run: Played) -> http.client.HTTPConnection:
    """A stream that has begun."""
    connection = http.client.HTTPConnection(api.url.rpartition("/")[2], timeout=60)
    path = f"/api/v1/runs/{run.id}/events/stream"
    connection.request("GET", path, headers={"authorization": f"Bearer {api.token}"})
    response = connection.getresponse()
    assert response.status == 200
    assert response.readline().startswith(b"id: 1")
    return connection


def test_a_push_beyond_the_storage_of_its_user_is_refused(tmp_path: Path) -> None:
    quotas = Quotas(user_storage_mb=1)
    with serving(settings_in(tmp_path, quotas=quotas)) as server:
        server.platform.database.write_now(making.user, "ada")
        server.platform.database.write_now(making.environment, "ada", "sums")
        grown = "UPDATE versions SET wheel_size = 2000000"
        server.platform.database.write_now(lambda connection: connection.exec_driver_sql(grown) and None)
        answer = of(server, "ada")("POST", "/environments/ada/sums/fork", {})
        assert (answer.status, answer.code) == (409, "quota_exceeded")
