"""The commands about runs against the real server: what the double promises is what the server does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.server.runs import making
from tests.server.serving import Served, serving, settings_in

Command = Callable[..., Ran]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    registry = tmp_path / "registry.toml"
    registry.write_text('[[endpoint]]\nendpoint_id = "tiny"\nmodel = "tiny"\nurl = "http://127.0.0.1:9/v1"\n')
    with serving(settings_in(tmp_path, endpoints=registry)) as running:
        yield running


@pytest.fixture
def evals(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """`proctor eval …` as ada, in this process."""
    from proctor.cli.app import run as run_proctor

    monkeypatch.setenv("PROCTOR_API_URL", served.url)
    monkeypatch.setenv("PROCTOR_API_KEY", served.user("ada").token)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Ran:
        with pytest.raises(SystemExit) as left:
            run_proctor(["eval", *words])
        told = capsys.readouterr()
        return Ran(int(left.value.code or 0), told.out, told.err, tmp_path)

    return run


@pytest.fixture
def pushed(evals: Command, proctor: Command, served: Served) -> dict[str, Any]:
    """A run of here that was pushed, as the server tells of it."""
    words = ("eval", "run", "echo", "-m", "scripted", "-n", "3", "-r", "2", "--json")
    folder = proctor(*words).folder
    told = evals("push", str(folder), "--json")
    assert told.code == 0, told.stderr
    run: dict[str, Any] = json.loads(told.stdout)["pushed"][0]["run"]
    return run


def test_a_pushed_run_is_there_whole_and_only_once(evals: Command, pushed: dict[str, Any]) -> None:
    assert (pushed["status"], pushed["progress"]["scored"]) == ("finished", 6)
    again = json.loads(evals("push", "latest", "--json").stdout)["pushed"][0]["run"]
    assert (again["id"], again["progress"]["settled"]) == (pushed["id"], 6)
    (listed,) = json.loads(evals("list", "--mine", "--kind", "local", "--json").stdout)["runs"]
    assert listed["id"] == pushed["id"]


def test_a_pushed_run_is_read_in_every_way(evals: Command, pushed: dict[str, Any]) -> None:
    run_id = pushed["id"]
    assert "6 of 6 rollouts scored (100.0%)" in evals("info", run_id).stdout
    assert json.loads(evals("info", run_id, "--json").stdout)["resolved"]["tasks"] == 3
    assert "STATUS finished" in evals("logs", run_id, "-f").stdout
    assert evals("samples", run_id, "--task", "0", "--json").stdout.count('"example_id": 0') == 2
    assert len(evals("export", run_id, "--format", "csv").stdout.splitlines()) == 7
    assert evals("wait", run_id).code == 0
    assert evals("delete", run_id, "--yes").code == 0
    assert evals("info", run_id).code == 2


def test_a_run_is_uploaded_live(
    evals: Command, proctor: Command, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = proctor("eval", "run", "echo", "-m", "scripted", "-n", "3", "-r", "1", "--upload")
    assert "Uploaded as run-" in done.stderr
    (listed,) = json.loads(evals("list", "--json").stdout)["runs"]
    assert (listed["status"], listed["progress"]["scored"]) == ("finished", 3)


def test_a_hosted_run_waits_in_the_queue_with_all_that_was_asked_for(evals: Command, served: Served) -> None:
    served.platform.database.write_now(lambda connection: making.environment(connection))
    words = ("ada/sums", "-m", "tiny", "-n", "2", "--hosted", "--eval-name", "nightly", "--json")
    done = evals("run", *words, "--allow-network-access", "--custom-secrets", '{"KEY": "s3cret"}')
    assert done.code == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["environment"], run["version"], run["model"]) == ("ada/sums", "1.0", "tiny")
    assert (run["status"], run["name"], run["settings"]) == ("pending", "nightly", {"num_examples": 2})
    assert run["permissions"] == {"sandboxes": False, "instances": False, "network": True}
    assert json.loads(done.stdout)["estimates"][0]["rollouts"] == 6
    again = evals("run", "ada/none", "-m", "tiny", "--hosted")
    assert (again.code, again.stdout) == (2, "")


def test_an_environment_that_is_only_here_is_told_how_to_publish_it(evals: Command, tmp_path: Path) -> None:
    (tmp_path / "environments" / "my_env").mkdir(parents=True)
    (tmp_path / "suite.toml").write_text('model = "tiny"\n[[eval]]\nid = "my-env"\n[[eval]]\nid = "none"\n')

    for words in (("my-env", "-m", "tiny"), ("suite.toml",)):
        done = evals("run", *words, "--hosted")
        assert done.code == 2
        assert done.stderr.endswith("Publish what is only on this machine with `proctor env push my-env`.\n")
    assert "Publish" not in evals("run", "none", "-m", "tiny", "--hosted").stderr


def test_a_pending_run_is_followed_until_somebody_stops_it(evals: Command, served: Served) -> None:
    def make(connection: Any) -> str:
        making.environment(connection)
        return making.run(connection)

    run_id = served.platform.database.write_now(make)
    stopper = threading.Timer(0.5, lambda: served.root.post(f"/runs/{run_id}/stop", {"reason": "enough"}))
    stopper.start()
    done = evals("wait", run_id)
    stopper.join()
    assert done.code == 5
    assert "enough" in done.stdout
