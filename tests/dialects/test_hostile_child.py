"""Whatever the process of a foreign environment sends: one sentence, no hanging, and the next call works."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.dialects import inside, process
from proctor.dialects.environment import ForeignEnvironment
from proctor.dialects.process import ChildCommand, ForeignProcess, refuse_requests
from proctor.errors import ConfigError, EnvError

CHILD = Path(__file__).with_name("hostile_child.py")
SMALL = 300_000
"""A limit that the child's flood exceeds, and its nested message does not."""


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "LARGEST_LINE", SMALL)


def command(**params: Any) -> ChildCommand:
    return ChildCommand(name="moon", python=Path(sys.executable), dialect_file=CHILD, params=params)


@pytest.mark.parametrize(
    ("misdeed", "sentence"),
    [
        ("garbage", "moon sent what cannot be read"),
        ("wrong_types", "moon sent what cannot be read"),
        ("nesting", "moon (sent|answered) what cannot be read"),
        ("nested_request", "moon sent what cannot be read"),
        ("half", "the process of moon ended with exit code 3|exited with"),
        ("flood", "moon sent a message over the limit of 300,000 bytes"),
    ],
)
def test_a_call_that_is_answered_with_nonsense_fails_and_the_next_one_has_a_new_process(
    misdeed: str, sentence: str
) -> None:
    async def play() -> None:
        child = ForeignProcess(command(), refuse_requests)
        try:
            with pytest.raises(EnvError, match=sentence):
                async with asyncio.timeout(60):
                    await child.call(misdeed)
            assert await child.call("echo", text="still there") == "still there"
        finally:
            await child.close()

    asyncio.run(play())


def test_a_silent_call_can_be_given_up_and_leaves_the_process_usable() -> None:
    async def play() -> None:
        child = ForeignProcess(command(), refuse_requests)
        try:
            await child.call("echo", text="warm")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await child.call("silence")
            assert await child.call("echo", text="still there") == "still there"
        finally:
            await child.close()

    asyncio.run(play())


def test_a_line_of_output_without_an_end_is_cut_into_pieces() -> None:
    async def play() -> None:
        child = ForeignProcess(command(), refuse_requests)
        try:
            assert await child.call("chatter") == "said"
            started = child._child
            assert started is not None
            async with asyncio.timeout(30):
                while not started.last_lines:
                    await asyncio.sleep(0.01)
            assert len(started.last_lines[0]) <= process.LONGEST_OUTPUT_LINE
        finally:
            await child.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("misdeed", "sentence"),
    [
        ("garbage", "moon sent what cannot be read"),
        ("nesting", "moon (sent|answered) what cannot be read"),
        ("half", "the process of moon"),
        ("flood", "over the limit of 300,000 bytes"),
        ("death", "cannot find the key of the moon"),
    ],
)
def test_one_that_misbehaves_while_it_is_loaded_is_refused_and_killed(misdeed: str, sentence: str) -> None:
    child = ForeignProcess(command(at_load=misdeed), refuse_requests)
    with pytest.raises(ConfigError, match=sentence):
        child.start()
    assert child._child is None


def test_one_that_never_answers_while_it_is_loaded_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LOADING_SECONDS", 0.5)
    child = ForeignProcess(command(at_load="silence"), refuse_requests)
    with pytest.raises(ConfigError, match=r"moon took more than 0\.5 s to answer 'load'"):
        child.start()


def list_command_lines() -> list[bytes]:
    """Of everything that runs on this machine."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_bytes())
    return found


def test_a_description_of_the_wrong_shape_is_the_environments_error(tmp_path: Path) -> None:
    odd = tmp_path / "odd.py"
    odd.write_text(
        "class Odd:\n    def describe(self): return {'size': 'many'}\ndef load(params, host): return Odd()\n"
    )
    with pytest.raises(EnvError, match="something unexpected"):
        ForeignEnvironment("moon", msgspec.structs.replace(command(), dialect_file=odd))
    assert not [words for words in list_command_lines() if str(odd).encode() in words]
