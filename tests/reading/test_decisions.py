"""Gate, plan, history, labelling and agreement, read from a folder and from a server: the same answers, and
those of the command line's functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from proctor.comparison.agreement import examine_judge
from proctor.comparison.design import DesignGoal, design_evaluation, measure_cost
from proctor.comparison.gate import GateInput, decide_gate
from proctor.comparison.gate_policy import parse_policy
from proctor.config.toml_file import parse_toml
from proctor.rollout import RolloutKey
from proctor.store.labels import Label, append_labels, list_for_labelling
from proctor.store.recorded import StoredPlays
from proctor.store.scores import read_rollout_scores, read_scores, read_summary
from tests.reading.conftest import Play
from tests.reading.stores import FolderStore, Reply, ServerStore, Store
from tests.server.serving import serving, settings_in

POLICY = """
min_coverage = 0.5

[[rules]]
measure = "reward"
at_least = 0.6

[[rules]]
measure = "reward"
max_drop = 0.4

[[rules]]
measure = "seconds_max"
at_most = 600
"""
LABELS: dict[RolloutKey, float] = {(0, 0): 1.0, (0, 1): 1.0, (1, 0): 0.0, (1, 1): 0.0, (3, 0): 1.0}


class Opened(NamedTuple):
    """Three runs in a store: the second is the first scored again, the third another model's."""

    store: Store
    folders: list[Path]
    ids: list[str]

    def ask(self, path: str, **query: Any) -> Reply:
        for place, name in enumerate(("FIRST", "AGAIN", "OTHER")):
            path = path.replace(name, self.ids[place])
            query = {key: self.ids[place] if value == name else value for key, value in query.items()}
        return self.store.get(path, query)

    def get(self, path: str, **query: Any) -> Any:
        reply = self.ask(path, **query)
        assert reply.status == 200, reply
        return reply.body


@pytest.fixture(scope="module")
def folders(play: Play, outputs: Path) -> list[Path]:
    script = {"say 1": ["say 1", "wrong"], "say 3": "no"}
    first, again, other = play(outputs, script), play(outputs, script), play(outputs, {}, model="local")
    metadata = json.loads((again / "metadata.json").read_bytes())
    metadata["origin"] = {"kind": "rescore", "run_id": first.name, "folder": str(first)}
    (again / "metadata.json").write_text(json.dumps(metadata))
    return [first, again, other]


@pytest.fixture(scope="module", params=["folders", "sqlite"])
def opened(
    request: pytest.FixtureRequest,
    folders: list[Path],
    outputs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Opened]:
    if request.param == "folders":
        (folders[0] / "labels.jsonl").unlink(missing_ok=True)
        append_labels(folders[0], list_labels("maria") + list_labels("ben")[:3])
        yield Opened(FolderStore(outputs), folders, [folder.name for folder in folders])
        return
    with serving(settings_in(tmp_path_factory.mktemp("server"))) as server:
        ada = server.user("ada")
        store = ServerStore(ada)
        ids = [store.upload(folder) for folder in folders]
        ada.post(f"/runs/{ids[0]}/labels", {"labels": [as_new(each) for each in list_labels("ada")]})
        yield Opened(store, folders, ids)


def list_labels(person: str) -> list[Label]:
    return [
        Label(example_id=task, rollout=number, person=person, score=score, at=1.0)
        for (task, number), score in LABELS.items()
    ]


def as_new(label: Label) -> dict[str, Any]:
    return {"example_id": label.example_id, "rollout": label.rollout, "score": label.score}


def plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def test_a_gate_decides_as_the_command_does_rule_by_rule(opened: Opened) -> None:
    first, _, other = opened.folders
    given = GateInput(
        candidate=[read_scores(first, opened.ids[0])],
        summaries=[read_summary(first)],
        baseline=[read_scores(other, opened.ids[2])],
    )
    expected = plain(decide_gate(parse_policy(parse_toml(POLICY, Path("policy"))), given))

    found = opened.get("/runs/FIRST/gate", policy=POLICY, baseline="OTHER")

    assert found["comparison"].pop("tasks") == []
    expected["comparison"].pop("tasks")
    assert found == expected
    assert [rule["outcome"] for rule in found["rules"]][-1] == "PASS"


def test_an_open_rule_says_what_to_plan_for(opened: Opened) -> None:
    rule = opened.get("/runs/FIRST/gate", policy='rules = [{measure = "reward", at_least = 0.6}]')["rules"][0]

    assert rule["outcome"] == "INCONCLUSIVE"
    assert rule["goal"]["kind"] == "halfwidth"
    assert rule["goal"]["amount"] == pytest.approx(
        abs(opened.get("/runs/FIRST/summary")["reward"]["mean"] - 0.6)
    )


def test_a_policy_that_makes_no_sense_is_refused_by_line(opened: Opened) -> None:
    broken = opened.ask("/runs/FIRST/gate", policy="[[rules]\n")
    unknown = opened.ask("/runs/FIRST/gate", policy='[[rules]]\nmeasure = "reward"\natleast = 1\n')
    itself = opened.ask("/runs/FIRST/gate", policy=POLICY, baseline="FIRST")
    nowhere = opened.ask("/runs/FIRST/gate", policy=POLICY, baseline="run-nowhere")
    long = opened.ask("/runs/FIRST/gate", policy="#" * 9_000)

    assert broken.status == unknown.status == itself.status == long.status == 422
    assert "policy:1: this is not valid TOML" in broken.body["message"]
    assert "policy:3: a rule has no 'atleast'; did you mean 'at_least'" in unknown.body["message"].lower()
    assert unknown.body["details"]["field"] == "policy"
    assert nowhere.status == 404


def test_a_plan_is_the_commands_plan(opened: Opened) -> None:
    first, _, other = opened.folders
    cost = measure_cost([read_summary(first)])
    goal = DesignGoal(kind="difference", amount=0.1, power=0.9)
    expected = design_evaluation(
        [read_scores(first, opened.ids[0])], [read_scores(other, opened.ids[2])], cost, goal
    )

    found = opened.get("/runs/FIRST/plan", difference=0.1, power=0.9, against="OTHER")

    assert found == plain(expected)
    assert opened.get("/runs/FIRST/plan")["goal"]["kind"] == "rollouts"


def test_two_goals_and_impossible_ones_are_refused(opened: Opened) -> None:
    two = opened.ask("/runs/FIRST/plan", halfwidth=0.1, budget=1)
    money = opened.ask("/runs/FIRST/plan", budget=1)
    negative = opened.ask("/runs/FIRST/plan", halfwidth=-1)

    assert two.status == money.status == negative.status == 422
    assert "two goals" in two.body["message"]
    assert "costs is nothing" in money.body["message"]


def test_a_history_has_the_runs_of_one_environment_and_model(opened: Opened) -> None:
    found = opened.get("/runs/FIRST/history")

    assert found["by"] == "environment"
    assert {run["id"] for run in found["items"]} == set(opened.ids[:2])
    assert found["items"][0]["score"] == opened.get("/runs/FIRST")["score"]
    assert opened.get("/runs/FIRST/history", limit=1)["total"] == 2


def test_runs_that_were_scored_again_are_found_by_their_source(opened: Opened) -> None:
    names = [opened.ids[0], opened.folders[0].name]

    (found,) = opened.get("/runs", rescored_from=names)["items"]

    assert found["id"] == opened.ids[1]
    assert found["rescored_from"] == opened.folders[0].name


def test_labelling_has_the_commands_order_and_no_scores(opened: Opened) -> None:
    plays = StoredPlays(opened.folders[0], {})
    expected = list_for_labelling(plays, 0)
    plays.close()
    person = "maria" if isinstance(opened.store, FolderStore) else "ada"

    everything = opened.get("/runs/FIRST/labelling")
    left = opened.get("/runs/FIRST/labelling", person=person)
    own = opened.get("/runs/FIRST/labelling", person=person, only="all", limit=200)

    assert [(each["example_id"], each["rollout"]) for each in everything["items"]] == expected
    assert all(each["score"] is None for each in everything["items"])
    open_keys = [key for key in expected if key not in LABELS]
    assert [(each["example_id"], each["rollout"]) for each in left["items"]] == open_keys
    assert (left["total"], left["labelled"]) == (8, 5)
    given = {
        (each["example_id"], each["rollout"]): each["score"] for each in own["items"] if each["is_labelled"]
    }
    assert given == LABELS
    assert opened.get("/runs/FIRST/labelling", seed=1)["items"] != everything["items"]


def test_a_blind_rollout_has_the_conversation_and_nothing_that_sways(opened: Opened) -> None:
    item = opened.get("/runs/FIRST/labelling")["items"][0]

    found = opened.get(f"/runs/FIRST/rollouts/{item['key']}/{item['rollout']}/blind")

    task = item["example_id"]
    assert found["prompt"][-1] == {"role": "user", "text": f"say {task}", "left_out": 0}
    assert found["completion"][0]["role"] == "assistant"
    assert found["answer"] == f"say {task}"
    assert set(found) == {"prompt", "completion", "answer", "left_out"}


def test_agreement_is_the_commands(opened: Opened) -> None:
    people = {"maria": LABELS, "ben": dict(list(LABELS.items())[:3])}
    if isinstance(opened.store, ServerStore):
        people = {"ada": LABELS}
    expected = examine_judge(read_rollout_scores(opened.folders[0]), people)

    found = opened.get("/runs/FIRST/agreement")

    assert found == plain(expected)
    assert found["corrected"]["mean"] is not None
    assert opened.get("/runs/AGAIN/agreement", labels="FIRST")["people"] == found["people"]


def test_agreement_without_labels_or_with_anothers_is_refused(opened: Opened) -> None:
    nobody = opened.ask("/runs/OTHER/agreement")
    others = opened.ask("/runs/OTHER/agreement", labels="FIRST")
    metric = opened.ask("/runs/FIRST/agreement", metric="repeat")

    assert (nobody.status, nobody.body["code"]) == (404, "no_labels")
    assert "proctor eval label" in nobody.body["message"]
    assert others.status == metric.status == 422
    assert "is not a re-score of" in others.body["message"]
    assert "did you mean" in metric.body["message"].lower()
