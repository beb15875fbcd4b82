"""One run, read from its folder and from a server: the same questions have the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.errors import ModelTimeoutError
from proctor.models.scripted import Step
from tests.reading.conftest import Play
from tests.reading.stores import FolderStore, Reply, ServerStore, Store
from tests.server.empty_database import create_postgres
from tests.server.serving import serving, settings_in

SCRIPT = {
    "say 1": ["say 1", "wrong"],
    "say 2": ModelTimeoutError("no answer"),
    "say 3": Step(text="something\nelse", reasoning="because"),
}
RUN_FIELDS = ("model", "status", "kind", "score", "agent", "tags", "suite", "summary")


class Opened(NamedTuple):
    """Two runs in a store."""

    store: Store
    first: str
    second: str

    def get(self, path: str, **query: Any) -> Any:
        reply = self.ask(path, **query)
        assert reply.status == 200, reply
        return reply.body

    def ask(self, path: str, **query: Any) -> Reply:
        return self.store.get(path.replace("FIRST", self.first).replace("SECOND", self.second), query)


@pytest.fixture(scope="module")
def folders(play: Play, outputs: Path) -> list[Path]:
    return [play(outputs, SCRIPT), play(outputs, {"say 0": "no"}, sampling_args={"temperature": 0.5})]


@pytest.fixture(scope="module", params=["folders", "sqlite", "postgresql"])
def opened(
    request: pytest.FixtureRequest,
    folders: list[Path],
    outputs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Opened]:
    if request.param == "folders":
        yield Opened(FolderStore(outputs), *(folder.name for folder in folders))
        return
    url = create_postgres(request.getfixturevalue("postgres")) if request.param == "postgresql" else None
    with serving(settings_in(tmp_path_factory.mktemp("server"), database=url)) as server:
        store = ServerStore(server.user("ada"))
        first, second = (store.upload(folder) for folder in folders)
        yield Opened(store, first, second)


def test_a_list_has_each_run_with_its_score_interval_and_coverage(opened: Opened) -> None:
    page = opened.get("/runs", sort="score")
    second, first = page["items"]
    assert (page["total"], page["next_cursor"]) == (2, None)
    assert (first["id"], second["id"]) == (opened.first, opened.second)
    assert first["score"]["mean"] == pytest.approx(0.5)
    assert first["score"]["coverage"] == 0.75
    assert first["score"]["interval"]["level"] == 0.95
    assert first["progress"]["mean_reward"] == first["score"]["mean"]
    assert (first["summary"], first["settings"]) == (None, {})


def test_filters_take_several_values_and_pages_go_on_where_they_ended(opened: Opened) -> None:
    assert opened.get("/runs", status=["finished", "failed"], model=["scripted"])["total"] == 2
    assert opened.get("/runs", status="running")["total"] == 0
    assert opened.get("/runs", q="SCRIPTED")["total"] == 2
    assert opened.get("/runs", until=1.0)["total"] == 0
    one = opened.get("/runs", limit=1, sort="score", descending=False)
    other = opened.get("/runs", limit=1, sort="score", descending=False, cursor=one["next_cursor"])
    assert [one["items"][0]["id"], other["items"][0]["id"]] == [opened.first, opened.second]
    assert other["next_cursor"] is None
    facets = opened.get("/runs/facets", status="running")
    assert (facets["total"], facets["status"], facets["model"]) == (
        0,
        [{"value": "finished", "count": 2}],
        [],
    )


def test_a_run_and_its_report(opened: Opened) -> None:
    run = opened.get("/runs/FIRST")
    summary = opened.get("/runs/FIRST/summary")
    assert run["summary"] == summary
    assert (summary["finished"], summary["scored"], summary["tasks"]) == (8, 6, 3)
    assert summary["pass_at_k"]["2"] == pytest.approx(2 / 3)
    assert [(error["kind"], error["count"]) for error in summary["errors"]] == [("ModelTimeoutError", 2)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"sort": "task"}, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]),
        ({"sort": "task", "descending": True, "limit": 2}, [(3, 1), (3, 0)]),
        ({"sort": "reward"}, [(1, 1), (3, 0), (3, 1), (0, 0), (0, 1), (1, 0), (2, 0), (2, 1)]),
        ({"sort": "task", "outcome": ["model_error", "timeout"]}, [(2, 0), (2, 1)]),
        ({"sort": "task", "error_kind": "ModelTimeoutError"}, [(2, 0), (2, 1)]),
        ({"sort": "task", "reward_max": 0.5}, [(1, 1), (3, 0), (3, 1)]),
        ({"sort": "task", "metric": "repeats", "metric_min": 1}, [(0, 0), (0, 1), (1, 0)]),
        ({"sort": "task", "passed": True}, [(0, 0), (0, 1), (1, 0)]),
        ({"sort": "task", "q": "SOMETHING"}, [(3, 0), (3, 1)]),
        ({"sort": "task", "q": "no answer"}, [(2, 0), (2, 1)]),
        ({"sort": "task", "offset": 7}, [(3, 1)]),
    ],
)
def test_rollouts_are_sorted_and_filtered(
    opened: Opened, query: dict[str, Any], expected: list[tuple[int, int]]
) -> None:
    page = opened.get("/runs/FIRST/rollouts", **query)
    assert [(entry["task"], entry["number"]) for entry in page["items"]] == expected
    assert page["complete"]


def test_pages_of_rollouts_are_continued_after_their_last_item(opened: Opened) -> None:
    seen: list[tuple[int, int]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = opened.get("/runs/FIRST/rollouts", sort="reward", limit=3, **cursor)
        seen += [(entry["task"], entry["number"]) for entry in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert len(seen) == len(set(seen)) == page["total"] == 8
    refused = opened.ask("/runs/FIRST/rollouts", sort="seconds", limit=3, **cursor)
    assert (refused.status, refused.body["details"]["field"]) == (422, "cursor")


def test_tasks_distribution_and_failures(opened: Opened) -> None:
    groups = opened.get("/runs/FIRST/tasks", sort="mean")["items"]
    assert [(group["task"], group["mean"], group["passed"]) for group in groups] == [
        (3, 0.0, 0),
        (1, 0.5, 1),
        (0, 1.0, 2),
        (2, None, 0),
    ]
    assert groups[1]["spread"] == pytest.approx(0.7071067)
    assert len(groups[1]["entries"]) == 2
    reward = opened.get("/runs/FIRST/distribution", of="reward")
    assert [(each["low"], each["count"]) for each in reward["bins"]] == [(0.0, 3), (1.0, 3)]
    assert (reward["n"], reward["missing"], reward["mean"]) == (6, 2, 0.5)
    (failure,) = opened.get("/runs/FIRST/failures")
    assert (failure["kind"], failure["count"], failure["message"]) == ("ModelTimeoutError", 2, "no answer")
    assert "resume" in failure["next_step"]


def test_one_rollout_in_all_its_parts(opened: Opened) -> None:
    entries = opened.get("/runs/FIRST/rollouts", sort="task")["items"]
    at = f"/runs/FIRST/rollouts/{entries[6]['key']}/0"
    view = opened.get(at)
    assert view["entry"] == entries[6]
    assert view["neighbours"]["previous_rollout"] == [entries[5]["key"], 1]
    assert view["total_events"] == len(view["events"])
    beginning = opened.get(at, most_events=1)
    assert (beginning["events"], beginning["total_events"]) == (view["events"][:1], view["total_events"])
    window = opened.get(f"{at}/events", first=1)
    assert window["items"][-1]["text"]["head"] == "something\nelse"
    assert opened.get(f"{at}/calls/0")["messages"][-1]["content"] == "say 3"
    assert opened.get(f"{at}/raw")["example_id"] == 3
    for path in (f"{at}/calls/9", f"{at}/files/0", f"{at}/images/0/0", "/runs/FIRST/rollouts/0/0"):
        assert opened.ask(path).status == 404


def test_who_reads_a_filtered_list_walks_through_that_list(opened: Opened) -> None:
    best = opened.get("/runs/FIRST/rollouts", outcome="scored", sort="reward", descending="true")["items"]
    at = f"/runs/FIRST/rollouts/{best[2]['key']}/{best[2]['number']}"
    near = opened.get(at, outcome="scored", sort="reward", descending="true")["neighbours"]
    assert near["previous_rollout"] == [best[1]["key"], best[1]["number"]]
    assert near["next_rollout"] == [best[3]["key"], best[3]["number"]]
    assert (near["place"], near["total"]) == (2, 6)
    outside = opened.get(at, outcome="model_error")["neighbours"]
    assert outside["total"] == 8


def test_search_diff_compare_and_export(opened: Opened) -> None:
    hits = opened.get("/runs/FIRST/search", q="something")
    assert hits.count('"match":"something"') == 2
    key = opened.get("/runs/FIRST/rollouts", sort="task")["items"][2]["key"]
    diff = opened.get("/diff", a=f"{opened.first}/{key}/0", b=f"{opened.first}/{key}/1")
    assert diff["a"]["entry"]["reward"] == 1.0
    compared = opened.get("/compare", run=[opened.first, opened.second])
    assert compared["base"] == opened.first
    assert compared["total"] == 4
    table = opened.get("/runs/FIRST/export", format="csv", columns=["example_id", "reward"], sort="task")
    assert table.splitlines()[:2] == ["example_id,reward", "0,1.0"]


def test_a_log_is_read_backwards_by_level_and_by_text(opened: Opened) -> None:
    whole = opened.get("/runs/FIRST/log")
    assert whole["is_complete"]
    for level in ("INFO", "ERROR"):
        lines = opened.get("/runs/FIRST/log", level=level)["items"]
        assert len(lines) <= len(whole["items"])
    assert opened.get("/runs/FIRST/log", q="nothing like it")["items"] == []


@pytest.mark.parametrize(
    ("path", "query", "named"),
    [
        ("/runs", {"limit": 10**9}, "limit"),
        ("/runs", {"sort": "scor"}, "did you mean 'score'"),
        ("/runs", {"modle": "x"}, "did you mean 'model'"),
        ("/runs", {"cursor": "bm90IG91cnM"}, "cursor"),
        ("/runs", {"since": "yesterday"}, "since"),
        ("/runs/FIRST/rollouts", {"outcome": "fine"}, "outcome"),
        ("/runs/FIRST/rollouts", {"offset": -1}, "offset"),
        ("/runs/FIRST/rollouts", {"sort": "metric"}, "metric"),
        ("/runs/FIRST/rollouts", {"cursor": "\x00"}, "cursor"),
        ("/runs/FIRST/tasks", {"limit": 0}, "limit"),
        ("/runs/FIRST/log", {"limit": 10**7}, "limit"),
        ("/runs/FIRST/search", {}, "q is required"),
        ("/runs/FIRST/export", {"columns": "rewrd"}, "rewrd"),
        ("/runs/FIRST/distribution", {"bins": 10**6}, "bins"),
        ("/diff", {"a": "x", "b": "y/z/w"}, "RUN/KEY/NUMBER"),
        ("/compare", {"run": ["none"]}, "run: expected `array` of length >= 2"),
    ],
)
def test_what_a_route_does_not_take_is_refused_by_name(
    opened: Opened, path: str, query: dict[str, Any], named: str
) -> None:
    refused = opened.ask(path, **query)
    assert refused.status == 422, refused
    assert named in refused.body["message"]


def test_a_run_or_a_sweep_that_is_not_there_is_not_found(opened: Opened) -> None:
    for path in ("/runs/none", "/runs/none/rollouts", "/runs/none/log", "/suites/none"):
        assert opened.ask(path).status == 404


def test_both_stores_describe_a_run_alike(folders: list[Path], outputs: Path, tmp_path: Path) -> None:
    here = FolderStore(outputs).get(f"/runs/{folders[0].name}").body
    with serving(settings_in(tmp_path)) as server:
        store = ServerStore(server.user("ada"))
        there = store.get(f"/runs/{store.upload(folders[0])}").body

    assert {name: here[name] for name in RUN_FIELDS} == {name: there[name] for name in RUN_FIELDS}
