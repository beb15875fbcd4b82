"""The Ray driver process: the only one of ours on this machine that imports Ray.

Ray's driver takes over signals, prints to standard error from C++ and waits where nothing can interrupt it.
All of that happens here, in a process that its owner can end at any time. Actors that are not detached end
with it. Answers questions until its owner hangs up.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
import ray
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from proctor.cluster import actor as on_node
from proctor.cluster.messages import ClusterNode, Connected, DriverAnswer, DriverQuestion, Placement
from proctor.support.loop import set_up_child

NAMESPACE = "proctor"
LOST, UNAVAILABLE, REFUSED = "lost", "unavailable", "refused"
PROBE_SECONDS = 25.0


class NoSuchProcessError(Exception):
    """The driver got a request for a process that it does not know."""


class RayDriver:
    """Answers questions with the help of Ray."""

    def __init__(self) -> None:
        ray.cloudpickle.register_pickle_by_value(on_node)
        self._parents: dict[str, Any] = {}
        self._placed: set[str] = set()
        self._newest_node = ""

    async def nodes(self) -> list[ClusterNode]:
        return await asyncio.to_thread(list_nodes)

    async def launch(
        self,
        key: str,
        module: str,
        line: str,
        placement: Mapping[str, Any],
        variables: Mapping[str, str],
        seconds: float,
        name: str = "",
    ) -> dict[str, Any]:
        """Place a parent, and have it start a process. With a name, both outlive this driver."""
        wanted = msgspec.convert(placement, Placement)
        options = actor_options(wanted, self._newest_node)
        if name:
            options |= {"name": name, "lifetime": "detached"}
        parent = ray.remote(**options)(on_node.ProcessParent).remote()
        self._parents[key] = parent
        node: dict[str, str] = await parent.where.remote()
        self._placed.add(key)
        self._newest_node = node["node"]
        started: dict[str, Any] = await parent.launch.remote(module, line, variables, seconds, bool(name))
        return {**started, **node}

    async def is_placed(self, key: str) -> bool:
        return key in self._placed

    async def find(self, key: str, name: str) -> bool:
        """Whether a process of that name lives; from now on it answers to the key."""
        try:
            self._parents[key] = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
        except ValueError:
            return False
        return True

    async def names(self) -> list[str]:
        """Of all processes that outlive their drivers."""
        found: list[str] = await asyncio.to_thread(ray.util.list_named_actors)
        return found

    async def send_line(self, key: str, line: str) -> None:
        await self._parent(key).send_line.remote(line)

    async def wait_for_end(self, key: str, seconds: float | None) -> dict[str, Any]:
        end: dict[str, Any] = await self._parent(key).wait_for_end.remote(seconds)
        return end

    async def kill(self, key: str) -> None:
        parent = self._parents.pop(key, None)
        if parent is not None:
            with suppress(RayError, asyncio.TimeoutError):
                await asyncio.wait_for(parent.kill.remote(), 2.0)
            await asyncio.to_thread(ray.kill, parent)

    async def probe(self, node: str, host: str, port: int, nonce: str) -> dict[str, Any]:
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        looking = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=strategy)(on_node.probe)
        found: dict[str, Any] = await asyncio.wait_for(looking.remote(host, port, nonce), PROBE_SECONDS)
        return found

    def _parent(self, key: str) -> Any:
        try:
            return self._parents[key]
        except KeyError:
            raise NoSuchProcessError(f"no process has the key {key!r}") from None


def actor_options(wanted: Placement, newest_node: str) -> dict[str, Any]:
    strategy: Any = "SPREAD"
    if wanted.node:
        strategy = NodeAffinitySchedulingStrategy(wanted.node, soft=False)
    elif wanted.placement == "pack":
        strategy = (
            NodeAffinitySchedulingStrategy(newest_node, soft=True, _spill_on_unavailable=True)
            if newest_node
            else "DEFAULT"
        )
    return {
        "num_cpus": wanted.cpus,
        "num_gpus": wanted.gpus,
        "memory": wanted.memory or None,
        "resources": dict(wanted.resources) or None,
        "scheduling_strategy": strategy,
        "max_restarts": 0,
        "namespace": NAMESPACE,
    }


def list_nodes() -> list[ClusterNode]:
    from ray._private.state import available_resources_per_node

    free = available_resources_per_node()
    return [
        ClusterNode(
            id=node["NodeID"],
            host=node["NodeManagerAddress"],
            name=node["NodeManagerHostname"],
            is_alive=node["Alive"],
            is_head="node:__internal_head__" in node["Resources"],
            total=visible(node["Resources"]),
            free=visible(free.get(node["NodeID"], {})),
        )
        for node in ray.nodes()
    ]


def visible(resources: Mapping[str, float]) -> dict[str, float]:
    """Without what Ray counts for itself."""
    return {
        name: amount
        for name, amount in resources.items()
        if not name.startswith("node:") and name != "object_store_memory"
    }


def connect(address: str) -> Connected:
    context = ray.init(
        address=address or "auto",
        namespace=NAMESPACE,
        log_to_driver=False,
        configure_logging=False,
        include_dashboard=False,
    )
    return Connected(
        ray=ray.__version__,
        python=platform.python_version(),
        host=ray.util.get_node_ip_address(),
        address=str(context.address_info["gcs_address"]),
    )


async def answer(driver: RayDriver, question: DriverQuestion, writer: asyncio.StreamWriter) -> None:
    try:
        result = await getattr(driver, question.method)(**question.arguments)
        reply = DriverAnswer(question.id, result)
    except (ActorUnavailableError, GetTimeoutError) as error:
        reply = DriverAnswer(question.id, error=first_line(error), kind=UNAVAILABLE)
    except (RayError, NoSuchProcessError) as error:
        reply = DriverAnswer(question.id, error=first_line(error), kind=LOST)
    except TimeoutError:
        reply = DriverAnswer(question.id, error="it did not answer in time", kind=UNAVAILABLE)
    except (ValueError, TypeError) as error:
        reply = DriverAnswer(question.id, error=first_line(error), kind=REFUSED)
    writer.write(msgspec.json.encode(reply) + b"\n")


def first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    driver, answering = RayDriver(), set[asyncio.Task[None]]()
    while line := await reader.readline():
        question = msgspec.json.decode(line, type=DriverQuestion)
        task = asyncio.create_task(answer(driver, question, writer))
        answering.add(task)
        task.add_done_callback(answering.discard)


def exit_with_owner(owner: int) -> None:
    while os.getppid() == owner:
        time.sleep(0.5)
    os._exit(1)


async def main_in_loop(connection: Any, connected: Connected) -> None:
    reader, writer = await asyncio.open_connection(sock=connection, limit=2**26)
    writer.write(msgspec.json.encode(connected) + b"\n")
    with suppress(ConnectionError):
        await serve(reader, writer)


def main() -> None:
    import threading

    descriptor, address = sys.argv[1].split(" ", 1)
    connection = set_up_child(int(descriptor))
    # Ray waits where nothing can interrupt it; this process must not outlive the run all the same.
    threading.Thread(target=exit_with_owner, args=(os.getppid(),), daemon=True).start()
    connected = connect(address)
    asyncio.run(main_in_loop(connection, connected))
    # Leaving without ray.shutdown(): the cluster ends what a driver leaves, and needs no farewell for it.
    os._exit(0)
