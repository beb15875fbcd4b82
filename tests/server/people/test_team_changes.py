"""Teams are renamed and deleted, and neither breaks what is found by their name."""

from __future__ import annotations

import time

from proctor.server.ledger.calls import LedgerCall, add_calls
from proctor.trace import Usage
from tests.server.runs import making
from tests.server.serving import Served


def test_everything_of_a_team_follows_its_new_name(served_on_both: Served) -> None:
    served = served_on_both
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})
    served.root.post("/grants", {"owner": "lab", "amount_usd": 3})
    ada.post("/secrets", {"name": "KEY", "value": "v", "team": "lab"})
    served.platform.database.write_now(making.environment)
    run_id = served.platform.database.write_now(making.run, team="lab")
    call = LedgerCall(
        id="c", at=time.time(), owner="lab", user="ada", run_id=None, model="m", provider="p",
        usage=Usage(1, 1), cost=500_000,
    )  # fmt: skip
    served.platform.database.write_now(add_calls, [call])
    assert ada("PATCH", "/teams/lab", {"name": "works"}).code == "in_use"
    ada.post(f"/runs/{run_id}/stop", {})

    assert ada.ok("PATCH", "/teams/lab", {"name": "works"})["name"] == "works"

    assert bob.get("/teams")["items"] == [{"team": "works", "role": "member"}]
    assert bob("GET", "/teams/lab/members").status == 404
    assert bob.get("/balance?owner=works")["balance_usd"] == 2.5
    assert [each["owner"] for each in ada.get("/secrets")["items"]] == ["works"]
    assert bob.get(f"/runs/{run_id}")["team"] == "works"
    assert bob.get("/usage?owner=works")["items"][0]["cost_usd"] == 0.5


def test_a_team_that_owns_environments_keeps_its_name_and_stays(served: Served) -> None:
    ada = served.user("ada")
    ada.post("/teams", {"name": "lab"})
    served.platform.database.write_now(making.environment, "lab", "sums")
    for refused in (ada("PATCH", "/teams/lab", {"name": "works"}), ada("DELETE", "/teams/lab")):
        assert (refused.status, refused.code) == (409, "not_empty")
        assert "owns 1 environments" in refused.body["message"]


def test_a_name_that_was_given_up_is_never_given_out_again(served: Served) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    ada.post("/teams", {"name": "lab"})
    ada.post("/teams", {"name": "old"})
    ada.ok("PATCH", "/teams/lab", {"name": "works"})
    ada.ok("DELETE", "/teams/old")
    for name in ("lab", "old"):
        assert eve("POST", "/teams", {"name": name}).code == "name_taken"
        assert served.root("POST", "/users", {"name": name}).code == "name_taken"


def test_the_runs_of_a_deleted_team_stay_with_their_owners(served_on_both: Served) -> None:
    served = served_on_both
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})
    ada.post("/secrets", {"name": "KEY", "value": "v", "team": "lab"})
    served.platform.database.write_now(making.environment)
    run_id = served.platform.database.write_now(making.run, team="lab")
    ada.post(f"/runs/{run_id}/stop", {})

    ada.ok("DELETE", "/teams/lab")

    assert ada.get(f"/runs/{run_id}")["team"] is None
    assert bob("GET", f"/runs/{run_id}").status == 404
    assert ada.get("/teams")["items"] == bob.get("/teams")["items"] == []
    assert ada.get("/secrets")["items"] == []


def test_only_admins_of_a_team_rename_or_delete_it(served: Served) -> None:
    ada, bob, eve = served.user("ada"), served.user("bob"), served.user("eve")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})
    for api, status in ((bob, 403), (eve, 404)):
        assert api("PATCH", "/teams/lab", {"name": "works"}).status == status
        assert api("DELETE", "/teams/lab").status == status
    assert ada("PATCH", "/teams/lab", {"name": "Not A Name"}).status == 422
    assert ada("PATCH", "/teams/lab", {"name": "eve"}).code == "name_taken"
