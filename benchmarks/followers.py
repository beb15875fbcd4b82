"""A server under load: 1,000 followers of one run that is being played, 50 runs queued, and people who read.

python -m benchmarks.followers [FOLLOWERS]      prints one JSON object

The server is a process of its own, with SQLite in a temporary folder. A run reports three times a second; how
long a read takes is measured at a client that asks for lists, runs and events in turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proctor.api.common import HOST_KEY_HEADER
from proctor.api.runner import ClaimRequest
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.runner.host_key import new_host_key

FOLLOWERS = 1_000
QUEUED = 50
REPORTS = 30
ROWS = 5
PAUSE_SECONDS = 0.3
READS = 600
SECONDS = 120.0
UP_SECONDS = 30.0


def measured(_: Path) -> Iterator[tuple[str, str, str]]:
    """For the table."""
    told = asyncio.run(measure(FOLLOWERS))
    assert told["everybody_heard_the_same"], told
    yield (
        f"p99 of API reads, {FOLLOWERS:,} followers of one run, {QUEUED} runs queued",
        f"{told['p99_ms']:.0f} ms (median {told['p50_ms']:.0f} ms; p99 before {told['p99_idle_ms']:.0f} ms)",
        "none",
    )
    yield (
        f"memory of the server with {FOLLOWERS:,} followers",
        f"{told['memory_mb']} MB ({told['memory_before_mb']} MB before)",
        "none",
    )


async def measure(followers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with server(Path(folder)) as (process, root, run_token, run_id):
            memory_before = resident_mb(process.pid)
            cpu_before = cpu_seconds(process.pid)
            idle = await reads(root, run_id, READS // 4)
            heard: list[int] = []
            began = time.monotonic()
            async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
                for _ in range(followers):
                    group.create_task(follow(root, run_id, heard))
                await asyncio.sleep(2.0)
                playing = group.create_task(play(run_token))
                taken = await reads(root, run_id, READS)
                await playing
            return {
                "followers": followers,
                "queued": QUEUED,
                "events_heard": sum(heard),
                "everybody_heard_the_same": len(set(heard)) == 1,
                "p50_ms": percentile(taken, 0.5),
                "p99_ms": percentile(taken, 0.99),
                "p99_idle_ms": percentile(idle, 0.99),
                "memory_mb": resident_mb(process.pid),
                "memory_before_mb": memory_before,
                "server_cpu_seconds": round(cpu_seconds(process.pid) - cpu_before, 2),
                "seconds": round(time.monotonic() - began, 1),
            }


@asynccontextmanager
async def server(
    folder: Path, *database: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, ServerConnection, ServerConnection, str]]:
    """A server with one run that is being played, by us, and others that wait."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.prepared_server", str(folder), str(QUEUED + 1), *database),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        told = json.loads(await asyncio.wait_for(process.stdout.readline(), UP_SECONDS))
        async with (
            ServerConnection(Context(url=told["url"], token=told["root"])) as root,
            ServerConnection(
                Context(url=told["url"], token=told["host"]), headers={HOST_KEY_HEADER: new_host_key()}
            ) as host,
        ):
            await root.get("/health", dict[str, str])
            order = await host.post("/hosts/claims", ClaimRequest("bench"), dict[str, Any])
            async with ServerConnection(Context(url=told["url"], token=order["token"])) as run:
                yield process, root, run, order["run_id"]
    finally:
        process.terminate()
        await process.wait()


async def follow(server: ServerConnection, run_id: str, heard: list[int]) -> None:
    """Count the events of one run until its end."""
    count = 0
    async with server.open(
        "GET", f"/runs/{run_id}/events/stream", query={"after": 0}, seconds=SECONDS
    ) as stream:
        async for line in stream.content:
            if line.startswith(b"event: end"):
                break
            count += line.startswith(b"id: ")
    heard.append(count)


async def play(run: ServerConnection) -> None:
    """What the process of a run would say."""
    for number in range(1, REPORTS + 1):
        report = {
            "batch": number,
            "logs": [{"level": "INFO", "text": f"line {number}", "at": time.time()}],
            "rows": [row(f"{number}-{each}") for each in range(ROWS)],
        }
        await run.post("/runner/reports", report, dict[str, Any])
        await asyncio.sleep(PAUSE_SECONDS)
    await run.send("/runner/end", {"status": "finished"})


def row(task: str) -> dict[str, Any]:
    text = secrets.token_hex(500)
    return {
        "example_id": task,
        "rollout": 0,
        "outcome": "scored",
        "reward": 1.0,
        "completion": [{"role": "assistant", "content": text}],
    }


async def reads(root: ServerConnection, run_id: str, count: int) -> list[float]:
    """How long each of so many reads took, in milliseconds, for somebody who follows nothing."""
    words = (sys.executable, "-m", "benchmarks.reader", root.context.url, run_id, str(count))
    process = await asyncio.create_subprocess_exec(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    told, _ = await process.communicate(root.context.token.encode())
    taken: list[float] = json.loads(told)
    return taken


def percentile(values: list[float], share: float) -> float:
    return round(statistics.quantiles(values, n=1000)[round(share * 1000) - 1], 1)


def resident_mb(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else FOLLOWERS
    print(json.dumps(asyncio.run(measure(asked))))
