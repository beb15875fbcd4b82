"""A browser logs in by a link or a token, and its session ends when it should."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator, Mapping
from http.cookies import Morsel, SimpleCookie
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from proctor.server.db.tables import browser_sessions, login_codes
from proctor.server.people import browser_sessions as sessions
from proctor.server.people import first_login
from proctor.server.people.login_throttle import LoginThrottle, find_client_address
from proctor.server.problems import TooManyError
from proctor.server.server import open_server
from tests.server.serving import Answer, Api, Served, serving, settings_in
from tests.waiting import SECONDS

NUMBERS = count(1)


class SharedServer(Served):
    """A server that all tests here share; users get names of their own."""

    def user(self, name: str, *, is_admin: bool = False) -> Api:
        return super().user(f"{name}-{next(NUMBERS)}", is_admin=is_admin)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(settings_in(tmp_path_factory.mktemp("server"))) as server:
        yield SharedServer(*server)


class Browser:
    """What a browser sends and keeps: cookies of a server, and the origin of its page."""

    def __init__(self, url: str, page: str | None = None) -> None:
        self.url = url
        self.page = page or url
        self.cookies: dict[str, Morsel[str]] = {}

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {"cookie": self.cookie_header}
        sent |= {"origin": self.page, "sec-fetch-site": "same-origin"} if method != "GET" else {}
        answer = Api(self.url)(method, path, body, headers=sent | headers)
        self._keep(answer.headers)
        return answer

    @property
    def cookie_header(self) -> str:
        return "; ".join(f"{name}={each.value}" for name, each in self.cookies.items())

    def follow(self, run_id: str) -> threading.Thread:
        """Read a run's stream, as EventSource does, until it ends."""
        request = urllib.request.Request(f"{self.url}/api/v1/runs/{run_id}/events/stream")
        request.add_header("cookie", self.cookie_header)
        stream = urllib.request.urlopen(request, timeout=SECONDS)

        def read() -> None:
            with stream:
                stream.read()

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def _keep(self, headers: Mapping[str, str]) -> None:
        for name, each in SimpleCookie(headers.get("set-cookie", "")).items():
            self.cookies.pop(name, None)
            if each["max-age"] != "0":
                self.cookies[name] = each

    @property
    def user(self) -> str | None:
        found = self("GET", "/session").body["user"]
        return None if found is None else str(found["name"]).partition("-")[0]


def new_code(api: Api) -> str:
    made = api.post("/session/codes")
    assert made["url"] == f"{api.url}/login#code={made['code']}"
    return str(made["code"])


def logged_in(api: Api) -> Browser:
    browser = Browser(api.url)
    assert browser("POST", "/session", {"code": new_code(api)}).status == 200
    return browser


def test_a_link_logs_in_a_browser_with_the_rights_of_the_token_it_was_made_with(served: Served) -> None:
    browser = logged_in(served.user("ada"))
    info = browser("GET", "/session").body
    assert (browser.user, "admin" in info["scopes"], info["has_logins"]) == ("ada", False, True)
    assert browser("POST", "/teams", {"name": "lab"}).status == 201
    assert browser("GET", "/teams").body["items"] == [{"team": "lab", "role": "admin"}]


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(served: Served) -> None:
    (cookie,) = logged_in(served.user("ada")).cookies.values()
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert not cookie["domain"]
    assert not cookie["secure"]


def test_behind_tls_the_cookie_travels_only_encrypted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = new_code(served.root)
    public = replace(served.platform.settings, public_url="https://proctor.example.com")
    monkeypatch.setattr(served.platform, "settings", public)
    browser = Browser(served.url, "https://proctor.example.com")
    assert browser("POST", "/session", {"code": code}).status == 200
    ((name, cookie),) = browser.cookies.items()
    assert name.startswith("__Host-")
    assert cookie["secure"]
    assert browser("DELETE", "/session").status == 204
    plain = Browser(served.url, "http://proctor.example.com")
    refused = plain("POST", "/session", {"token": served.root.token}, host="proctor.example.com")
    assert (refused.status, "open https://proctor.example.com" in refused.body["message"]) == (422, True)


def test_a_stolen_link_is_worthless_after_its_use(served: Served) -> None:
    code = new_code(served.user("ada"))
    assert Browser(served.url)("POST", "/session", {"code": code}).status == 200
    thief = Browser(served.url)
    answer = thief("POST", "/session", {"code": code})
    assert (answer.status, answer.code, thief.cookies) == (401, "code_used", {})
    assert "proctor logout" in answer.body["message"]


def test_of_two_browsers_that_open_a_link_at_the_same_moment_one_is_logged_in(served_on_both: Served) -> None:
    code = new_code(served_on_both.user("ada"))
    statuses: list[int] = []

    def open_link() -> None:
        statuses.append(Browser(served_on_both.url)("POST", "/session", {"code": code}).status)

    threads = [threading.Thread(target=open_link) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 401, 401, 401, 401, 401]


def test_a_link_expires(served: Served) -> None:
    code = new_code(served.user("ada"))
    served.platform.database.write_now(lambda it: it.execute(update(login_codes).values(expires_at=1.0)))
    assert Browser(served.url)("POST", "/session", {"code": code}).code == "code_expired"
    assert Browser(served.url)("POST", "/session", {"code": "never made"}).code == "code_expired"


def test_a_browser_logs_out(served: Served) -> None:
    browser = logged_in(served.user("ada"))
    kept = dict(browser.cookies)
    assert browser("DELETE", "/session").status == 204
    assert (browser.cookies, browser.user) == ({}, None)
    browser.cookies = kept
    assert browser("GET", "/teams").code == "session_over"
    info = browser("GET", "/session").body
    assert (info["user"], info["is_over"]) == (None, True)
    assert browser.cookies == {}, "a cookie that is no longer good is removed"
    assert not browser("GET", "/session").body["is_over"]


def test_a_session_expires(served: Served) -> None:
    browser = logged_in(served.user("ada"))
    served.platform.database.write_now(lambda it: it.execute(update(browser_sessions).values(expires_at=1.0)))
    served.platform.callers.forget()
    assert browser("GET", "/teams").code == "session_over"


def test_a_session_ends_with_the_token_it_was_opened_with(served: Served) -> None:
    ada = served.user("ada")
    other = Api(ada.url, ada.post("/tokens", {"name": "other"})["secret"])
    first, second = logged_in(ada), logged_in(other)
    ada.ok("DELETE", f"/tokens/{ada.token.split('_')[1]}")
    assert first("GET", "/teams").code == "token_revoked"
    assert [browser.user for browser in (first, second)] == [None, "ada"]


def test_a_session_ends_when_its_user_is_disabled(served: Served) -> None:
    ada = served.user("ada")
    browser = logged_in(ada)
    served.root.ok("PATCH", f"/users/{ada.get('/whoami')['user']['name']}?disabled=true")
    assert browser("GET", "/teams").code == "user_disabled"
    assert browser.user is None


@pytest.mark.parametrize(
    ("page", "site"),
    [
        ("https://evil.example", "cross-site"),
        ("http://127.0.0.1:9", "same-site"),  # another port: the same site for cookies
        ("null", "cross-site"),
        ("http://[", "cross-site"),
    ],
)
def test_a_page_of_another_origin_changes_nothing(served: Served, page: str, site: str) -> None:
    browser = logged_in(served.user("ada"))
    for headers in ({"origin": page}, {"origin": page, "sec-fetch-site": site}, {"sec-fetch-site": site}):
        for method, path, body in (("POST", "/teams", {"name": "evil"}), ("DELETE", "/session", None)):
            answer = browser(method, path, body, **headers)
            assert (answer.status, answer.code) == (403, "cross_site")
    assert browser("GET", "/teams").body["items"] == []


@pytest.mark.parametrize("other", ['x="\\q', "bad[]={", "a,b=c", "=", 'y="1; z="'])
def test_cookies_of_other_servers_on_the_host_do_not_log_a_browser_out(served: Served, other: str) -> None:
    ada = served.user("ada")
    own = logged_in(ada).cookie_header
    for sent in (f"{other}; {own}", f"{own}; {other}", f"{own.partition('=')[0]}=none; {own}"):
        assert Api(served.url)("GET", "/session", headers={"cookie": sent}).body["user"] is not None


def test_a_request_by_cookie_that_does_not_name_its_page_changes_nothing(served: Served) -> None:
    browser = logged_in(served.user("ada"))
    (name,) = browser.cookies
    bare = {"cookie": f"{name}={browser.cookies[name].value}"}
    assert Api(served.url)("POST", "/teams", {"name": "lab"}, headers=bare).code == "cross_site"


def test_a_page_of_another_origin_cannot_log_a_browser_in_as_somebody_else(served: Served) -> None:
    eve = served.user("eve")
    answer = Browser(served.url, "https://evil.example")("POST", "/session", {"token": eve.token})
    assert (answer.status, answer.code) == (403, "cross_site")


def test_a_cookie_means_nothing_to_another_server_on_the_same_host(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    browser = logged_in(ada)
    with serving(settings_in(tmp_path / "other")) as other:
        there = Browser(other.url)
        there.cookies = browser.cookies  # browsers send cookies to every port of a host
        assert there.user is None
        assert there("POST", "/session", {"code": new_code(other.root)}).status == 200
        assert [each.user for each in (there, browser)] == ["root", "ada"], "both logins last side by side"


def test_a_token_logs_in_a_browser(served: Served) -> None:
    browser = Browser(served.url)
    assert browser("POST", "/session", {"token": f" {served.user('ada').token}\n"}).status == 200
    assert browser.user == "ada"


@pytest.mark.parametrize("body", [{}, {"token": "x", "code": "y"}])
def test_a_login_takes_a_token_or_a_code(served: Served, body: dict[str, str]) -> None:
    assert Browser(served.url)("POST", "/session", body).status == 422


def test_the_token_of_the_first_login_logs_in_a_browser_once(served: Served) -> None:
    token = served.platform.database.write_now(first_login.new_login)
    browser = Browser(served.url)
    assert browser("POST", "/session", {"token": token}).status == 200
    assert "admin" in browser("GET", "/session").body["scopes"]
    assert Browser(served.url)("POST", "/session", {"token": token}).code == "token_revoked"


def test_the_link_of_a_new_server_leaves_the_first_login_to_the_command_line(tmp_path: Path) -> None:
    opened = open_server(replace(settings_in(tmp_path), port=8700))
    try:
        assert opened.first_link is not None
        code = opened.first_link.partition("#code=")[2]
        opened_by_link = opened.platform.database.write_now(sessions.open_with_code, code, 1e9)
        assert (opened_by_link.caller.user, opened_by_link.caller.is_admin) == ("root", True)
        assert opened.token_file.exists()
    finally:
        opened.platform.key_lock.close()
        opened.platform.database.close()
        opened.platform.data_lock.close()


def test_guessing_is_slowed_down_and_recovers(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.platform, "login_throttle", LoginThrottle(most=3, forgiven_seconds=3600.0))
    code = new_code(served.user("ada"))
    browser = Browser(served.url)
    for _ in range(3):
        assert browser("POST", "/session", {"code": "guess"}).status == 401
    refused = browser("POST", "/session", {"code": code})
    assert (refused.status, refused.code) == (429, "too_many_requests")
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    elsewhere = browser("POST", "/session", {"code": code}, **{"x-forwarded-for": "10.0.0.1, 10.0.0.9"})
    assert elsewhere.status == 200, "others behind the same proxy are not shut out"


def test_a_failure_is_forgiven_with_time() -> None:
    limiter = LoginThrottle(most=2, forgiven_seconds=10.0)
    limiter.record_failure("a", 0.0)
    limiter.record_failure("a", 0.0)
    with pytest.raises(TooManyError, match="try again in 10 s"):
        limiter.check("a", 0.0)
    limiter.check("b", 0.0)
    limiter.check("a", 10.0)


def test_only_a_proxy_says_where_a_request_comes_from() -> None:
    forged = {"x-forwarded-for": "6.6.6.6"}
    assert find_client_address("9.9.9.9", forged, ()) == "9.9.9.9"
    assert find_client_address("9.9.9.9", forged, ("9.9.9.0/24",)) == "6.6.6.6"
    assert find_client_address("127.0.0.1", forged, ()) == "6.6.6.6"


def test_logins_do_not_pile_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_PER_TOKEN", 2)
    ada = served.user("ada")
    browsers = [logged_in(ada) for _ in range(3)]
    served.platform.callers.forget()
    assert [browser.user for browser in browsers] == [None, "ada", "ada"]


def test_no_secret_of_a_session_or_code_is_in_the_database(served: Served) -> None:
    ada = served.user("ada")
    unused = new_code(ada)
    (cookie,) = logged_in(ada).cookies.values()
    files = [path.read_bytes() for path in served.platform.data.glob("proctor.db*")]
    for secret in (unused, cookie.value.partition("_")[2]):
        assert not any(secret.encode() in content for content in files)


def test_logging_out_ends_the_streams_of_that_browser_alone(served: Served) -> None:
    ada = served.user("ada")
    new = {"client_run_id": "one", "environment": "sums", "model": "m", "metadata": {}, "planned": 1}
    run_id = str(ada.post("/uploads", new)["id"])
    leaving, staying = logged_in(ada), logged_in(ada)
    first, second = leaving.follow(run_id), staying.follow(run_id)
    assert leaving("DELETE", "/session").status == 204
    first.join(SECONDS)
    assert (first.is_alive(), second.is_alive()) == (False, True)
    ada.ok("DELETE", f"/tokens/{ada.token.split('_')[1]}")
    second.join(SECONDS)
    assert not second.is_alive()
