"""Wait until a served environment answers a hello.

An open port does not prove that it is ready: Docker accepts connections before anything listens inside. Any
answer counts, even a refusal for lack of a token. Knows nothing of runtimes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing

from proctor.channel.client import open_wire
from proctor.channel.frames import RemoteError

ANSWER_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.3
FIRST_LOOK_SECONDS = 0.5
LONGEST_LOOK_SECONDS = 5.0


async def wait_for_hello(url: str, look: Callable[[], Awaitable[None]]) -> None:
    """Wait for an answer at the url; the caller limits the time.

    `look` is called now and then, and raises if there is nothing left to wait for.
    """
    clock = asyncio.get_running_loop().time
    pause, interval = FIRST_PAUSE_SECONDS, FIRST_LOOK_SECONDS
    next_look = clock() + interval
    while not await says_hello(url):
        if clock() >= next_look:
            await look()
            interval = min(interval * 2, LONGEST_LOOK_SECONDS)
            next_look = clock() + interval
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


async def says_hello(url: str) -> bool:
    """Whether a hello is answered; closes the session it opens, so that none stays parked."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            with closing(await open_wire(url)) as wire:
                await wire.ask("hello", {})
                await wire.ask("bye", {})
    except RemoteError:
        return True
    except (OSError, TimeoutError):
        return False
    return True
