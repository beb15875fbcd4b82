"""A connection to a Ray cluster.

    async with connect(parse_address("ray://head:6379")) as cluster:
        await cluster.nodes()

Ray itself runs in a driver process (`driver.py`), so connecting has a deadline, obeys cancellation and
prints nothing, whatever Ray does meanwhile. Never imports Ray.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proctor.cluster.address import ClusterAddress
from proctor.cluster.installed import need_ray
from proctor.cluster.messages import (
    ClusterNode,
    Connected,
    DriverAnswer,
    DriverQuestion,
    NodeProbe,
    Placement,
    ProcessEnd,
    StartedProcess,
)
from proctor.errors import ConfigError, EnvError
from proctor.support.processes import end_group, python_command

T = TypeVar("T")

KNOCK_SECONDS = 4.0
CONNECT_SECONDS = 12.0
"""From the first word to a usable connection; Ray itself would wait for minutes."""
LEAVING_SECONDS = 3.0
ASK_SECONDS = 20.0


class ClusterError(EnvError):
    """The cluster could not do what was requested; a process there may or may not be running."""


class ProcessLostError(ClusterError):
    """The cluster has ended a process, or lost the node that it was on."""


class Cluster:
    """A cluster, as one driver process of ours is connected to it."""

    def __init__(self, connected: Connected, writer: asyncio.StreamWriter) -> None:
        self.connected = connected
        self._writer = writer
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._end: ClusterError | None = None

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended."""
        return self._end is not None

    async def nodes(self) -> list[ClusterNode]:
        return await self._ask("nodes", {}, list[ClusterNode], ASK_SECONDS)

    async def launch(
        self,
        key: str,
        module: str,
        line: str,
        placement: Placement,
        *,
        variables: Mapping[str, str] | None = None,
        greeting_seconds: float = 60.0,
        name: str = "",
    ) -> StartedProcess:
        """Start `main()` of a module on a node, give it a line and wait for the line that it answers.

        Waits as long as no node has room. The key is yours: the other calls find the process by it. A
        process with a name outlives this connection; `find` connects to it again.
        """
        arguments = {
            "key": key,
            "module": module,
            "line": line,
            "placement": placement,
            "variables": variables or {},
            "seconds": greeting_seconds,
            "name": name,
        }
        return await self._ask("launch", arguments, StartedProcess)

    async def is_placed(self, key: str) -> bool:
        """Whether a node had room for a process that is being launched."""
        return await self._ask("is_placed", {"key": key}, bool, ASK_SECONDS)

    async def find(self, key: str, name: str) -> bool:
        """Whether a process with that name lives; from now on it answers to the key."""
        return await self._ask("find", {"key": key, "name": name}, bool, ASK_SECONDS)

    async def names(self) -> list[str]:
        """Of all processes that outlive their connections."""
        return await self._ask("names", {}, list[str], ASK_SECONDS)

    async def send_line(self, key: str, line: str) -> None:
        """Give a process another line."""
        await self._ask("send_line", {"key": key, "line": line}, type(None), ASK_SECONDS)

    async def wait_for_end(self, key: str, seconds: float | None = None) -> ProcessEnd:
        """How a process ended; it is killed if it takes longer than that."""
        return await self._ask("wait_for_end", {"key": key, "seconds": seconds}, ProcessEnd)

    async def kill(self, key: str) -> None:
        """End a process and its parent on the node; also one that has not been placed yet."""
        await self._ask("kill", {"key": key}, type(None), ASK_SECONDS)

    async def probe(self, node: str, host: str, port: int, nonce: str) -> NodeProbe:
        """What a node has, and whether it reaches that port and is let in with the nonce."""
        arguments = {"node": node, "host": host, "port": port, "nonce": nonce}
        return await self._ask("probe", arguments, NodeProbe)

    async def _ask(
        self, method: str, arguments: Mapping[str, Any], kind: type[T], seconds: float | None = None
    ) -> T:
        if self._end is not None:
            raise self._end
        number = next(self._numbers)
        future = self._open[number] = asyncio.get_running_loop().create_future()
        self._writer.write(msgspec.json.encode(DriverQuestion(number, method, arguments)) + b"\n")
        try:
            async with asyncio.timeout(seconds):
                return msgspec.convert(await future, kind)
        except TimeoutError:
            raise ClusterError(f"the cluster has not answered for {seconds:g} s") from None
        finally:
            del self._open[number]

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """Hand out answers until the driver process ends."""
        with suppress(OSError):
            while line := await reader.readline():
                self._take(msgspec.json.decode(line, type=DriverAnswer))
        self._end = ClusterError("the connection to the cluster has ended")
        for future in self._open.values():
            if not future.done():
                future.set_exception(self._end)

    def _take(self, answer: DriverAnswer) -> None:
        future = self._open.get(answer.id)
        if future is None or future.done():
            return
        if answer.kind:
            kind = ProcessLostError if answer.kind == "lost" else ClusterError
            future.set_exception(kind(answer.error))
        else:
            future.set_result(answer.result)


@asynccontextmanager
async def connect(address: ClusterAddress) -> AsyncIterator[Cluster]:
    """Connect to a cluster; ConfigError with one sentence if that takes too long or cannot work."""
    need_ray()
    if address.host:
        await knock(address)
    with tempfile.TemporaryDirectory(prefix="proctor-ray-") as folder:
        output = Path(folder, "driver.log")
        process, connection = start_driver(address, output)
        listening: asyncio.Task[None] | None = None
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=2**26)
            connected = await wait_until_connected(reader, address, output)
            cluster = Cluster(connected, writer)
            listening = asyncio.create_task(cluster.listen(reader))
            yield cluster
            writer.close()
            await wait_for_exit(process, LEAVING_SECONDS)
        finally:
            end_group(process.pid)
            process.wait()
            connection.close()
            if listening is not None:
                listening.cancel()


async def knock(address: ClusterAddress) -> None:
    """Refuse an address where nothing listens, which Ray would wait for."""
    try:
        async with asyncio.timeout(KNOCK_SECONDS):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except (OSError, TimeoutError) as error:
        why = f"no answer within {KNOCK_SECONDS:g} s" if isinstance(error, TimeoutError) else error
        raise ConfigError(
            f"No Ray cluster answers at {address}: {why}. Start one with `ray start --head`, or name another."
        ) from error
    writer.close()


def start_driver(address: ClusterAddress, output: Path) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    argument = f"{theirs.fileno()} {address.host}:{address.port}" if address.host else f"{theirs.fileno()} "
    with theirs, output.open("wb") as file:
        process = subprocess.Popen(
            python_command("proctor.cluster.driver", argument),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is for us
        )
    return process, ours


async def wait_until_connected(
    reader: asyncio.StreamReader, address: ClusterAddress, output: Path
) -> Connected:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            line = await reader.readline()
    except TimeoutError:
        raise ConfigError(explain(output, address, f"no answer within {CONNECT_SECONDS:g} s")) from None
    if not line:
        raise ConfigError(explain(output, address, "the connection failed"))
    return msgspec.json.decode(line, type=Connected)


def explain(output: Path, address: ClusterAddress, otherwise: str) -> str:
    """One sentence for what Ray said at length."""
    text = output.read_text(errors="replace")
    if "token" in text.lower() and ("authenticat" in text.lower() or "unauthorized" in text.lower()):
        return (
            f"The Ray cluster at {address} wants another token; put its token into RAY_AUTH_TOKEN or "
            f"~/.ray/auth_token, and set RAY_AUTH_MODE=token."
        )
    if "Version mismatch" in text:
        return f"The Ray cluster at {address} runs other versions: {describe_mismatch(text)}."
    if "Could not find any running Ray instance" in text:
        return "No Ray cluster runs on this machine; start one with `ray start --head`, or name its address."
    if "node_ip_address" in text or ("raylet" in text.lower() and "find" in text.lower()):
        return (
            f"This machine is not a node of the Ray cluster at {address}; join it with "
            f"`ray start --address={address.host}:{address.port} --num-cpus=0`."
        )
    if "Failed to connect to GCS" in text:
        at = re.search(r"GCS at address (\S+)", text)
        return (
            f"No Ray cluster answers at {address if at is None else at[1]} any more; start it again with "
            f"`ray start --head`, or name another."
        )
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    return f"The Ray cluster at {address} cannot be used: {last or otherwise}"


def describe_mismatch(text: str) -> str:
    lines = [line.strip() for line in text[text.index("Version mismatch") :].splitlines()[1:]]
    found = [line for line in lines if line.startswith(("Ray:", "Python:"))]
    there, here = found[:2], found[2:4]
    return f"{' '.join(there)} there, {' '.join(here)} here" if len(found) >= 4 else " ".join(lines[:4])


async def wait_for_exit(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while process.poll() is None:
                await asyncio.sleep(0.02)
