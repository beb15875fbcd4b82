"""What a killed server leaves: found by the folder it lies in, whoever made it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proctor.errors import InfraError
from proctor.platform.places.backend import Spec
from proctor.platform.places.bubblewrap import Bubblewrap

SPEC = Spec(memory_mb=512, processes=32, disk_mb=4)


@pytest.mark.usefixtures("shared")
def test_a_sandbox_that_outlived_its_server_is_ended_and_others_are_left_alone(tmp_path: Path) -> None:
    async def play() -> None:
        left, other = Bubblewrap(tmp_path / "left"), Bubblewrap(tmp_path / "left-alone")
        orphan, stranger = await left.open(SPEC), await other.open(SPEC)
        async with orphan.piped(["cat"]) as ours, stranger.piped(["cat"]) as theirs:
            await Bubblewrap(tmp_path / "left").clear()
            with pytest.raises(InfraError):
                await ours.wait()
            theirs.stdin.close()
            assert await theirs.wait() == 0
        assert not left.folder.exists()
        await stranger.close()

    asyncio.run(asyncio.wait_for(play(), 20))
