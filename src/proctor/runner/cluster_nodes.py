"""Which nodes of a cluster can play runs, and which of them has room for one more.

A node is checked before it plays, and again every minute while it lacks something. Knows nothing of runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from proctor import __version__
from proctor.cluster.messages import ClusterNode, Placement, StartedProcess
from proctor.runner.node_messages import NodeGreeting
from proctor.support.logs import log
from proctor.support.processes import describe_exit, summarize_output

RECHECK_SECONDS = 60.0
SETTLING_SECONDS = 2.0
"""How long the cluster may still count resources as free that a placed process has taken."""


class PlannedProcess(NamedTuple):
    """Room on a node for a process that the cluster does not count yet."""

    node: str
    name: str


class NodeList:
    """The nodes of a cluster, as last seen."""

    def __init__(self, need: Placement, clock: Callable[[], float] = time.monotonic) -> None:
        self.need = need
        self._clock = clock
        self._nodes: dict[str, ClusterNode] = {}
        self._usable: set[str] = set()
        self._problems: dict[str, tuple[str, float]] = {}
        """Why a node cannot play, and when that was found."""
        self._reserved: dict[PlannedProcess, float | None] = {}
        """When each was placed; None while it is being placed."""

    def update(self, nodes: Sequence[ClusterNode]) -> list[ClusterNode]:
        """Take a new list; returns the nodes to check now."""
        self._nodes = {node.id: node for node in nodes if node.is_alive}
        self._usable &= self._nodes.keys()
        self._problems = {id_: found for id_, found in self._problems.items() if id_ in self._nodes}
        now = self._clock()
        self._reserved = {
            each: placed_at
            for each, placed_at in self._reserved.items()
            if placed_at is None or now - placed_at < SETTLING_SECONDS
        }
        return [node for node in self._nodes.values() if self._is_due(node, now)]

    def _is_due(self, node: ClusterNode, now: float) -> bool:
        if node.id in self._usable or not count_room(node.total, self.need):
            return False
        found = self._problems.get(node.id)
        return found is None or now - found[1] >= RECHECK_SECONDS

    def record(self, node: ClusterNode, problems: Sequence[str]) -> None:
        """Take the result of a check, and log what is new."""
        text = " ".join(problems)
        before = self._problems.pop(node.id, ("", 0.0))[0]
        if text:
            self._usable.discard(node.id)
            self._problems[node.id] = (text, self._clock())
            if text != before:
                log.warning("Node %s (%s) is skipped: %s", node.name, node.host, text)
        elif node.id not in self._usable:
            self._usable.add(node.id)
            log.info("Node %s (%s) can play runs.", node.name, node.host)

    def choose(self) -> ClusterNode | None:
        """The usable node with the most room; None if none has any."""
        room = {id_: self._room(id_) for id_ in self._usable}
        best = max(room, key=lambda id_: (room[id_], id_), default=None)
        return self._nodes[best] if best is not None and room[best] > 0 else None

    def _room(self, id_: str) -> int:
        reserved = sum(each.node == id_ for each in self._reserved)
        return count_room(self._nodes[id_].free, self.need) - reserved

    def reserve(self, node: ClusterNode, name: str) -> None:
        self._reserved[PlannedProcess(node.id, name)] = None

    def settle(self, node: ClusterNode, name: str) -> None:
        """The process is placed, or will not be: the cluster counts it, or what it left, from now on."""
        self._reserved[PlannedProcess(node.id, name)] = self._clock()


def count_room(available: Mapping[str, float], need: Placement) -> int:
    """How many processes with such a need fit into these resources."""
    needs = {"CPU": need.cpus, "GPU": need.gpus, "memory": float(need.memory), **need.resources}
    fits = [int(available.get(name, 0.0) / amount + 1e-9) for name, amount in needs.items() if amount > 0]
    return min(fits, default=0)


def find_greeting_problems(started: StartedProcess) -> list[str]:
    """Why a process on a node did not greet as it should; empty if it did."""
    if not started.hello:
        if "No module named 'proctor" in started.last_words:
            package = f"'proctor[ray]=={__version__}'"
            return [f"Proctor is not installed for Ray's Python there; install it: `pip install {package}`."]
        how = "did not greet in time" if started.code is None else describe_exit(started.code)
        printed = summarize_output(started.last_words.splitlines())
        return [f"The process that plays runs {how}" + (f": {printed}" if printed else ".")]
    greeting = msgspec.json.decode(started.hello, type=NodeGreeting)
    if greeting.proctor != __version__:
        return [f"Proctor is {greeting.proctor} there and {__version__} here; install the same on both."]
    return list(greeting.problems)
