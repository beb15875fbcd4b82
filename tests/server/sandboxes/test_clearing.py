"""What a killed server leaves: found by the folder it lies in, or by the server's id."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Row

from proctor.errors import InfraError
from proctor.server.db.database import Database
from proctor.server.people.tokens import Caller
from proctor.server.sandboxes import records
from proctor.server.sandboxes.backend import SandboxSpec
from proctor.server.sandboxes.bubblewrap import BubblewrapBackend

SPEC = SandboxSpec(memory_mb=512, processes=32, disk_mb=4)
DAY = 86_400.0


@pytest.mark.usefixtures("shared")
def test_a_sandbox_that_outlived_its_server_is_ended_and_others_are_left_alone(tmp_path: Path) -> None:
    async def play() -> None:
        left, other = BubblewrapBackend(tmp_path / "left"), BubblewrapBackend(tmp_path / "left-alone")
        orphan, stranger = await left.open(SPEC), await other.open(SPEC)
        async with orphan.open_command(["cat"]) as ours, stranger.open_command(["cat"]) as theirs:
            await BubblewrapBackend(tmp_path / "left").clear()
            with pytest.raises(InfraError):
                await ours.wait()
            theirs.stdin.close()
            assert await theirs.wait() == 0
        assert not left.folder.exists()
        await stranger.close()

    asyncio.run(asyncio.wait_for(play(), 20))


def test_a_server_ends_its_own_places_and_none_of_others_on_its_database(database: Database) -> None:
    made = {server: database.write_now(place_of, server).id for server in ("one", "two")}

    assert set(database.read_now(records.find_overdue, "one", time.time() + DAY)) == {made["one"]}
    assert database.write_now(records.end_all, "one", "Over.") == {"docker"}
    assert database.read_now(records.list_alive_ids) == {made["two"]}


def place_of(connection: Connection, server: str) -> Row[Any]:
    caller = Caller(user="ada", token_id="t")
    return records.add_record(
        connection, caller, "session", server=server, backend="docker", spec={}, minutes=1, at_once=9
    )
