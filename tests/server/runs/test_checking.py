"""What `POST /runs/check` says of a request, and that it agrees with `POST /runs`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, update

from proctor.api.hub import TaskInfo
from proctor.server.db.tables import creations, holds, runs, versions
from proctor.server.hub.tasks import store_tasks
from proctor.server.ledger import records as ledger
from tests.server.runs import making
from tests.server.serving import Api, Served, serving, settings_in

MODELS = """
[[endpoint]]
endpoint_id = "parrot"
model = "parrot"
type = "scripted"
context_tokens = 4096

[[endpoint]]
endpoint_id = "priced"
model = "priced"
type = "openai_chat_completions"
url = "http://127.0.0.1:9/v1"
price = { input = 1.0, output = 5.0 }
"""
SUMS = "ada/sums"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("checking")
    (folder / "endpoints.toml").write_text(MODELS)
    with serving(settings_in(folder, endpoints=folder / "endpoints.toml")) as server:
        yield server


@pytest.fixture(scope="module")
def ada(server: Served) -> Api:
    api = server.user("ada")
    server.platform.database.write_now(making.environment)
    server.platform.database.write_now(declare_secret)
    api.post("/environments/ada/sums/secrets", {"name": "JUDGE_KEY", "value": "j"})
    api.post("/environments/ada/sums/variables", {"name": "MODE", "value": "fast"})
    made = api.post("/secrets", {"name": "SHARED_KEY", "value": "s"})
    api.ok("PUT", f"/environments/ada/sums/secrets/links/{made['id']}")
    return api


@pytest.fixture(scope="module")
def rita(server: Served, ada: Api) -> Api:
    api = server.user("rita")
    ada.ok("PUT", "/environments/ada/sums/collaborators", {"name": "rita", "role": "read"})
    return api


def declare_secret(connection: Connection) -> None:
    connection.execute(update(versions).values(secrets=["JUDGE_KEY"], check_tasks=10))


def asked(**changes: Any) -> dict[str, Any]:
    return {"environment": SUMS, "model": "parrot", **changes}


def fields(told: dict[str, Any]) -> list[str]:
    return sorted(problem["field"] for problem in told["problems"])


def count_created(connection: Connection) -> tuple[int, ...]:
    counts = (select(func.count()).select_from(table) for table in (runs, holds, creations))
    return tuple(connection.execute(query).scalar_one() for query in counts)


# What it says


def test_every_problem_is_said_at_its_field_at_once(ada: Api) -> None:
    told = ada.post(
        "/runs/check",
        {
            "environment": "ada/sums@9.9",
            "model": "parot",
            "settings": {"num_examples": 0, "temperature": "hot", "runtime": "docker", "nun_examples": 3},
            "name": "in\u202evisible",
            "team": "strangers",
            "timeout_minutes": 2000,
            "max_cost_usd": -1,
            "custom_secrets": {"lower": "x", "PATH": "y"},
            "visibility": "team",
            "permissions": {"root": True},
        },
    )

    assert not told["may_start"]
    assert fields(told) == [
        "custom_secrets.PATH",
        "custom_secrets.lower",
        "environment",
        "max_cost_usd",
        "model",
        "name",
        "permissions.root",
        "settings.num_examples",
        "settings.nun_examples",
        "settings.runtime",
        "settings.temperature",
        "team",
        "timeout_minutes",
    ]
    assert all(problem["message"].endswith((".", "?")) for problem in told["problems"])


def test_a_valid_request_says_what_the_run_would_have_and_starts_nothing(server: Served, ada: Api) -> None:
    before = server.platform.database.read_now(count_created)

    told = ada.post("/runs/check", asked(custom_secrets={"MODE": "slow", "OWN": "o"}))

    assert (told["may_start"], told["problems"]) == (True, [])
    assert (told["environment"], told["version"], told["model"]) == (SUMS, "1.0", "parrot")
    assert told["payer"] == "ada"
    secrets = {each["name"]: (each["origin"], each["declared"]) for each in told["secrets"]}
    assert secrets == {
        "JUDGE_KEY": ("environment", True),
        "MODE": ("run", False),
        "OWN": ("run", False),
        "SHARED_KEY": ("linked", False),
    }
    assert server.platform.database.read_now(count_created) == before
    assert "slow" not in str(told)


def test_a_reader_learns_which_secrets_the_run_would_lack_and_who_could_help(rita: Api) -> None:
    told = rita.post("/runs/check", asked())

    (problem,) = told["problems"]
    assert (problem["field"], problem["code"]) == ("custom_secrets.JUDGE_KEY", "missing_secret")
    assert problem["ask"] == ["ada"]
    secrets = {each["name"]: (each["origin"], each["reaches"]) for each in told["secrets"]}
    assert secrets == {"JUDGE_KEY": (None, False), "MODE": ("variable", True)}
    assert "only runs of users who may change it" in told["secrets"][0]["why"]
    assert rita.post("/runs/check", asked(custom_secrets={"JUDGE_KEY": "mine"}))["may_start"]


def test_a_stranger_learns_nothing_of_the_environment(server: Served, ada: Api) -> None:
    told = server.user("sam").post("/runs/check", asked())

    (problem,) = told["problems"]
    assert (problem["field"], problem["code"], problem["ask"]) == ("environment", "not_found", [])
    assert (told["environment"], told["secrets"], told["defaults"]) == (None, [], None)
    assert server.nobody("POST", "/runs/check", asked()).status == 401


def test_who_may_not_run_an_environment_is_told_who_decides(server: Served, ada: Api, rita: Api) -> None:
    ada.ok("PATCH", "/environments/ada/sums", {"run_policy": "writers"})
    try:
        told = rita.post("/runs/check", asked(custom_secrets={"JUDGE_KEY": "mine"}))
    finally:
        ada.ok("PATCH", "/environments/ada/sums", {"run_policy": "readers"})

    (problem,) = told["problems"]
    assert (problem["field"], problem["code"], problem["ask"]) == ("", "run_policy", ["ada"])


def test_a_token_that_may_only_read_is_told_so(server: Served, ada: Api) -> None:
    made = ada.post("/tokens", {"name": "reader", "scopes": ["runs:read", "environments:read"]})

    told = Api(server.url, made["secret"]).post("/runs/check", asked())

    assert [problem["code"] for problem in told["problems"]] == ["missing_scope"]


def test_a_check_tells_nobody_what_others_have_to_spend(server: Served, ada: Api) -> None:
    server.user("rich")
    server.platform.database.write_now(ledger.grant, "rich", 42_500_000, "plenty", "ref-rich")

    told = ada.post("/runs/check", asked(model="priced", max_cost_usd=1000.0, team="rich"))

    (problem,) = told["problems"]
    assert problem["field"] == "team"
    assert "42" not in problem["message"]


def test_without_funds_the_admins_are_named(server: Served, ada: Api) -> None:
    poor = server.user("poor")
    ada.ok("PUT", "/environments/ada/sums/collaborators", {"name": "poor", "role": "write"})
    server.platform.database.write_now(ledger.grant, "poor", 1_000, "a little", "ref-poor")

    told = poor.post("/runs/check", asked(model="priced", max_cost_usd=5.0))

    (problem,) = told["problems"]
    assert (problem["field"], problem["code"], problem["ask"]) == ("max_cost_usd", "balance", ["root"])


def test_the_size_that_a_package_says_is_the_default(server: Served, ada: Api) -> None:
    built_in = ada.post("/runs/check", asked())["defaults"]
    assert built_in == {"num_examples": 5, "rollouts_per_example": 3, "from_package": False}

    server.platform.database.write_now(set_facts, {"num_examples": 40, "rollouts_per_example": 2})
    told = ada.post("/runs/check", asked())["defaults"]
    server.platform.database.write_now(set_facts, {})

    assert told == {"num_examples": 40, "rollouts_per_example": 2, "from_package": True}


def set_facts(connection: Connection, facts: dict[str, Any]) -> None:
    connection.execute(update(versions).values(check_facts=facts))


def test_agents_are_offered_where_the_tasks_leave_them_open(server: Served, ada: Api) -> None:
    assert ada.post("/runs/check", asked())["takes_agent"] is None

    tasks = [TaskInfo(slug="one", template="solve", args={"n": 1})]
    server.platform.database.write_now(store_tasks, "ver-ada-sums", tasks)
    told = ada.post("/runs/check", asked())

    assert told["takes_agent"]
    assert "tool_loop" in told["agents"]


# It agrees with what starts runs

BAD: dict[str, list[Any]] = {
    "environment": ["ada/nothing", "ada/sums@7", "a b", "x/y/z", "", 3, None],
    "model": ["parot", "x" * 500, 7],
    "settings": [
        {"num_examples": 0},
        {"num_examples": "5"},
        {"num_examples": 2.5},
        {"rollouts_per_example": 0},
        {"temperature": -1},
        {"sampling_args": []},
        {"env_args": "x"},
        {"env_args": {"dataset": f"ada/none@{'a' * 64}"}},
        {"api_base_url": "http://127.0.0.1:1/v1"},
        {"api_base_url": "ftp://x"},
        {"api_base_url": 5},
        {"headers": {"X": "a\nb"}},
        {"agent": "claud"},
        {"agent": 5},
        {"task_ids": [[1]]},
        {"task_ids": 5},
        {"until_decided": 5},
        {"until_decided": ["run-0"]},
        {"runtime": "docker"},
        {"unknown": 1},
        {"max_retries": -1},
        {"timeout": 0},
        [],
        "text",
    ],
    "name": ["x" * 201, "a\u200bb", 5],
    "team": ["strangers", 5],
    "timeout_minutes": [0, 1441, "120", "soon", 1.5, None],
    "max_cost_usd": [0, -1, 2e9, "much", 1e-9],
    "custom_secrets": [{"lower": "x"}, {"PATH": "x"}, {"KEY": "a\x00b"}, {"KEY": 5}, [], {"K": "x" * 70_000}],
    "visibility": ["team", "world"],
    "permissions": [{"root": True}, {"network": "maybe"}, []],
    "nonsense": [1],
}
GOOD: dict[str, list[Any]] = {
    "environment": [SUMS, "ada/sums@1.0", "ada/sums@latest"],
    "model": ["parrot", "priced", None],
    "settings": [{}, {"num_examples": -1, "temperature": 0.5}, {"env_args": {"tasks": 3}}],
    "timeout_minutes": [1, 1440],
    "custom_secrets": [{}, {"OWN": "o"}],
    "name": ["", "A run"],
    "visibility": [None, "private", "readers", "link"],
    "permissions": [{}, {"network": True}],
}


def draw_requests(count: int) -> Iterator[dict[str, Any]]:
    """Requests with some bad fields and some good ones: every bad value alone, then mixtures."""
    for name, values in BAD.items():
        yield from ({**asked(), name: value} for value in values)
    chance = random.Random(15)
    for _ in range(count):
        request = asked()
        for name in {*BAD, *GOOD}:
            if chance.random() < 0.5 and name in GOOD:
                request[name] = chance.choice(GOOD[name])
            if chance.random() < 0.15 and name in BAD:
                request[name] = chance.choice(BAD[name])
        yield request


def test_a_check_and_a_start_agree_on_every_request(server: Served, ada: Api) -> None:
    agreed = {True: 0, False: 0}
    for request in draw_requests(120):
        told = ada("POST", "/runs/check", request)
        started = ada("POST", "/runs", request)

        assert told.status == 200, (request, told)
        may_start = told.body["may_start"]
        assert may_start == (started.status == 201), (request, told.body["problems"], started)
        if not may_start:
            codes = {problem["code"] for problem in told.body["problems"]}
            assert started.code in codes, (request, told.body["problems"], started)
        else:
            ada.post(f"/runs/{started.body['id']}/stop")
        agreed[may_start] += 1
    assert min(agreed.values()) > 10


# Models, and what they did here last


def finish_run(connection: Connection, owner: str, model: str, mean: float, at: float) -> str:
    run_id = making.run(connection, owner, model=model, now=at)
    score = {"mean": mean, "tasks": 10, "interval": None, "coverage": 1.0}
    ended = {"status": "finished", "score": score, "cost": 42_000, "settled": 20}
    connection.execute(update(runs).where(runs.c.id == run_id).values(**ended))
    return run_id


def test_models_say_what_they_did_here_last_as_far_as_you_may_see(
    server: Served, ada: Api, rita: Api
) -> None:
    write = server.platform.database.write_now
    write(finish_run, "ada", "parrot", 0.4, 1_000.0)
    newest = write(finish_run, "ada", "parrot", 0.61, 2_000.0)

    mine = {model["id"]: model for model in ada.get(f"/models?environment={SUMS}")["items"]}
    theirs = {model["id"]: model for model in rita.get(f"/models?environment={SUMS}")["items"]}

    last = mine["parrot"]["last"]
    assert (last["run"], last["score"]["mean"]) == (newest, 0.61)
    assert last["usd_per_rollout"] == pytest.approx(0.0021)
    assert (mine["parrot"]["context_tokens"], mine["priced"]["last"]) == (4096, None)
    assert sum(model["is_default"] for model in mine.values()) == 1
    assert theirs["parrot"]["last"] is None
    ada.ok("PUT", f"/runs/{newest}/visibility", {"visibility": "readers"})
    shared = {model["id"]: model for model in rita.get(f"/models?environment={SUMS}")["items"]}
    assert shared["parrot"]["last"]["score"]["mean"] == 0.61
    assert shared["parrot"]["last"]["usd_per_rollout"] is None
    assert rita("GET", "/models?environment=ada/none").status == 404
