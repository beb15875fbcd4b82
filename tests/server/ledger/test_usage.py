"""What was used: by model, run or user, in all or by day."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from proctor.server.ledger.calls import LedgerCall, add_calls
from proctor.trace import Usage
from tests.server.serving import Served

MONDAY = datetime(2026, 11, 16, 23, 59, 58, tzinfo=UTC).timestamp()
TUESDAY = datetime(2026, 11, 17, 0, 0, 1, tzinfo=UTC).timestamp()


def call(number: int, at: float, model: str, user: str = "ada", run: str | None = None) -> LedgerCall:
    return LedgerCall(
        id=f"call-{number}", at=at, owner="lab", user=user, run_id=run, model=model, provider="p",
        usage=Usage(10, 5), cost=250_000 if model == "big" else None,
    )  # fmt: skip


@pytest.fixture
def lab(served_on_both: Served) -> Served:
    ada = served_on_both.user("ada")
    served_on_both.user("bob")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})
    calls = [
        call(1, MONDAY, "big"),
        call(2, MONDAY, "small", "bob"),
        call(3, TUESDAY, "big", run="run-1"),
        call(4, TUESDAY, "big", "bob"),
    ]
    served_on_both.platform.database.write_now(add_calls, calls)
    return served_on_both


def read_usage(served: Served, query: str) -> list[tuple[object, ...]]:
    found = served.root.get(f"/usage?owner=lab&{query}")["items"]
    named = ("day", "model", "run", "user", "requests", "cost_usd")
    return [tuple(each[name] for name in named) for each in found]


def test_use_is_summed_by_model_as_before(lab: Served) -> None:
    assert read_usage(lab, "") == [
        (None, "big", None, None, 3, 0.75),
        (None, "small", None, None, 1, None),
    ]


def test_use_is_summed_by_day_in_utc_the_newest_first(lab: Served) -> None:
    assert read_usage(lab, "by=day&group=model") == [
        ("2026-11-17", "big", None, None, 2, 0.5),
        ("2026-11-16", "big", None, None, 1, 0.25),
        ("2026-11-16", "small", None, None, 1, None),
    ]
    assert read_usage(lab, f"by=day&group=user&since={TUESDAY}") == [
        ("2026-11-17", None, None, "ada", 1, 0.25),
        ("2026-11-17", None, None, "bob", 1, 0.25),
    ]
    assert read_usage(lab, "group=run") == [
        (None, None, None, None, 3, 0.5),
        (None, None, "run-1", None, 1, 0.25),
    ]


def test_use_is_read_page_by_page(lab: Served) -> None:
    whole = lab.root.get("/usage?owner=lab&by=day")["items"]
    seen, cursor = [], ""
    for _ in range(5):
        page = lab.root.get(f"/usage?owner=lab&by=day&limit=1{cursor}")
        seen += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == whole
    assert len(whole) == 3


def test_strangers_do_not_learn_what_a_team_used(lab: Served) -> None:
    assert lab.user("eve")("GET", "/usage?owner=lab&by=day").status == 404
    assert lab.root("GET", "/usage?group=secret").status == 422
