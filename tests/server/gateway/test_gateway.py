"""One token for every model: what is passed on, what is refused, and what everything is booked at."""

from __future__ import annotations

import gzip
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Connection, select

from proctor.api.runs import Cause
from proctor.server.db.tables import calls, runs
from proctor.server.gateway import upstreams
from proctor.server.people.tokens import make_token
from tests.server.gateway.provider import COST, KEY, Provider
from tests.server.ledger.rows import add_run
from tests.server.serving import Answer, Api, Served
from tests.waiting import SECONDS, wait_for

ASKED = {"model": "chatty", "messages": [{"role": "user", "content": "2 + 2?"}]}
SHORT = {**ASKED, "max_tokens": 200}
"""Costs what it is reserved at, but for some bytes of its frame."""
WIRES: list[tuple[str, str, dict[str, Any]]] = [
    ("/v1/chat/completions", "chatty", ASKED),
    ("/v1/responses", "thinker", {"model": "thinker", "input": "2 + 2?"}),
    ("/v1/messages", "poet", {**ASKED, "model": "poet", "max_tokens": 50}),
]


def use(api: Api, query: str = "") -> dict[str, Any]:
    return {each["model"]: each for each in api.get(f"/usage{query}")["items"]}


def in_run(served: Served, user: str, **changes: Any) -> tuple[str, Api]:
    """A run of a user that is being played, and requests with its token."""

    def work(connection: Connection) -> str:
        add_run(connection, "run-1", owner=user, **{"model": "chatty", "attempt": 1, **changes})
        made = make_token(
            connection,
            kind="run",
            user=user,
            scopes=["inference", "runs:read"],
            expires_at=None,
            run_id="run-1",
            attempt=1,
        )
        return made.secret

    return "run-1", Api(served.url, served.platform.database.write_now(work))


def run_row(served: Served, run_id: str) -> Any:
    return served.platform.database.read_now(
        lambda connection: connection.execute(select(runs).where(runs.c.id == run_id)).one()
    )


def streamed(api: Api, path: str, body: Any) -> str:
    answer = api("POST", path, {**body, "stream": True})
    assert answer.status == 200, answer
    assert "text/event-stream" in answer.headers["content-type"]
    return str(answer.body)


# Passing on


@pytest.mark.parametrize(("path", "model", "body"), WIRES)
def test_a_request_in_the_providers_own_wire_is_passed_on_and_paid_for(
    served: Served, provider: Provider, path: str, model: str, body: dict[str, Any]
) -> None:
    ada = served.user("ada")

    answer = ada.ok("POST", path, {**body, "top_k": 20})

    assert "Four." in json.dumps(answer)
    unstored = {"store": False} if path == "/v1/responses" else {}
    assert provider.last == {**body, "model": "big-1", "top_k": 20, **unstored}
    assert KEY in json.dumps(provider.headers[-1])
    assert ada.token not in json.dumps(provider.headers[-1])
    used = use(ada)[model]
    assert (used["requests"], used["input_tokens"], used["output_tokens"]) == (1, 1000, 200)
    assert used["cost_usd"] == pytest.approx(COST)
    assert ada.get("/balance")["spent_usd"] == pytest.approx(COST)


@pytest.mark.parametrize("path", ["/v1//chat/completions", "/v1/chat/completions/"])
def test_a_slash_too_many_in_the_path_does_no_harm(served: Served, path: str) -> None:
    assert "Four." in json.dumps(served.user("ada").ok("POST", path, ASKED))


@pytest.mark.parametrize("path", ["/v1x/chat/completions", "/v1.1/models"])
def test_a_path_that_only_begins_like_the_gateways_is_not_found(served: Served, path: str) -> None:
    assert served.user("ada")("POST", path, ASKED).status in (404, 405)


@pytest.mark.parametrize(("path", "model", "body"), WIRES)
def test_a_stream_is_passed_on_to_its_end_and_paid_for(
    served: Served, path: str, model: str, body: dict[str, Any]
) -> None:
    ada = served.user("ada")

    text = streamed(ada, path, body)

    assert text.rstrip().endswith(("[DONE]", "}"))
    assert "\n\n\n" not in text
    assert use(ada)[model]["cost_usd"] == pytest.approx(COST)


def test_a_stream_tells_its_usage_only_to_who_asked_for_it(served: Served, provider: Provider) -> None:
    ada = served.user("ada")

    plain = streamed(ada, "/v1/chat/completions", ASKED)
    told = streamed(ada, "/v1/chat/completions", {**ASKED, "stream_options": {"include_usage": True}})

    assert provider.bodies[0]["stream_options"] == {"include_usage": True}
    assert "prompt_tokens" not in plain
    assert "prompt_tokens" in told
    assert use(ada)["chatty"]["requests"] == 2


def test_a_stream_arrives_while_it_is_written(served: Served, provider: Provider) -> None:
    ada = served.user("ada")
    provider.go_on.clear()
    connection, response = opened(ada, {**ASKED, "stream": True})

    assert b"Fo" in response.read1(1000)
    provider.go_on.set()

    assert b"[DONE]" in response.read()
    connection.close()


def test_a_client_that_leaves_early_pays_for_what_it_asked(served: Served, provider: Provider) -> None:
    ada = served.user("ada")
    provider.go_on.clear()
    connection, response = opened(ada, {**ASKED, "stream": True})
    response.read1(1000)
    response.close()
    connection.close()
    provider.go_on.set()

    wait_for(lambda: use(ada))

    assert use(ada)["chatty"]["output_tokens"] == 200


def test_a_stream_that_breaks_off_is_paid_as_far_as_it_is_known(served: Served, provider: Provider) -> None:
    ada = served.user("ada")
    provider.breaks_off = True

    streamed(ada, "/v1/chat/completions", ASKED)

    assert use(ada)["chatty"]["output_tokens"] == 2


def opened(
    api: Api, body: Any, path: str = "/v1/chat/completions"
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = asking(api, body, path)
    return connection, connection.getresponse()


def asking(api: Api, body: Any, path: str = "/v1/chat/completions") -> http.client.HTTPConnection:
    """A request whose answer nobody has waited for yet."""
    connection = http.client.HTTPConnection(urlsplit(api.url).netloc, timeout=SECONDS)
    headers = {"authorization": f"Bearer {api.token}", "content-type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    return connection


# Between wires


@pytest.mark.parametrize("model", ["chatty", "thinker", "poet"])
@pytest.mark.parametrize(("path", "_", "body"), WIRES)
def test_a_stream_arrives_while_it_is_written_on_every_wire_from_every_model(
    served: Served, provider: Provider, path: str, _: str, body: dict[str, Any], model: str
) -> None:
    ada = served.user("ada")
    provider.go_on.clear()
    connection, response = opened(ada, {**body, "model": model, "stream": True}, path)
    received = b""
    while b'"Fo"' not in received:
        received += response.read1(10_000)

    assert not any(end in received for end in (b"[DONE]", b"message_stop", b"response.completed"))
    assert not use(ada), "it is still being written"
    provider.go_on.set()
    received += response.read()

    connection.close()
    assert b"ur." in received
    assert received.rstrip().endswith((b"[DONE]", b"}"))
    assert use(ada)[model]["cost_usd"] == pytest.approx(COST)


def test_a_translated_stream_that_breaks_off_says_so_and_is_paid_as_far_as_it_came(
    served: Served, provider: Provider
) -> None:
    ada = served.user("ada")
    provider.breaks_off = True

    text = streamed(ada, "/v1/messages", {**ASKED, "max_tokens": 9})

    assert "event: error" in text
    assert "ended its stream before the end of its answer" in text
    assert use(ada)["chatty"]["output_tokens"] == 2


@pytest.mark.parametrize("model", ["chatty", "thinker", "poet"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_provider_key_is_403_on_every_wire_with_one_code(
    served: Served, provider: Provider, model: str, stream: bool, status: int
) -> None:
    ada = served.user("ada")
    provider.failure = (status, b'{"error": {"message": "bad key"}}', {})

    for path, _, body in WIRES:
        answer = ada("POST", path, {**body, "model": model, "stream": stream})
        assert (answer.status, answer.headers["x-proctor-code"]) == (403, "provider_key")
        assert "tell the server's operator" in json.dumps(answer.body)


@pytest.mark.parametrize("model", ["chatty", "thinker", "poet"])
@pytest.mark.parametrize("stream", [False, True])
def test_every_wire_reaches_every_model(served: Served, model: str, stream: bool) -> None:
    ada = served.user("ada")

    for path, _, body in WIRES:
        asked = {**body, "model": model}
        text = streamed(ada, path, asked) if stream else json.dumps(ada.ok("POST", path, asked))
        assert "Fo" in text

    assert use(ada)[model]["requests"] == 3
    assert use(ada)[model]["cost_usd"] == pytest.approx(3 * COST)


def test_a_model_in_the_servers_process_is_asked_like_any_other(served: Served) -> None:
    answer = served.user("ada").ok("POST", "/v1/chat/completions", {**ASKED, "model": "echo"})

    assert answer["choices"][0]["message"]["content"] == "2 + 2?"


# Which models


def test_models_are_listed_with_their_prices_as_far_as_their_keys_are_there(served: Served) -> None:
    ada = served.user("ada")

    openai = [model["id"] for model in ada.ok("GET", "/v1/models")["data"]]
    priced = {model["id"]: model for model in ada.get("/models")["items"]}

    assert openai == ["chatty", "thinker", "poet", "unpriced", "echo"]
    assert priced["chatty"]["output_usd_per_million"] == 5.0
    assert priced["unpriced"]["output_usd_per_million"] is None


def test_a_model_that_is_not_there_is_refused_with_the_nearest_name(served: Served) -> None:
    answer = served.user("ada")("POST", "/v1/chat/completions", {**ASKED, "model": "chaty"})

    assert answer.status == 404
    assert "'chatty'" in answer.body["error"]["message"]
    assert answer.body["error"]["code"] == "model_not_found"


def test_models_of_this_process_are_only_for_whom_the_operator_named_them(served: Served) -> None:
    assert served.user("ada")("POST", "/v1/chat/completions", {**ASKED, "model": "local"}).status == 404


def test_without_a_name_the_first_model_with_a_key_answers(served: Served) -> None:
    assert served.platform.models.resolve(None).name == "chatty"


def test_a_known_provider_needs_no_registry(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant")

    route = served.platform.models.resolve("claude-sonnet-4-5")

    assert (route.provider, route.price and route.price.input) == ("anthropic", 3.0)
    assert "claude-sonnet-4-5" in [model.id for model in served.platform.models.list_models()]


# Who may


def test_nobody_gets_in_without_a_token_that_is_good_for_it(served: Served) -> None:
    ada = served.user("ada")
    reader = Api(served.url, ada.post("/tokens", {"scopes": ["runs:read"]})["secret"])

    for api, status in ((served.nobody, 401), (Api(served.url, "proctor_x_y"), 401), (reader, 403)):
        answer = api("POST", "/v1/chat/completions", ASKED)
        assert answer.status == status
        assert answer.body["error"]["message"]


def test_an_anthropic_client_may_send_its_token_as_it_is_used_to(served: Served) -> None:
    token = served.user("ada").token

    answer = served.nobody("POST", "/v1/messages", WIRES[2][2], headers={"x-api-key": token})

    assert answer.body["content"][0]["text"] == "Four."
    refused = served.nobody("POST", "/v1/messages", WIRES[2][2], headers={"x-api-key": "proctor_no"})
    assert (refused.status, refused.body["type"]) == (401, "error")


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/embeddings"), ("GET", "/v1/files")])
def test_what_is_not_there_is_refused_in_the_words_of_the_api(served: Served, method: str, path: str) -> None:
    answer = served.user("ada")(method, path, {} if method == "POST" else None)

    assert answer.status == 404
    assert "/v1/chat/completions" in answer.body["error"]["message"]


def test_a_request_that_cannot_be_read_is_refused(served: Served) -> None:
    ada = served.user("ada")

    for data in (b"{", b"[]", b'{"model": 3}'):
        assert ada("POST", "/v1/chat/completions", data=data).status == 400


# Providers that fail


def test_a_provider_that_wants_time_is_heard(served: Served, provider: Provider) -> None:
    told = b'{"error": {"message": "slow down", "type": "rate_limit_error", "code": null}}'
    provider.failure = (429, told, {"retry-after": "7"})

    for path, _, body in WIRES:
        answer = served.root("POST", path, body)
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")
        assert answer.body["error"]["message"] == "slow down"


def test_an_error_in_no_shape_is_given_the_wires_own(served: Served, provider: Provider) -> None:
    provider.failure = (503, b"<html>down for maintenance</html>", {"content-type": "text/html"})

    shapes = [served.root("POST", path, body) for path, _, body in WIRES]

    assert [each.status for each in shapes] == [503, 503, 503]
    assert [set(each.body) for each in shapes] == [{"error"}, {"error"}, {"type", "error"}]
    assert "maintenance" in shapes[0].body["error"]["message"]


@pytest.mark.parametrize("status", [400, 401, 403, 500])
def test_a_providers_key_is_never_repeated(
    served: Served, provider: Provider, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    provider.failure = (status, json.dumps({"error": {"message": f"bad key {KEY}"}}).encode(), {})

    answers = [served.root("POST", path, {**body, "model": "chatty"}) for path, _, body in WIRES]

    assert all(answer.status >= 400 for answer in answers)
    assert KEY not in json.dumps([answer.body for answer in answers]) + caplog.text
    assert KEY[:12] not in json.dumps([answer.body for answer in answers]) or status not in (401, 403)


@pytest.mark.parametrize("model", ["chatty", "thinker", "poet"])
def test_a_provider_that_wants_to_be_paid_is_not_mistaken_for_an_empty_balance(
    served: Served, provider: Provider, model: str
) -> None:
    provider.failure = (402, b'{"error": {"message": "insufficient credits"}}', {})

    for path, _, body in WIRES:
        answer = served.root("POST", path, {**body, "model": model})
        assert answer.status == 403, path
        assert "tell the server's operator" in answer.body["error"]["message"]


def test_a_runs_own_endpoint_that_wants_to_be_paid_is_the_business_of_who_started_it(
    served: Served, provider: Provider
) -> None:
    served.platform.upstreams._allowed_hosts = ("127.0.0.1",)
    served.user("ada")
    _, inside = in_run(served, "ada", model="mine", settings={"api_base_url": provider.url})
    provider.failure = (402, b'{"error": {"message": "insufficient credits"}}', {})

    answer = inside("POST", "/v1/chat/completions", {**ASKED, "model": "mine"})

    assert (answer.status, answer.body["error"]["code"]) == (403, "provider_payment")
    assert "check the account" in answer.body["error"]["message"]


def test_a_failure_costs_nothing(served: Served, provider: Provider) -> None:
    provider.failure = (500, b"{}", {})
    ada = served.user("ada")

    assert ada("POST", "/v1/chat/completions", ASKED).status == 500
    assert use(ada) == {}


# Money


def test_a_call_of_a_run_that_was_deleted_meanwhile_is_paid_for(served: Served, provider: Provider) -> None:
    ada = served.user("ada")
    run_id, inside = in_run(served, "ada")
    provider.go_on.clear()
    connection, response = opened(inside, {**ASKED, "stream": True})
    response.read1(1000)
    gone = runs.delete().where(runs.c.id == run_id)
    served.platform.database.write_now(lambda each: each.execute(gone))
    served.platform.meter.forget()
    provider.go_on.set()

    assert b"[DONE]" in response.read()
    connection.close()
    assert ada.get("/balance")["spent_usd"] == pytest.approx(COST)


def test_a_model_without_a_price_is_counted_and_costs_nothing(served: Served) -> None:
    ada = served.user("ada")
    ada.ok("POST", "/v1/chat/completions", {**ASKED, "model": "unpriced"})

    assert use(ada)["unpriced"]["cost_usd"] is None
    assert ada.get("/balance")["spent_usd"] == 0


def test_a_price_that_an_admin_sets_counts_from_the_next_request(served: Served) -> None:
    ada = served.user("ada")
    price = {"input_usd_per_million": 2.0, "output_usd_per_million": 10.0}

    assert ada("PUT", "/prices/unpriced", price).status == 403
    served.root.ok("PUT", "/prices/unpriced", price)
    ada.ok("POST", "/v1/chat/completions", {**ASKED, "model": "unpriced"})

    assert use(ada)["unpriced"]["cost_usd"] == pytest.approx(2 * COST)
    served.root.ok("DELETE", "/prices/unpriced")
    assert served.root.get("/prices")["items"] == []


def test_an_empty_balance_is_refused_in_the_words_of_the_wire(served: Served, provider: Provider) -> None:
    ada = served.user("ada")
    served.root.post("/grants", {"owner": "ada", "amount_usd": 2.5 * COST})
    for _ in range(2):
        ada.ok("POST", "/v1/chat/completions", SHORT)

    answers = [ada("POST", path, body) for path, _, body in WIRES]

    assert [answer.status for answer in answers] == [402, 402, 402]
    assert [answer.headers["x-proctor-code"] for answer in answers] == ["balance"] * 3
    assert answers[0].body["error"]["code"] == "balance"
    assert answers[2].body["error"]["type"] == "billing_error"
    assert len(provider.bodies) == 2
    served.root.post("/grants", {"owner": "ada", "amount_usd": 1.0})
    ada.ok("POST", "/v1/chat/completions", ASKED)


def test_fifty_requests_at_once_are_each_booked_once(served: Served) -> None:
    ada = served.user("ada")
    served.root.post("/grants", {"owner": "ada", "amount_usd": 10})

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ada("POST", "/v1/chat/completions", ASKED), range(50)))

    assert {answer.status for answer in answers} == {200}
    assert use(ada)["chatty"]["requests"] == 50
    assert ada.get("/balance")["balance_usd"] == pytest.approx(10 - 50 * COST)
    rows = served.platform.database.read_now(lambda connection: connection.execute(select(calls)).all())
    assert len(rows) == 50


# Runs


def test_a_run_pays_from_its_owners_account_and_counts_what_it_used(served: Served) -> None:
    ada = served.user("ada")
    run_id, inside = in_run(served, "ada")

    inside.ok("POST", "/v1/chat/completions", ASKED)

    run = run_row(served, run_id)
    assert (run.cost, run.input_tokens, run.output_tokens) == (2000, 1000, 200)
    assert ada.get("/balance")["spent_usd"] == pytest.approx(COST)
    assert use(ada, f"?run={run_id}")["chatty"]["requests"] == 1
    assert served.user("eve")("GET", f"/usage?run={run_id}").status == 404


def test_a_run_of_a_team_is_paid_by_the_team(served: Served) -> None:
    ada = served.user("ada")
    ada.post("/teams", {"name": "lab"})
    _, inside = in_run(served, "ada", team="lab")

    inside.ok("POST", "/v1/chat/completions", ASKED)

    assert ada.get("/balance?owner=lab")["spent_usd"] == pytest.approx(COST)
    assert ada.get("/balance")["spent_usd"] == 0


def test_a_run_at_its_budget_is_told_and_asked_to_stop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.user("ada")
    run_id, inside = in_run(served, "ada", max_cost=round(2.5 * COST * 1e6))
    stopped: list[tuple[str, Cause]] = []

    async def on_exhausted(run: str, cause: Cause) -> None:
        stopped.append((run, cause))

    monkeypatch.setattr(served.platform.runs, "stop", on_exhausted)
    answers: list[Answer] = [inside("POST", "/v1/chat/completions", SHORT) for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 402]
    assert answers[2].body["error"]["code"] == "budget"
    assert [(run, cause.code) for run, cause in stopped] == [(run_id, "budget")]


def test_a_runs_own_endpoint_is_asked_with_its_own_key_and_costs_nothing_here(
    served: Served, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = served.user("ada")
    served.platform.upstreams._allowed_hosts = ("127.0.0.1",)

    async def variables(_: str) -> dict[str, str]:
        return {"MY_KEY": "sk-mine"}

    monkeypatch.setattr(served.platform.runs, "variables", variables)
    settings = {"api_base_url": provider.url, "api_key_var": "MY_KEY"}
    run_id, inside = in_run(served, "ada", model="mine", settings=settings)

    inside.ok("POST", "/v1/chat/completions", {**ASKED, "model": "mine"})

    assert provider.headers[-1]["authorization"] == "Bearer sk-mine"
    assert use(ada, f"?run={run_id}")["mine"]["cost_usd"] is None
    assert ada.get("/balance")["spent_usd"] == 0


def test_a_runs_own_endpoint_cannot_reach_into_the_servers_network(
    served: Served, provider: Provider
) -> None:
    served.user("ada")
    _, inside = in_run(served, "ada", model="mine", settings={"api_base_url": provider.url})

    for path, _, body in WIRES:
        answer = inside("POST", path, {**body, "model": "mine"})
        assert answer.status == 502
        assert "public internet" in json.dumps(answer.body)
    assert provider.bodies == []


def test_a_runs_own_endpoint_cannot_fill_the_memory_nor_make_a_page_of_its_answer(
    served: Served, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstreams, "LARGEST_ANSWER", 2**20)
    served.platform.upstreams._allowed_hosts = ("127.0.0.1",)
    served.user("ada")
    _, inside = in_run(served, "ada", model="mine", settings={"api_base_url": provider.url})

    provider.failure = (200, b'"<script>"', {"content-type": "text/html"})
    page = inside("POST", "/v1/chat/completions", {**ASKED, "model": "mine"})
    assert page.headers["content-type"] == "application/json"

    provider.failure = (200, gzip.compress(bytes(50 * 2**20)), {"content-encoding": "gzip"})
    for path, _, body in WIRES:
        bomb = inside("POST", path, {**body, "model": "mine"})
        assert bomb.status == 400, path  # asking again would not help
        assert "sent over 1 MB" in json.dumps(bomb.body)
