"""Wait until a served environment answers: only an answer to a hello says that it is ready.

A port that accepts connections says nothing: Docker accepts them before anybody listens inside. Any answer
will do, a refusal for want of a token too. Knows nothing of who serves, and where.
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
    """Until somebody answers at the url; the caller limits the time.

    `look` is called now and then meanwhile, and raises if there is nothing left to wait for.
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
    """Whether a hello is answered; a session that it opened is closed again, so that none is left parked."""
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
