"""What a workspace's commands may use by default, and what happens when they use more."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.env.templates import Environment
from proctor.errors import ConfigError
from proctor.isolation.machine import default_limits, describe_limits
from proctor.rollout import Rollout
from proctor.trace import text_of
from tests.env.playing import reward

if TYPE_CHECKING:
    from tests.conftest import Ran

Yields = AsyncGenerator[Any, str]
Work = Callable[..., list[Rollout]]

GROWING = "while :; do head -c 500000 /dev/zero >> big; sleep 0.01; done"


def shop(**settings: Any) -> Environment:
    env = Environment("limited")
    place = env.workspace(**{"seconds": 30, **settings})

    @env.template()
    async def work() -> Yields:
        yield "Work."
        yield await place.check("true", expected="")

    work()
    return env


def tool_results(rollout: Rollout) -> list[str]:
    return [text_of(message) for message in rollout.trace.completion if message["role"] == "tool"]


def test_every_limit_has_a_default_that_fits_the_machine() -> None:
    (spec,) = shop().workspaces
    limits = spec.limits

    assert limits == default_limits()
    assert limits.data_mb is not None
    assert limits.disk_mb is not None
    assert limits.processes is not None
    assert limits.data_mb >= 512
    assert 256 <= limits.disk_mb <= 10_240
    assert 256 <= limits.processes <= 4_096


def test_an_author_sets_limits_or_none_and_an_operator_others() -> None:
    (spec,) = shop(memory_mb=100, processes=None, file_mb=5, disk_mb=7).workspaces
    sized = default_limits({"PROCTOR_WORKSPACE_MEMORY_MB": "300", "PROCTOR_WORKSPACE_DISK_MB": "9"})

    assert (spec.limits.memory_mb, spec.limits.data_mb) == (100, None)
    assert (spec.limits.processes, spec.limits.file_mb, spec.limits.disk_mb) == (None, 5, 7)
    assert (sized.data_mb, sized.disk_mb) == (300, 9)
    with pytest.raises(ConfigError, match="PROCTOR_WORKSPACE_PROCESSES is 'many'"):
        default_limits({"PROCTOR_WORKSPACE_PROCESSES": "many"})


@pytest.mark.usefixtures("sandboxes")
def test_a_process_that_wants_more_memory_than_it_may_have_fails(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_WORKSPACE_MEMORY_MB", "64")

    (rollout,) = work(shop(), "python3 -c 'x = bytearray(200_000_000)'; echo code $?")

    assert "MemoryError" in tool_results(rollout)[0]


@pytest.mark.usefixtures("sandboxes")
@pytest.mark.parametrize("isolation", ["bwrap", "none"])
def test_a_command_that_fills_the_disk_is_ended_and_space_that_is_freed_counts_again(
    isolation: str, work: Work
) -> None:
    env = shop(disk_mb=4, isolation=isolation)
    writes = "head -c 2000000 /dev/zero > more && echo written"

    (rollout,) = work(env, GROWING, writes, "rm big", writes)

    ended, refused, _, written = tool_results(rollout)
    assert "more than 4 MB" in ended
    assert "written" not in refused.replace("can be written", "")
    assert written == "written"
    assert reward(rollout) == 1.0


@pytest.mark.usefixtures("sandboxes")
def test_the_report_says_what_workspaces_may_use(tmp_path: Path, proctor: Callable[..., Ran]) -> None:
    (tmp_path / "limited.py").write_text(
        "from proctor import Environment\nenv = Environment('limited')\nwork = env.workspace(disk_mb=77)\n"
        "@env.template()\nasync def task():\n    yield 'Go.'\n    yield 1.0\ntasks = [task()]\n"
    )

    ran = proctor("eval", "run", str(tmp_path / "limited.py"), "-m", "scripted")

    (line,) = [line for line in ran.stdout.splitlines() if line.split()[:1] == ["workspace"]]
    assert "MB of memory per process, 77 MB of disk" in line
    assert describe_limits(default_limits()).split(", ")[0] in line
