"""Could each node of a cluster work for this machine?

A worker needs the same Python and Proctor, and a route back to the run. Sandboxes need bubblewrap as well.
Knows nothing of tables.
"""

from __future__ import annotations

import asyncio
import platform
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

import msgspec

from proctor.cluster.connect import Cluster, ClusterError
from proctor.cluster.messages import ClusterNode, NodeProbe
from proctor.errors import ConfigError

KNOCK_SECONDS = 10.0
OWN_VERSION = version("proctor")


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """One node, and what keeps it from working."""

    node: ClusterNode
    probe: NodeProbe | None = None
    """None if it did not answer."""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def could_work(self) -> bool:
        return not self.problems


async def check_nodes(cluster: Cluster, listen: str = "", port: int = 0) -> list[NodeReport]:
    """Probe every living node, all at once; a dead one is reported as such."""
    nonce = secrets.token_hex(16)
    host = listen or cluster.connected.host
    async with listening(host, port, nonce) as bound:

        async def check(node: ClusterNode) -> NodeReport:
            if not node.is_alive:
                return NodeReport(node=node, problems=("Ray has lost it",))
            try:
                probe = await cluster.probe(node.id, host, bound, nonce)
            except ClusterError as error:
                return NodeReport(node=node, problems=(f"it did not answer: {error}",))
            return judge(node, probe)

        return list(await asyncio.gather(*map(check, await cluster.nodes())))


@asynccontextmanager
async def listening(host: str, port: int, nonce: str) -> AsyncIterator[int]:
    """Answer probes that know the nonce, as a run would."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(KNOCK_SECONDS):
                line = await reader.readline()
            if secrets.compare_digest(line.strip(), nonce.encode()):
                writer.write(b"ok")
                await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, host, port)
    except OSError as error:
        raise ConfigError(f"Cannot listen at {host}:{port}: {error.strerror or error}.") from error
    async with server:
        yield server.sockets[0].getsockname()[1]


def judge(node: ClusterNode, probe: NodeProbe) -> NodeReport:
    here = platform.python_version()
    problems, warnings = [], []
    if probe.python.split(".")[:2] != here.split(".")[:2]:
        problems.append(f"Python is {probe.python} there and {here} here")
    if not probe.proctor:
        problems.append("Proctor is not installed for Ray's Python")
    elif probe.proctor != OWN_VERSION:
        problems.append(f"Proctor is {probe.proctor} there and {OWN_VERSION} here")
    if not probe.cryptography:
        problems.append("cryptography is not installed (`pip install 'proctor[ray]'`)")
    if probe.route:
        problems.append(f"no route to this machine ({probe.route})")
    if not probe.bubblewrap:
        warnings.append("no bubblewrap, so no sandboxes")
    return NodeReport(node=node, probe=probe, problems=tuple(problems), warnings=tuple(warnings))
