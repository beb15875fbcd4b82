"""A balance is a limit: whatever is asked at once, nobody spends what they do not have."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

from proctor.api.runs import Cause
from proctor.server.db.tables import calls, reservations
from proctor.server.gateway import reserver
from proctor.server.gateway.bounds import IMAGE_TOKENS, prompt_bound
from tests.server.gateway.provider import COST, Provider
from tests.server.gateway.test_gateway import ASKED, WIRES, asking, in_run, run_row, streamed, use
from tests.server.serving import Answer, Api, Served
from tests.waiting import wait_for

PATH = "/v1/chat/completions"
TWENTY_DOLLARS = {**ASKED, "max_tokens": 4_000_000}
TWO_DOLLARS = {**ASKED, "max_tokens": 400_000}
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
SCREENSHOT = {"type": "computer_screenshot", "image_url": "https://example.com/a.png"}
TWO_DOLLARS_USED = {"prompt_tokens": 100, "completion_tokens": 399_980}


def ask_at_once(api: Api, body: Any, number: int) -> list[Answer]:
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(lambda _: api("POST", PATH, body), range(number)))


def rich(served: Served, name: str, amount_usd: float) -> Api:
    api = served.user(name)
    served.root.post("/grants", {"owner": name, "amount_usd": amount_usd})
    return api


def rows(served: Served, table: Any) -> list[Any]:
    return list(served.platform.database.read_now(lambda connection: connection.execute(select(table)).all()))


# At once


def test_sixty_calls_of_twenty_dollars_leave_five_dollars_as_they_are(
    served_anywhere: Served, provider: Provider
) -> None:
    ada = rich(served_anywhere, "ada", 5)
    provider.usage = {"prompt_tokens": 100, "completion_tokens": 4_000_000}

    answers = ask_at_once(ada, TWENTY_DOLLARS, 60)

    assert Counter(answer.status for answer in answers) == {402: 60}
    said = answers[0].body["error"]["message"]
    assert "up to 20.00 dollars" in said
    assert "ada has only 5.00 left" in said
    assert ada.get("/balance")["balance_usd"] == 5.0
    assert provider.bodies == []


def test_calls_at_once_are_answered_only_as_far_as_the_balance_reaches(
    served_anywhere: Served, provider: Provider
) -> None:
    ada = rich(served_anywhere, "ada", 5)
    provider.usage = TWO_DOLLARS_USED

    answers = ask_at_once(ada, TWO_DOLLARS, 20)

    assert Counter(answer.status for answer in answers) == {200: 2, 402: 18}
    assert provider.most_in_flight <= 2
    told = ada.get("/balance")
    assert told["balance_usd"] == pytest.approx(1.0, abs=0.01)
    assert told["held_usd"] == 0
    assert rows(served_anywhere, reservations) == []


def test_calls_at_once_of_a_run_never_exceed_its_max_cost(
    served_anywhere: Served, provider: Provider
) -> None:
    served_anywhere.user("ada")
    run_id, inside = in_run(served_anywhere, "ada", max_cost=5_000_000)
    provider.usage = TWO_DOLLARS_USED

    answers = ask_at_once(inside, TWO_DOLLARS, 20)

    assert Counter(answer.status for answer in answers) == {200: 2, 402: 18}
    assert answers[[each.status for each in answers].index(402)].body["error"]["code"] == "budget"
    assert run_row(served_anywhere, run_id).cost <= 5_000_000


def test_a_run_is_not_stopped_because_its_own_calls_have_reserved_the_rest(
    served: Served, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    rich(served, "ada", 100)
    run_id, inside = in_run(served, "ada", max_cost=5_000_000)
    stopped: list[Cause] = []

    async def stop(_: str, cause: Cause) -> None:
        stopped.append(cause)

    monkeypatch.setattr(served.platform.runs, "stop", stop)

    answers = ask_at_once(inside, TWO_DOLLARS, 20)  # each may cost two dollars, and costs a fifth of a cent

    assert Counter(answer.status for answer in answers) == {200: 20}
    assert stopped == []
    assert provider.most_in_flight <= 2
    assert run_row(served, run_id).cost == round(20 * COST * 1e6)


def test_who_waits_too_long_for_the_calls_of_others_may_try_again(
    served: Served, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserver, "WAIT_SECONDS", 0.0)
    ada = rich(served, "ada", 3)
    provider.answering.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ada, "POST", PATH, TWO_DOLLARS)
        wait_for(lambda: provider.in_flight == 1)

        second = ada("POST", PATH, TWO_DOLLARS)

        assert (second.status, second.headers["retry-after"]) == (429, "5")
        assert second.body["error"]["code"] == "reserved"
        provider.answering.set()
        assert first.result().status == 200


def test_who_waits_for_money_and_leaves_is_forgotten(served: Served, provider: Provider) -> None:
    ada = rich(served, "ada", 3)
    provider.answering.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ada, "POST", PATH, TWO_DOLLARS)
        wait_for(lambda: provider.in_flight == 1)
        second = asking(ada, TWO_DOLLARS)
        wait_for(lambda: len(served.platform.reserver._pending) == 1)

        second.close()

        wait_for(lambda: not served.platform.reserver._pending)

        provider.answering.set()
        assert first.result().status == 200
    assert len(provider.bodies) == 1
    wait_for(lambda: rows(served, reservations) == [])


def test_what_is_reserved_is_seen_and_a_failure_gives_it_back(served: Served, provider: Provider) -> None:
    ada = rich(served, "ada", 3)
    provider.answering.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ada, "POST", PATH, TWO_DOLLARS)
        wait_for(lambda: provider.in_flight == 1)
        assert ada.get("/balance")["held_usd"] == pytest.approx(2.0, abs=0.01)
        provider.answering.set()
        first.result()
    provider.failure = (500, b"{}", {})

    for _ in range(3):
        assert ada("POST", PATH, TWO_DOLLARS).status == 500

    wait_for(lambda: ada.get("/balance")["held_usd"] == 0)
    assert ada.get("/balance")["balance_usd"] == pytest.approx(3 - COST)


def test_a_server_that_died_keeps_its_reservations_for_no_longer_than_their_lease(
    served_anywhere: Served,
) -> None:
    ada = rich(served_anywhere, "ada", 3)
    until = time.time() + 1.5
    row = {"id": "x", "owner": "ada", "run_id": None, "amount": 2_000_000, "holder": "dead"}

    def leave(connection: Connection) -> None:
        connection.execute(insert(reservations).values(row | {"expires_at": until}))

    served_anywhere.platform.database.write_now(leave)

    assert ada("POST", PATH, TWO_DOLLARS).status == 200
    assert time.time() >= until
    assert ada.get("/balance")["balance_usd"] == pytest.approx(3 - COST)


def test_an_account_without_a_limit_reserves_nothing_and_is_asked_as_it_says(
    served: Served, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reserve(_: Any) -> None:
        raise AssertionError("nothing is to be reserved")

    monkeypatch.setattr(served.platform.reserver, "reserve", reserve)

    served.user("ada").ok("POST", PATH, ASKED)

    assert "max_tokens" not in provider.last


# The bound is real


@pytest.mark.parametrize(("path", "model", "body"), WIRES)
def test_an_answer_that_nobody_limited_is_limited_for_who_has_a_limit(
    served: Served, provider: Provider, path: str, model: str, body: dict[str, Any]
) -> None:
    ada = rich(served, "ada", 5)
    unlimited = {name: value for name, value in body.items() if name != "max_tokens"}

    ada.ok("POST", path, unlimited)

    name = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    assert provider.last[name] == 16_384


@pytest.mark.parametrize("model", ["chatty", "thinker", "poet"])
def test_the_limit_holds_between_wires(served: Served, provider: Provider, model: str) -> None:
    ada = rich(served, "ada", 5)

    ada.ok("POST", "/v1/messages", {"model": model, "messages": ASKED["messages"]})

    assert 16_384 in (provider.last.get("max_output_tokens"), provider.last.get("max_tokens"))


def test_several_answers_are_reserved_for_each(served: Served, provider: Provider) -> None:
    ada = rich(served, "ada", 5)

    refused = ada("POST", PATH, {**TWO_DOLLARS, "n": 3})

    assert refused.status == 402
    assert "up to 6.00 dollars" in refused.body["error"]["message"]
    assert provider.bodies == []


@pytest.mark.parametrize("value", [0, -1, 2.5, "many", True, 10**30])
def test_a_limit_that_is_none_is_refused(served: Served, value: Any) -> None:
    ada = rich(served, "ada", 5)

    assert ada("POST", PATH, {**ASKED, "max_tokens": value}).status == 400
    assert ada("POST", PATH, {**ASKED, "n": value}).status == 400


def test_an_image_is_not_reserved_by_its_bytes(served: Served) -> None:
    ada = rich(served, "ada", 0.5)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 3_000_000}}

    ada.ok("POST", PATH, {**ASKED, "messages": [{"role": "user", "content": [image]}]})


@pytest.mark.parametrize(
    "body",
    [
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "document", "source": {"type": "content", "content": [PICTURE] * 100}}
                    ],
                }
            ]
        },
        {"input": [{"type": "computer_call_output", "output": SCREENSHOT}] * 100},
    ],
)
def test_pictures_are_counted_wherever_they_are(body: dict[str, Any]) -> None:
    assert prompt_bound(body, len(json.dumps(body)), "big-1") >= 100 * IMAGE_TOKENS


def test_a_model_without_a_price_is_not_for_who_has_a_limit(served: Served, provider: Provider) -> None:
    ada = rich(served, "ada", 5)
    asked = {**ASKED, "model": "unpriced"}

    refused = ada("POST", PATH, asked)

    assert (refused.status, refused.body["error"]["code"]) == (403, "no_price")
    assert "proctor wallet price unpriced" in refused.body["error"]["message"]
    _, inside = in_run(served, "root", max_cost=10**6)
    assert inside("POST", PATH, asked).status == 403
    assert provider.bodies == []
    served.root.ok("PUT", "/prices/unpriced", {"input_usd_per_million": 0, "output_usd_per_million": 0})
    assert ada("POST", PATH, asked).status == 200


# Without a usage


@pytest.mark.parametrize("usage", [None, {}])
@pytest.mark.parametrize(("path", "model", "body"), WIRES)
def test_an_answer_without_a_usage_is_not_free(
    served: Served, provider: Provider, path: str, model: str, body: dict[str, Any], usage: Any
) -> None:
    ada, bob = rich(served, "ada", 5), served.user("bob")
    provider.usage = usage

    for api in (ada, bob):
        for asked in ("chatty", "thinker", "poet"):
            api.ok("POST", path, {**body, "model": asked})

    for api in (ada, bob):
        used = use(api)
        assert {each["estimated_requests"] for each in used.values()} == {1}
        assert all(each["cost_usd"] > 0 for each in used.values())
    assert use(ada)[model]["cost_usd"] > 50 * 5 / 1e6  # all that was reserved
    assert len(rows(served, reservations)) == 0


def test_a_stream_without_a_usage_takes_what_was_reserved(served: Served, provider: Provider) -> None:
    ada = rich(served, "ada", 5)
    provider.usage = None

    streamed(ada, PATH, {**ASKED, "max_tokens": 1000})

    used = use(ada)["chatty"]
    assert used["estimated_requests"] == 1
    assert 1000 * 5 / 1e6 < used["cost_usd"] < 2 * 1000 * 5 / 1e6
    assert ada.get("/balance")["held_usd"] == 0


def test_a_stream_that_breaks_off_takes_what_came_of_it(served: Served, provider: Provider) -> None:
    ada = rich(served, "ada", 5)
    provider.breaks_off = True

    streamed(ada, PATH, {**ASKED, "max_tokens": 1000})

    used = use(ada)["chatty"]
    assert used["estimated_requests"] == 1
    assert 2 * 5 / 1e6 < used["cost_usd"] < 100 * 5 / 1e6
    assert ada.get("/balance")["held_usd"] == 0


def test_a_usage_below_zero_gives_no_money_back(served: Served, provider: Provider) -> None:
    ada = rich(served, "ada", 5)
    provider.usage = {"prompt_tokens": -(10**9), "completion_tokens": 10}

    ada.ok("POST", PATH, ASKED)

    assert ada.get("/balance")["balance_usd"] < 5


def test_a_call_is_booked_once_under_the_id_it_was_reserved_by(served: Served) -> None:
    ada = rich(served, "ada", 5)

    answers = ask_at_once(ada, {**ASKED, "max_tokens": 200}, 20)

    assert {answer.status for answer in answers} == {200}
    assert len({row.id for row in rows(served, calls)}) == 20
    assert ada.get("/balance")["balance_usd"] == pytest.approx(5 - 20 * COST)
    assert json.dumps(rows(served, reservations)) == "[]"
