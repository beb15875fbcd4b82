"""A run that holds rollouts in containers until it is ended: `driver.py IMAGE COUNT` says when all are up."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

from proctor.runtimes.docker import DockerRuntime
from proctor.task import Task


async def hold(image: str, count: int) -> None:
    runtime = DockerRuntime(image, pull="never", labels={"driven": "1"})
    async with AsyncExitStack() as stack:
        for number in range(count):
            await stack.enter_async_context(runtime(Task(id=number)))
        sys.stdout.write("all are up\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(hold(sys.argv[1], int(sys.argv[2])))
    except KeyboardInterrupt:
        sys.exit(130)
