"""Admins change users: suspend, promote, and hand over logins that work once."""

from __future__ import annotations

import threading

from tests.server.serving import Api, Served


def open_link(served: Served, link: dict[str, str]) -> str:
    """Log in as a browser does; the cookie's session."""
    answer = served.nobody("POST", "/session", {"code": link["code"]})
    assert answer.status == 200, answer
    return str(answer.body["user"]["name"])


def test_an_invited_user_logs_in_by_the_link_once(served: Served) -> None:
    served.user("ada")
    link = served.root.post("/users/ada/login-links")

    assert link["url"].startswith(f"{served.url}/login#code=")
    assert open_link(served, link) == "ada"
    stolen = served.nobody("POST", "/session", {"code": link["code"]})
    assert (stolen.status, stolen.code) == (401, "code_used")
    assert "ask the admin who sent it" in stolen.body["message"]


def test_a_new_link_replaces_one_that_was_not_used(served: Served) -> None:
    served.user("ada")
    first = served.root.post("/users/ada/login-links")
    second = served.root.post("/users/ada/login-links")

    assert served.nobody("POST", "/session", {"code": first["code"]}).status == 401
    assert open_link(served, second) == "ada"


def test_only_admins_hand_out_logins_and_only_for_users_who_may_log_in(served: Served) -> None:
    ada = served.user("ada")
    assert ada("POST", "/users/ada/login-links").status == 403
    assert ada("POST", "/users/root/tokens", {}).status == 403
    assert served.root("POST", "/users/nobody/login-links").status == 404
    served.root.ok("PATCH", "/users/ada?disabled=true")
    for path in ("login-links", "tokens"):
        assert served.root("POST", f"/users/ada/{path}", {}).code == "user_disabled"


def test_a_token_for_another_user_allows_at_most_what_they_may_do(served: Served) -> None:
    served.user("ada")
    made = served.root.post("/users/ada/tokens", {"name": "handed over", "expires_in_days": 1})
    assert Api(served.url, made["secret"]).get("/whoami")["user"]["name"] == "ada"
    assert "admin" not in made["token"]["scopes"]
    refused = served.root("POST", "/users/ada/tokens", {"scopes": ["admin"]})
    assert (refused.status, refused.code) == (403, "missing_scope")


def test_a_new_admin_needs_a_new_login_and_a_former_one_loses_the_rights_at_once(served: Served) -> None:
    ada = served.user("ada")
    served.root.ok("PATCH", "/users/ada?is_admin=true")
    assert ada("GET", "/users").status == 403  # their token lacks the scope
    boss = Api(served.url, served.root.post("/users/ada/tokens", {"scopes": ["admin"]})["secret"])
    assert boss("GET", "/users").status == 200
    served.root.ok("PATCH", "/users/ada?is_admin=false")
    assert boss("GET", "/users").status == 403


def test_the_last_admin_can_be_neither_suspended_nor_demoted(served: Served) -> None:
    for change in ("disabled=true", "is_admin=false"):
        refused = served.root("PATCH", f"/users/root?{change}")
        assert (refused.status, refused.code) == (409, "last_admin")
    assert served.root("GET", "/users").status == 200


def test_two_admins_who_demote_each_other_leave_one(served_on_both: Served) -> None:
    served = served_on_both
    boss = served.user("boss", is_admin=True)
    at_once = threading.Barrier(2)

    def demote(api: Api, name: str) -> None:
        at_once.wait(20)
        api("PATCH", f"/users/{name}?is_admin=false")

    threads = [threading.Thread(target=demote, args=args) for args in ((served.root, "boss"), (boss, "root"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    answers = [api("GET", "/users").status for api in (served.root, boss)]
    assert sorted(answers) == [200, 403]


def test_a_change_of_nothing_is_refused(served: Served) -> None:
    served.user("ada")
    assert served.root("PATCH", "/users/ada").status == 422


def test_a_browser_can_be_logged_out_from_another(served: Served) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    cookies = [
        served.nobody("POST", "/session", {"token": ada.token}).headers["set-cookie"].partition(";")[0]
        for _ in range(2)
    ]
    first, second = ({"cookie": cookie} for cookie in cookies)
    listed = served.nobody("GET", "/logins", headers=first).body["items"]
    other = next(each["id"] for each in listed if not each["is_current"])
    assert len(listed) == 2
    assert eve("DELETE", f"/logins/{other}").status == 404
    assert ada("DELETE", f"/logins/{other}").status == 204
    assert served.nobody("GET", "/logins", headers=first).status == 200
    assert served.nobody("GET", "/logins", headers=second).status == 401
