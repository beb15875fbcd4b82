"""Harbor's task folders, played by Harbor and by Proctor in the same engine, reward by reward."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.dialects.isolated import Framework, find_python
from proctor.errors import ConfigError
from proctor.packages.loading import EnvironmentLocation
from tests.interop.conftest import Ours
from tests.interop.harbor.conftest import TASKS
from tests.interop.verifiers.answering import Message, answering, tool_call

if TYPE_CHECKING:
    from tests.conftest import Ran

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("base_image", "nothing_left")]

SECONDS = 600
ORIGINAL = Path(__file__).with_name("original.py")
HARBOR = Framework("harbor", ("harbor>=0.24,<1",), ">=3.12")
RUN = ("eval", "run")


@pytest.fixture(scope="session")
def harbor_python() -> Path:
    """The interpreter that has it; installed once, and kept in the user's cache."""
    found = EnvironmentLocation(env_id="hello", module="hello", path=TASKS / "hello", isolated=True)
    try:
        return find_python(found, HARBOR)
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("agent", ["oracle", "nop"])
def test_every_task_is_worth_what_harbor_says(
    agent: str, harbor_python: Path, proctor: Callable[..., Ran]
) -> None:
    words = [str(harbor_python), str(ORIGINAL), str(TASKS), agent]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    original: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])

    ran = proctor(*RUN, str(TASKS), agent, "-n", "-1", "-r", "1", "--json", timeout=SECONDS)

    rows = {row["example_id"]: row for row in ran.rows}
    assert set(rows) == set(original)
    for name, expected in original.items():
        if expected["rewards"] is None:
            assert rows[name]["outcome"] == "grader_error", name
            continue
        assert rows[name]["reward"] == expected["rewards"]["reward"], name
        further = {key: value for key, value in expected["rewards"].items() if key != "reward"}
        assert {key: rows[name]["metrics"][key] for key in further} == further
    assert rows["hello"]["reward"] == (1.0 if agent == "oracle" else 0.0)


def test_an_agent_of_ours_works_inside(proctor: Callable[..., Ran]) -> None:
    def answers(messages: list[Message]) -> list[str | Message]:
        if messages[-1]["role"] == "tool":
            return ["Done."]
        return [tool_call("bash", {"command": "pwd; echo 'Hello, world!' > hello.txt"})]

    with answering(answers) as url:
        words = ["-m", "m", "-b", url, "-n", "1", "-r", "2", "-w", "2", "--json"]
        ran = proctor(*RUN, str(TASKS / "hello"), "tool_loop", *words, timeout=SECONDS)

    assert ran.code == 0, ran.stderr
    assert [row["reward"] for row in ran.rows] == [1.0, 1.0]
    said = [each for row in ran.rows for each in row["completion"] if each["role"] == "tool"]
    assert all("/app" in each["content"] for each in said)


def test_an_agent_out_of_time_is_still_graded(proctor: Callable[..., Ran], tmp_path: Path) -> None:
    folder = shutil.copytree(TASKS / "hello", tmp_path / "slow")
    (folder / "solution/solve.sh").write_text("#!/bin/bash\necho 'Hello, world!' > hello.txt\nsleep 500\n")
    (folder / "task.toml").write_text("[agent]\ntimeout_sec = 3\n")
    ran = proctor(*RUN, str(folder), "oracle", "-n", "1", "-r", "1", "--json", timeout=SECONDS)
    (row,) = ran.rows
    assert (row["reward"], row["stop_condition"]) == (1.0, "agent_timeout")


def test_containers_of_a_killed_run_are_removed_by_the_next_which_goes_on(
    proctor: Callable[..., Ran], tmp_path: Path, ours: Ours
) -> None:
    root = tmp_path / "tasks"
    for name in ("one", "two", "three"):
        folder = shutil.copytree(TASKS / "hello", root / name)
        if name != "one":  # `one` ends at once; the others wait in the first run
            (folder / "task.toml").write_text('[solution.env]\nHOLD = "${PROCTOR_TEST_HOLD:-0}"\n')
            script = "#!/bin/bash\nsleep $HOLD\necho 'Hello, world!' > hello.txt\n"
            (folder / "solution/solve.sh").write_text(script)
    words = [*RUN, str(root), "oracle", "-n", "-1", "-r", "1", "-c", "3"]
    out = tmp_path / "out"
    run = subprocess.Popen(
        [sys.executable, "-m", "proctor", *words, "-o", str(out)],
        cwd=tmp_path,
        env={**os.environ, "PROCTOR_TEST_HOLD": "500"},
    )
    deadline = time.monotonic() + SECONDS
    rows: list[Path] = []
    while time.monotonic() < deadline and run.poll() is None:
        rows = [each for each in out.rglob("results.jsonl") if each.read_bytes()]
        if rows and len(ours()) == 2:
            break
        time.sleep(0.2)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert len(ours()) == 2, "the killed run could not remove them"

    again = proctor(*words, "--json", "--resume", str(rows[0].parent), timeout=SECONDS)

    assert again.code == 0, again.stderr
    assert ours() == set()
    lines = [json.loads(line) for line in rows[0].read_text().splitlines()]
    assert sorted((row["example_id"], row["reward"]) for row in lines) == [
        ("one", 1.0),
        ("three", 1.0),
        ("two", 1.0),
    ]
