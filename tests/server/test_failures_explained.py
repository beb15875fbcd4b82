"""Why a hosted run did not simply finish: each cause has its code, its sentence, its next step, and the log.

One real server for all of them, with its host and its walls.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.hub.packages import made, push
from tests.server.serving import Api
from tests.server.workplace import SUMS, Workplace, workplace
from tests.waiting import wait_for

PRICED = """
[[endpoint]]
endpoint_id = "dear-parrot"
model = "dear-parrot"
type = "scripted"
url = "{slow}"
price = { input = 1000.0, output = 1000.0 }
max_output_tokens = 4

[[endpoint]]
endpoint_id = "broken-parrot"
model = "broken-parrot"
type = "scripted"
url = "{broken}"
"""
BROKEN = "import nothing_of_that_name\n\n\ndef load_environment():\n    return None\n"
SECRETIVE = SUMS.replace(
    "    print(", '    key = os.environ["SUMS_KEY"]\n    print("the key is", key)\n    print('
)
BOXED = """
from proctor import Rubric, SingleTurnEnv, sandbox


async def in_a_box(completion):
    async with sandbox() as box:
        ran = await box.run("echo 1", seconds=10)
    return float(ran.output)


def load_environment():
    return SingleTurnEnv([{"question": "say 1", "answer": "1"}], rubric=Rubric(in_a_box))
"""
GONE = "import os\n\n\ndef load_environment():\n    print('goodbye', flush=True)\n    os._exit(3)\n"
GREEDY = "def load_environment():\n    return [bytearray(2**26) for _ in range(200)]\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    folder = tmp_path_factory.mktemp("explained")
    with workplace(folder / "w", "--run-memory-mb", "512", models=PRICED) as started:
        yield started


@pytest.fixture(scope="module")
def ada(place: Workplace) -> Api:
    user = place.root.post("/users", {"name": "ada"})
    return Api(place.url, user["token"])


def published(ada: Api, folder: Path, name: str, module: str, **words: Any) -> str:
    answer = push(ada, made(folder / name, name, module=module, needs="proctor", **words))
    assert answer.status == 201, answer
    return f"ada/{name}"


def started(ada: Api, environment: str, model: str = "parrot", **words: Any) -> str:
    made_run = ada.post("/runs", {"environment": environment, "model": model, **words})
    return str(made_run["id"])


def one_by_one(tasks: int) -> dict[str, Any]:
    count = {"num_examples": tasks, "rollouts_per_example": 1, "max_concurrent": 1}
    return {**count, "env_args": {"tasks": tasks}}


def ended(ada: Api, run_id: str) -> Any:
    over = ("finished", "failed", "stopped", "timed_out")
    return wait_for(lambda: (told := ada.get(f"/runs/{run_id}"))["status"] in over and told)


def log_of(ada: Api, run_id: str) -> str:
    told = ada.get(f"/runs/{run_id}/events?limit=1000")["items"]
    return "\n".join(event.get("text", "") for event in told)


pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("explained")]


def test_an_environment_that_cannot_be_imported(ada: Api, tmp_path: Path) -> None:
    run = ended(ada, run_id := started(ada, published(ada, tmp_path, "broken", BROKEN)))
    assert (run["status"], run["cause"]["code"]) == ("failed", "environment_error")
    assert "nothing_of_that_name" in run["cause"]["message"]
    assert "push a new version" in run["cause"]["next_step"]
    assert "nothing_of_that_name" in log_of(ada, run_id)


def test_a_dependency_that_cannot_be_installed(ada: Api, tmp_path: Path) -> None:
    package = made(tmp_path / "p", "hungry", module=SUMS, needs="no-such-package-anywhere==1.0")
    assert push(ada, package).status == 201
    run = ended(ada, run_id := started(ada, "ada/hungry"))
    assert (run["status"], run["cause"]["code"]) == ("failed", "install_failed")
    assert "no-such-package-anywhere" in log_of(ada, run_id)


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_that_ends_itself(code: int, ada: Api, tmp_path: Path) -> None:
    module = GONE.replace("_exit(3)", f"_exit({code})")
    run = ended(ada, started(ada, published(ada, tmp_path, f"gone-{code}", module)))
    assert (run["status"], run["cause"]["code"]) == ("failed", "crashed")
    assert f"exit code {code}" in run["cause"]["message"]
    assert "goodbye" in run["cause"]["message"]


def test_more_memory_than_it_may_have(ada: Api, tmp_path: Path) -> None:
    run = ended(ada, started(ada, published(ada, tmp_path, "greedy", GREEDY)))
    assert run["status"] == "failed"
    assert run["cause"]["code"] in ("limit_exceeded", "environment_error")
    assert "emory" in run["cause"]["message"]


def test_a_secret_that_is_missing_is_told_by_name_and_one_that_is_there_is_not_shown(
    ada: Api, tmp_path: Path
) -> None:
    declared = '\n[tool.proctor]\nsecrets = ["SUMS_KEY"]\n'
    slug = published(ada, tmp_path, "secretive", SECRETIVE, project=declared)
    refused = ada("POST", "/runs", {"environment": slug, "model": "parrot"})
    assert (refused.status, refused.code) == (422, "missing_secret")
    assert f"`proctor secret set SUMS_KEY --env {slug}`" in refused.body["message"]

    quiet = published(ada, tmp_path, "quiet", SECRETIVE)
    run = ended(ada, started(ada, quiet))
    assert (run["status"], run["cause"]["code"]) == ("failed", "missing_secret")
    assert "SUMS_KEY" in run["cause"]["message"]
    assert f"`proctor secret set SUMS_KEY --env {quiet}`" in run["cause"]["next_step"]

    run_id = started(ada, quiet, custom_secrets={"SUMS_KEY": "tomatoes-and-basil"})
    assert ended(ada, run_id)["status"] == "finished"
    assert "the key is [secret SUMS_KEY]" in log_of(ada, run_id)


SCORED_WITH_A_KEY = SUMS.replace("    return float(", '    os.environ["SUMS_KEY"]\n    return float(', 1)
PLAYED_WITH_A_KEY = SUMS.replace("SingleTurnEnv(rows", "Played(rows").replace(
    "\ndef load_environment",
    """
class Played(SingleTurnEnv):
    async def setup_state(self, state):
        os.environ["SUMS_KEY"]
        return state


def load_environment""",
)


@pytest.mark.parametrize(
    ("name", "module"), [("scored-with", SCORED_WITH_A_KEY), ("played-with", PLAYED_WITH_A_KEY)]
)
def test_a_secret_that_is_read_while_playing_or_scoring_is_named_before_every_rollout_is_paid_for(
    ada: Api, tmp_path: Path, name: str, module: str
) -> None:
    slug = published(ada, tmp_path, name, module)
    run_id = started(ada, slug, model="slow-parrot", settings=one_by_one(6))
    run = ended(ada, run_id)
    assert (run["status"], run["cause"]["code"]) == ("failed", "missing_secret"), run
    assert "SUMS_KEY" in run["cause"]["message"]
    assert f"proctor eval resume {run_id}" in run["cause"]["next_step"]
    assert f"`proctor secret set SUMS_KEY --env {slug}`" in run["cause"]["next_step"]
    rows = ada.get(f"/runs/{run_id}/rows")["items"]
    assert sum(len(row["model_calls"]) for row in rows) < 6
    assert {row["error"]["error"] for row in rows} == {"MissingSecretError"}

    run_id = started(ada, slug, settings=one_by_one(2), custom_secrets={"SUMS_KEY": "tomatoes-and-basil"})
    assert ended(ada, run_id)["status"] == "finished"


def test_a_permission_that_was_not_granted(ada: Api, tmp_path: Path) -> None:
    slug = published(ada, tmp_path, "boxed", BOXED)
    settings = {"num_examples": 1, "rollouts_per_example": 1}
    run = ended(ada, started(ada, slug, settings=settings))
    assert (run["status"], run["cause"]["code"]) == ("failed", "missing_permission")
    assert "--allow-sandbox-access" in run["cause"]["next_step"]
    run = ended(ada, started(ada, slug, settings=settings, permissions={"sandboxes": True}))
    assert (run["status"], run["summary"]["reward"]["mean"]) == ("finished", 1.0)


def test_a_provider_that_fails(ada: Api, tmp_path: Path) -> None:
    slug = published(ada, tmp_path, "fine", SUMS)
    run = ended(ada, started(ada, slug, "broken-parrot", settings={"num_examples": 2}))
    assert (run["status"], run["cause"]["code"]) == ("failed", "provider")
    assert "eval resume" in run["cause"]["next_step"]


def test_a_budget_that_does_not_cover_the_next_call_and_is_then_raised(ada: Api, tmp_path: Path) -> None:
    slug = published(ada, tmp_path, "costly", SUMS)
    run_id = started(ada, slug, "dear-parrot", settings=one_by_one(16), max_cost_usd=0.01)
    run = ended(ada, run_id)
    assert (run["status"], run["cause"]["code"]) == ("stopped", "budget")
    assert run["progress"]["failed"] == 0
    assert (run["cost_usd"] or 0) <= 0.01

    ada.post(f"/runs/{run_id}/resume", {"max_cost_usd": 10.0})
    run = ended(ada, run_id)
    assert (run["status"], run["progress"]["settled"]) == ("finished", 16)
    assert run["cost_usd"] == pytest.approx(16 * 0.002)


def test_a_balance_that_runs_out(place: Workplace, tmp_path: Path) -> None:
    user = place.root.post("/users", {"name": "poor"})
    poor = Api(place.url, user["token"])
    push(poor, made(tmp_path / "p", "costly", module=SUMS, needs="proctor"))
    place.root.post("/grants", {"owner": "poor", "amount_usd": 0.008})
    run = ended(poor, started(poor, "poor/costly", "dear-parrot", settings=one_by_one(30)))
    assert (run["status"], run["cause"]["code"]) == ("stopped", "balance")
    assert "grant" in run["cause"]["next_step"]
    told = poor.get("/balance")
    assert told["held_usd"] == 0
    assert told["balance_usd"] >= 0


def test_a_time_limit(place: Workplace, ada: Api, tmp_path: Path) -> None:
    slug = published(ada, tmp_path, "slow", SUMS)
    settings = {
        "env_args": {"tasks": 300},
        "num_examples": 300,
        "rollouts_per_example": 1,
        "max_concurrent": 1,
    }
    run_id = started(ada, slug, "slow-parrot", settings=settings, timeout_minutes=1)
    wait_for(lambda: ada.get(f"/runs/{run_id}")["progress"]["settled"] > 0)
    with sqlite3.connect(place.data / "proctor.db", timeout=30) as database:
        database.execute("UPDATE runs SET deadline_at = ? WHERE id = ?", (time.time() - 1, run_id))
    run = ended(ada, run_id)
    assert (run["status"], run["cause"]["code"]) == ("timed_out", "time_limit")
    assert run["progress"]["settled"] > 0
    assert "--timeout-minutes" in run["cause"]["next_step"]
