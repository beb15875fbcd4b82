"""Somebody who reads on a server, and says how long each read took.

python -m benchmarks.reader URL RUN COUNT      the token comes on standard input; prints a JSON list
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context

PAUSE_SECONDS = 0.005


async def read(url: str, token: str, run_id: str, count: int) -> list[float]:
    """Lists, a run, its events, oneself, in turn; milliseconds each."""
    paths = ("/runs?limit=20", f"/runs/{run_id}", f"/runs/{run_id}/events?after=0&limit=50", "/whoami")
    taken = []
    async with ServerConnection(Context(url=url, token=token)) as server:
        await server.ask("GET", "/health")
        for number in range(count):
            began = time.perf_counter()
            await server.ask("GET", paths[number % len(paths)])
            taken.append(1000 * (time.perf_counter() - began))
            await asyncio.sleep(PAUSE_SECONDS)
    return taken


if __name__ == "__main__":
    print(json.dumps(asyncio.run(read(sys.argv[1], sys.stdin.read().strip(), sys.argv[2], int(sys.argv[3])))))
