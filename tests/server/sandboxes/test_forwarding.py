"""Sandboxes behind a load balancer: any server answers for them, one has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.server.empty_database import create_postgres
from tests.server.postgres import Cluster
from tests.server.sandboxes.playing import a_run
from tests.server.sandboxes.test_instances import SOCKET
from tests.server.serving import Api, Served, serving_two

pytestmark = pytest.mark.usefixtures("sandboxes")


@pytest.fixture
def servers(
    tmp_path: Path, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Served, Served]]:
    with serving_two(tmp_path, create_postgres(postgres), monkeypatch) as both:
        yield both


def test_a_sandbox_is_used_through_any_server_and_made_by_one(servers: tuple[Served, Served]) -> None:
    one, other = servers
    here = a_run(one, sandboxes=True, instances=True)
    there = Api(other.url, here.token)

    made = [run.post("/sandboxes", {}, **{"idempotency-key": "k"}) for run in (here, there)]
    assert made[0]["id"] == made[1]["id"]
    box = made[0]["id"]
    assert there("PUT", f"/sandboxes/{box}/files/word", data=b"basil").status < 300
    ran = there.post(f"/sandboxes/{box}/exec", {"command": "cat word"})
    assert (ran["code"], ran["output"]) == (0, "basil")
    assert there("GET", f"/sandboxes/{box}/files/word").body == "basil"
    assert there("GET", f"/sandboxes/{box}/files/none").status == 404
    assert Api(other.url)("GET", f"/sandboxes/{box}").status == 401

    program = {"files": {"main.py": SOCKET}, "command": ["python3", "main.py"], "port": 8000}
    instance = here.post("/instances", program)
    assert instance["status"] == "ready", instance

    async def talk() -> str:
        headers = {"authorization": f"Bearer {here.token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(other.url + instance["url"] + "chat", headers=headers) as socket,
        ):
            await socket.send_str("hello")
            return str((await socket.receive(20)).data)

    assert asyncio.run(talk()) == "HELLO"
    there.ok("DELETE", f"/sandboxes/{box}")
    assert here.get(f"/sandboxes/{box}")["status"] == "ended"
    assert here("POST", f"/sandboxes/{box}/exec", {"command": "true"}).status == 409
