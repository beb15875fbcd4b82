"""The audit log: every change that matters is in it, in the transaction of the change, without any secret."""

from __future__ import annotations

import ast
import inspect
import json
import time
from pathlib import Path

import pytest

from proctor.api.audit import AUDIT_ACTIONS
from proctor.server.app import build_app
from proctor.server.audit import records
from proctor.server.audit.records import KEPT_DAYS, AuditFilter, add_entry, list_audit
from proctor.server.db.database import Database
from proctor.server.housekeeping import DAY, delete_expired
from proctor.server.openapi.document import list_operations
from proctor.server.people.tokens import Caller
from proctor.server.settings import Settings
from tests.server.datasets.pushing import ROWS, push_rows
from tests.server.db.filling import REGISTRY
from tests.server.hub.packages import made, push
from tests.server.runs import making
from tests.server.serving import Api, Served, serving, settings_in

CHANGING = ("POST", "PUT", "PATCH", "DELETE")
PLAYING = "A host or the process of a run works on what somebody started; the start is in the log."
ASKING = "It changes nothing that lasts: it only asks."
OWN_LOG = "It shows in the run itself, with its author."
UNFINISHED = "An upload that is under way, of nobody's concern; its end is in the log."
SHORT_LIVED = "A sandbox of a run, which ends with it; the grant of the permission is the run's start."
EXEMPT = {
    "add_instance": SHORT_LIVED,
    "add_run_comment": OWN_LOG,
    "add_run_labels": OWN_LOG,
    "add_sandbox": SHORT_LIVED,
    "add_session": SHORT_LIVED,
    "begin_dataset_upload": UNFINISHED,
    "cancel_dataset_upload": UNFINISHED,
    "check_again": "It repeats a check; the push is in the log.",
    "check_run": ASKING,
    "list_attempts_over": ASKING,
    "claim_check": PLAYING,
    "claim_run": PLAYING,
    "edit_run_comment": OWN_LOG,
    "end_instance": SHORT_LIVED,
    "end_sandbox": SHORT_LIVED,
    "end_session": SHORT_LIVED,
    "end_upload": PLAYING,
    "estimate_run": ASKING,
    "heartbeat": PLAYING,
    "list_leftovers": ASKING,
    "preview_submission": ASKING,
    "report_check": PLAYING,
    "report_lost": PLAYING,
    "run_command": SHORT_LIVED,
    "select_submitted_rows": ASKING,
    "send_dataset_part": UNFINISHED,
    "sync_source": "It fetches what the repository has; the source keeps when and what.",
    "take_ending": PLAYING,
    "take_report": PLAYING,
    "take_webhook": "A push to the repository, by nobody whom the server knows.",
    "upload_report": PLAYING,
    "write_file": SHORT_LIVED,
}
"""Routes that change something and are not in the log, and why."""
AUDITS = {"audit", "secret_writer"}
"""The dependencies through which a route writes to the log."""


def test_every_changing_route_is_audited_or_exempt_for_a_reason(tmp_path: Path) -> None:
    operations = list(list_operations(build_app(Settings(data=tmp_path))))
    changing = [each.handler for each in operations if each.method in CHANGING]

    audited = {each.handler_name for each in changing if AUDITS & each.parsed_fn_signature.parameters.keys()}
    others = {each.handler_name for each in changing} - audited

    assert others - EXEMPT.keys() == set(), "give the route an `audit: AuditDependency`, or a reason here"
    assert EXEMPT.keys() - others == set(), "these are audited, or gone"


def test_every_action_is_written_by_some_route(tmp_path: Path) -> None:
    operations = list_operations(build_app(Settings(data=tmp_path)))
    modules = {inspect.getmodule(each.handler.fn) for each in operations}
    written = {
        node.value
        for module in modules
        if module is not None
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and node.value in AUDIT_ACTIONS
    }
    assert set(AUDIT_ACTIONS) - written == set()


def read_log(served: Served, query: str = "") -> list[tuple[str, str, str]]:
    """Who did what to what, the oldest first."""
    found = served.root.get(f"/audit?limit=1000{query}")["items"]
    return [(each["user"], each["action"], each["target"]) for each in reversed(found)]


def test_a_day_of_changes_is_in_the_log_with_who_made_them(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    served.user("bob")
    served.root.ok("PATCH", "/users/bob?is_admin=true")
    served.root.ok("PATCH", "/users/bob?disabled=true&is_admin=false")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob", "role": "member"})
    ada.ok("DELETE", "/teams/lab/members/bob")
    ada.ok("PATCH", "/teams/lab", {"name": "laboratory"})
    token = ada.post("/tokens", {"name": "ci"})["token"]["id"]
    ada.ok("DELETE", f"/tokens/{token}")
    push(ada, made(tmp_path / "greet"))
    ada.ok("PATCH", "/environments/ada/greet", {"visibility": "public", "description": "hello"})
    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "bob", "role": "read"})
    ada.ok("DELETE", "/environments/ada/greet/collaborators/bob")
    secret = ada.post("/secrets", {"name": "API_KEY", "value": "hush-hush"})["id"]
    ada.ok("PUT", f"/environments/ada/greet/secrets/links/{secret}")
    ada.ok("DELETE", f"/environments/ada/greet/secrets/links/{secret}")
    ada.ok("DELETE", f"/secrets/{secret}")
    served.root.post("/grants", {"owner": "ada", "amount_usd": 5})
    served.root.ok("PUT", "/prices/m", {"input_usd_per_million": 1, "output_usd_per_million": 2})
    served.root.ok("DELETE", "/prices/m")
    served.root.post("/hosts", {"name": "gpu-1"})
    ada.ok("DELETE", "/environments/ada/greet")
    ada.ok("DELETE", "/teams/laboratory")

    log = read_log(served)
    assert log[log.index(("root", "user.add", "ada")) :] == [
        ("root", "user.add", "ada"),
        ("root", "user.add", "bob"),
        ("root", "user.admin", "bob"),
        ("root", "user.admin", "bob"),
        ("root", "user.suspend", "bob"),
        ("ada", "team.add", "lab"),
        ("ada", "member.set", "lab"),
        ("ada", "member.remove", "lab"),
        ("ada", "team.rename", "lab"),
        ("ada", "token.add", "ada"),
        ("ada", "token.revoke", "ada"),
        ("ada", "environment.push", "ada/greet@0.1.0"),
        ("ada", "environment.change", "ada/greet"),
        ("ada", "role.set", "ada/greet"),
        ("ada", "role.remove", "ada/greet"),
        ("ada", "secret.add", "ada API_KEY"),
        ("ada", "secret.link", "ada/greet API_KEY"),
        ("ada", "secret.unlink", "ada/greet"),
        ("ada", "secret.delete", "ada API_KEY"),
        ("root", "balance.grant", "ada"),
        ("root", "price.set", "m"),
        ("root", "price.remove", "m"),
        ("root", "host.add", "gpu-1"),
        ("ada", "environment.delete", "ada/greet"),
        ("ada", "team.delete", "laboratory"),
    ]


def test_runs_and_datasets_are_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "endpoints.toml").write_text(REGISTRY)
    with serving(settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml")) as served:
        ada = served.user("ada")
        served.platform.database.write_now(making.environment)
        run_id = ada.post("/runs", {"environment": "ada/sums", "model": "parrot"})["id"]
        ada.post(f"/runs/{run_id}/stop", {"reason": "enough"})
        ada.post(f"/runs/{run_id}/resume", {})
        ada.post(f"/runs/{run_id}/stop", {})
        ada.ok("PUT", f"/runs/{run_id}/visibility", {"visibility": "link"})
        ada.ok("DELETE", f"/runs/{run_id}")
        for _ in range(2):  # the second time changes nothing
            assert push_rows(ada, "ada", "sums", ROWS).status == 201
        ada.ok("DELETE", "/datasets/ada/sums")

        log = read_log(served, "&user=ada")

    assert log == [
        ("ada", "run.start", run_id),
        ("ada", "run.stop", run_id),
        ("ada", "run.resume", run_id),
        ("ada", "run.stop", run_id),
        ("ada", "run.share", run_id),
        ("ada", "run.delete", run_id),
        ("ada", "dataset.push", "ada/sums"),
        ("ada", "dataset.delete", "ada/sums"),
    ]


def test_no_secret_and_no_token_is_ever_in_the_log(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    made_token = ada.post("/tokens", {"name": "ci"})["secret"]
    handed = served.root.post("/users/ada/tokens", {"name": "handed"})["secret"]
    link = served.root.post("/users/ada/login-links")
    push(ada, made(tmp_path / "greet"))
    path = "/environments/ada/greet"
    secret = ada.post("/secrets", {"name": "API_KEY", "value": "hush-hush", "description": "d"})["id"]
    ada.ok("PATCH", f"/secrets/{secret}", {"value": "hush-again"})
    own = ada.post(f"{path}/secrets", {"name": "OWN", "value": "hush-own"})["id"]
    ada.ok("PATCH", f"{path}/secrets/{own}", {"value": "hush-changed"})
    variable = ada.post(f"{path}/variables", {"name": "PLAIN", "value": "seen-by-readers"})["id"]
    ada.ok("PATCH", f"{path}/variables/{variable}", {"value": "seen-again"})

    text = json.dumps(served.root.get("/audit?limit=1000"))

    assert "API_KEY" in text
    assert "handed" in text
    for hidden in (made_token, handed, link["code"], "hush", "seen-", ada.token):
        assert hidden not in text


def test_what_is_refused_or_undone_leaves_no_entry(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = served.user("ada")
    before = read_log(served)

    assert ada("POST", "/users", {"name": "eve"}).status == 403
    assert ada("POST", "/teams", {"name": "ada"}).code == "name_taken"
    assert ada("DELETE", "/tokens/nothing").status == 404
    monkeypatch.setattr(records, "new_id", lambda _: "aud-same")  # the entry itself cannot be written
    ada.post("/teams", {"name": "first"})
    assert ada("POST", "/teams", {"name": "second"}).status == 500

    assert read_log(served) == [*before, ("ada", "team.add", "first")]
    assert [each["team"] for each in ada.get("/teams")["items"]] == ["first"]


def test_a_create_that_is_sent_again_is_in_the_log_once(served: Served) -> None:
    ada = served.user("ada")
    for _ in range(3):
        ada.ok("POST", "/teams", {"name": "lab"}, {"Idempotency-Key": "k"})
    assert read_log(served, "&action=team.") == [("ada", "team.add", "lab")]


def test_only_admins_read_the_log(served: Served) -> None:
    assert served.user("ada")("GET", "/audit").status == 403
    assert served.nobody("GET", "/audit").status == 401


def test_the_log_is_narrowed_and_read_page_by_page(served_on_both: Served) -> None:
    served = served_on_both
    ada = served.user("ada")
    for name in ("one", "two", "three"):
        ada.post("/teams", {"name": name})
    ada.post("/tokens", {"name": "100%"})

    assert read_log(served, "&user=ada&action=team.&target=w") == [("ada", "team.add", "two")]
    assert read_log(served, "&action=team.add&target=%25") == []  # a per cent sign is only that
    assert read_log(served, f"&since={time.time() + 60}") == []
    seen, cursor = [], ""
    for _ in range(10):
        page = served.root.get(f"/audit?user=ada&limit=2{cursor}")
        seen += [each["target"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == ["ada", "three", "two", "one"]


def test_old_entries_are_deleted_by_the_housekeeping(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    for target, days in (("old", KEPT_DAYS + 1), ("new", KEPT_DAYS - 1)):
        monkeypatch.setattr(time, "time", lambda days=days: now - days * DAY)
        database.write_now(add_entry, Caller(user="ada"), "team.add", target)

    database.write_now(delete_expired, now)

    assert [each.target for each in database.read_now(list_audit, AuditFilter(), None, 10)] == ["new"]


def test_logins_are_in_the_log_with_where_they_came_from(served: Served) -> None:
    ada = served.user("ada")
    code = ada.post("/session/codes")["code"]
    Api(served.url).post("/session", {"code": code})
    Api(served.url).post("/session", {"token": ada.token})
    assert Api(served.url)("POST", "/session", {"code": code}).code == "code_used"

    found = served.root.get("/audit?action=login.&user=ada")["items"]
    assert [(each["action"], each["details"], each["address"]) for each in found] == [
        ("login.open", {"with": "token"}, "127.0.0.1"),
        ("login.open", {"with": "link"}, "127.0.0.1"),
        ("login.link", {}, "127.0.0.1"),
    ]
