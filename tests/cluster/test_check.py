"""`proctor cluster check`: which nodes could work for this machine, and what the others lack."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from proctor import ConfigError, __version__
from proctor.cluster.check import check_nodes, judge, listening
from proctor.cluster.connect import ClusterError
from proctor.cluster.messages import ClusterNode, NodeProbe
from tests.waiting import SECONDS

NODE = ClusterNode(id="a", host="10.0.0.1", name="a", is_alive=True, is_head=False, total={}, free={})
SOUND = NodeProbe(
    python=platform.python_version(), ray="2", proctor=__version__, cryptography=True, bubblewrap="0.8"
)


@pytest.mark.parametrize(
    ("lacks", "problem"),
    [
        ({"python": "3.8.1"}, f"Python is 3.8.1 there and {platform.python_version()} here"),
        ({"proctor": ""}, "Proctor is not installed for Ray's Python"),
        ({"proctor": "0.0.9"}, f"Proctor is 0.0.9 there and {__version__} here"),
        ({"cryptography": False}, "cryptography is not installed (`pip install 'proctor[ray]'`)"),
        ({"route": "timed out"}, "no route to this machine (timed out)"),
    ],
)
def test_what_a_node_lacks_is_named(lacks: Mapping[str, Any], problem: str) -> None:
    report = judge(NODE, replace(SOUND, **lacks))

    assert report.problems == (problem,)
    assert not report.could_work


def test_a_node_without_bubblewrap_could_work_without_sandboxes() -> None:
    report = judge(NODE, replace(SOUND, bubblewrap=""))

    assert report.could_work
    assert report.warnings == ("no bubblewrap, so no sandboxes",)


async def ask(host: str, port: int, nonce: str) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"{nonce}\n".encode())
    async with asyncio.timeout(SECONDS):
        said = await reader.read(10)
    writer.close()
    return said


class ThreeNodes:
    """A cluster of a node that reaches this machine, one that Ray has lost, and one that does not answer."""

    connected = SimpleNamespace(host="127.0.0.1")

    async def nodes(self) -> list[ClusterNode]:
        return [NODE, replace(NODE, id="b", is_alive=False), replace(NODE, id="c")]

    async def probe(self, node_id: str, host: str, port: int, nonce: str) -> NodeProbe:
        if node_id != "a":
            raise ClusterError("no answer in 30 s")
        return replace(SOUND, route="" if await ask(host, port, nonce) == b"ok" else "refused")


def test_every_node_is_reported_also_one_that_is_lost_or_silent() -> None:
    cluster: Any = ThreeNodes()

    reports = asyncio.run(check_nodes(cluster))

    assert [report.problems for report in reports] == [
        (),
        ("Ray has lost it",),
        ("it did not answer: no answer in 30 s",),
    ]


def test_a_stranger_learns_nothing_from_the_port_that_nodes_knock_at() -> None:
    async def knock() -> bytes:
        async with listening("127.0.0.1", 0, "right") as port:
            return await ask("127.0.0.1", port, "wrong")

    assert asyncio.run(knock()) == b""


def test_an_address_that_is_not_this_machines_is_refused() -> None:
    cluster: Any = ThreeNodes()

    with pytest.raises(ConfigError, match=r"Cannot listen at 192\.0\.2\.1:0"):
        asyncio.run(check_nodes(cluster, listen="192.0.2.1"))
