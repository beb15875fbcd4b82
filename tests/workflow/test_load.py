from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.datasets.dataset import InvalidDatasetError
from proctor.errors import ConfigError
from proctor.workflow.environment import WorkflowEnvironment
from proctor.workflow.load import load_environment, reach_loopback_directly

MAIN = """
from proctor import AgentWorkflow, Grader
class Solve(AgentWorkflow):
    def run(self, ctx): ...
class Check(Grader):
    def grade(self, ctx): ...
"""


@pytest.fixture
def rollout(tmp_path: Path) -> tuple[str, str]:
    folder, dataset = tmp_path / "solve", tmp_path / "rows.jsonl"
    folder.mkdir()
    (folder / "main.py").write_text(MAIN)
    dataset.write_text("".join(f"{json.dumps({'user_prompt': str(n), 'label': 'x'})}\n" for n in range(50)))
    return str(folder), str(dataset)


def test_the_loaded_rollout_knows_its_code_its_dataset_and_its_rows(rollout: tuple[str, str]) -> None:
    folder, dataset = rollout

    environment = load_environment(folder, "main.py", dataset)

    assert isinstance(environment, WorkflowEnvironment)
    known = environment.provenance
    assert [task.id for task in environment.tasks()] == [int(row) for row in known["rows"].split(",")]
    assert (known["rollout"], known["dataset"]["rows"], known["sampling_seed"]) == ("solve", 50, 0)
    assert environment.selection == f"5 of 50 rows: a random 10% (seed 0): {known['rows']}"


def test_changed_code_has_another_hash(rollout: tuple[str, str]) -> None:
    folder, dataset = rollout
    before = load_environment(folder, "main.py", dataset).provenance["content_hash"]
    (Path(folder) / "helper.py").write_text("x = 1\n")

    assert load_environment(folder, "main.py", dataset).provenance["content_hash"] != before


def test_a_dataset_with_other_content_than_was_pinned_is_refused(rollout: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"rows\.jsonl has changed: its SHA-256 is"):
        load_environment(rollout[0], "main.py", rollout[1], sha256="0" * 64)


def test_all_problems_of_a_dataset_are_reported_before_a_run(rollout: tuple[str, str]) -> None:
    Path(rollout[1]).write_text('{"label": 1}\nnothing\n')

    with pytest.raises(InvalidDatasetError) as raised:
        load_environment(rollout[0], "main.py", rollout[1])

    first, second = raised.value.problems
    assert "jsonl:1: this row has no 'user_prompt'" in first
    assert "jsonl:2: this is not a JSON object" in second


def test_a_proxy_is_not_asked_for_the_models_address() -> None:
    behind = {"HTTP_PROXY": "http://proxy", "no_proxy": "intranet"}
    direct: dict[str, str] = {}

    reach_loopback_directly(behind)
    reach_loopback_directly(direct)

    assert behind == {"HTTP_PROXY": "http://proxy", "no_proxy": "intranet,127.0.0.1", "NO_PROXY": "127.0.0.1"}
    assert direct == {}
