"""Folders of Harbor's tasks: how they are found, what they need, how rewards are read. Needs no Docker."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.agents.resolve import create_agent
from proctor.checkup.static import find_static_problems
from proctor.dialects.harbor.environment import build_spec
from proctor.dialects.harbor.rewards import read_score
from proctor.dialects.harbor.task_folder import describe_unsupported, read_folder, resolve_variables
from proctor.env.echo import load_environment as load_echo
from proctor.errors import ConfigError, EnvError, GraderError
from proctor.optional_contracts import ChecksEnvironment
from proctor.packages.loading import dialect_of, find_environment, load

TASKS = Path(__file__).parents[1] / "interop" / "harbor" / "tasks"


def make_task(folder: Path, config: str = "") -> Path:
    for name in ("environment", "tests", "solution"):
        (folder / name).mkdir(parents=True)
    (folder / "task.toml").write_text(config)
    (folder / "instruction.md").write_text("Do it.")
    (folder / "environment/Dockerfile").write_text("FROM scratch\n")
    (folder / "tests/test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
    return folder


def test_a_task_and_a_folder_of_tasks_are_found_without_a_flag() -> None:
    for path, size in ((TASKS, 4), (TASKS / "hello", 1)):
        found = find_environment(str(path))
        dialect = dialect_of(found)
        assert dialect is not None
        assert dialect.title == "Harbor"
        assert len(list(load(found, {}).tasks())) == size


def test_a_task_is_its_instruction_and_changes_with_its_files(tmp_path: Path) -> None:
    folder = make_task(tmp_path / "job")
    before = read_folder(folder).as_task()
    assert before.prompt[0]["content"] == "Do it."
    (folder / "tests/test.sh").write_text("echo 0 > /logs/verifier/reward.txt\n")
    assert read_folder(folder).as_task().hash != before.hash


def test_limits_and_network_are_those_of_the_task(tmp_path: Path) -> None:
    config = '[environment]\ncpus = 2\nmemory = "1G"\nallow_internet = false\n'
    spec = build_spec(read_folder(make_task(tmp_path / "job", config)), "sha256:0")
    assert (spec.cpus, spec.memory, spec.network) == (2, "1024m", "none")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ('[environment]\nnetwork_mode = "allowlist"\n', "no list of hosts"),
        ("[environment]\ngpus = 1\n", "no accelerators"),
        ('[environment]\nos = "windows"\n', "containers of windows"),
        ('[verifier]\nenvironment_mode = "separate"\n', "in the agent's container only"),
        ('[[steps]]\nname = "one"\n', "several steps"),
        ('[[environment.mcp_servers]]\nname = "x"\n', "not lent to the agent"),
    ],
)
def test_what_cannot_be_played_is_said(tmp_path: Path, config: str, reason: str) -> None:
    told = describe_unsupported(read_folder(make_task(tmp_path / "job", config)))
    assert told is not None
    assert told.startswith("job cannot be played here")
    assert reason in told


def test_several_containers_are_refused(tmp_path: Path) -> None:
    folder = make_task(tmp_path / "job")
    (folder / "environment/docker-compose.yaml").write_text("services: {}\n")
    assert "several containers" in str(describe_unsupported(read_folder(folder)))
    (warning,) = [
        each for each in find_static_problems(find_environment(str(folder)), {}) if each.code == "W121"
    ]
    assert "job: docker-compose" in warning.message


def test_a_task_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"task\.toml is not valid TOML"):
        read_folder(make_task(tmp_path / "job", "= 1"))
    with pytest.raises(ConfigError, match=r"task\.toml cannot be read: .*timeout_sec"):
        read_folder(make_task(tmp_path / "other", '[agent]\ntimeout_sec = "soon"\n'))


def test_variables_come_from_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOR_TEST_KEY", "k")
    given = {"A": "${HARBOR_TEST_KEY}", "B": "${HARBOR_TEST_NONE:-there}", "C": "plain"}
    assert resolve_variables(given, "task.toml") == {"A": "k", "B": "there", "C": "plain"}
    with pytest.raises(EnvError, match="needs the variable HARBOR_TEST_NONE"):
        resolve_variables({"A": "${HARBOR_TEST_NONE}"}, "task.toml")


def test_rewards_are_read_as_harbor_reads_them() -> None:
    assert read_score(None, " 0.5\n", "").reward == 0.5
    both = read_score('{"reward": 1, "speed": 0.25}', "0", "")
    assert (both.reward, both.metrics) == (1.0, {"speed": 0.25})
    assert read_score('{"right": 0.5, "neat": 1}', None, "").reward == 0.75


@pytest.mark.parametrize(
    ("json_text", "plain_text", "reason"),
    [
        (None, "", "not a number"),
        (None, "nan", "not a number"),
        ("{", None, "not JSON"),
        ('{"reward": "1"}', None, "not a number"),
        ("{}", None, "no reward"),
        (None, None, "it printed: boom"),
    ],
)
def test_a_reward_that_is_none_is_an_error_and_not_a_zero(
    json_text: str | None, plain_text: str | None, reason: str
) -> None:
    with pytest.raises(GraderError, match=reason):
        read_score(json_text, plain_text, "boom")


def test_the_oracle_works_on_tasks_of_harbor_only() -> None:
    oracle: object = create_agent("oracle")
    assert isinstance(oracle, ChecksEnvironment)
    with pytest.raises(ConfigError, match="solutions of Harbor's tasks"):
        oracle.check(load_echo())
    oracle.check(load(find_environment(str(TASKS)), {}))
