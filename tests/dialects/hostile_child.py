"""The dialect's side of a child process that does everything wrong; loaded by `proctor.dialects.inside`."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

NESTED = b"[" * 100_000 + b"]" * 100_000


def load(params: dict[str, Any], host: Any) -> Hostile:
    misdeed = params.get("at_load")
    control = host._sockets[0]
    if misdeed == "garbage":
        control.sendall(b"\xff\xfe\x00 this is no JSON\n")
    elif misdeed == "nesting":
        control.sendall(b'{"result": ' + NESTED + b"}\n")
    elif misdeed == "half":
        control.sendall(b'{"result": {"si')
        os._exit(3)
    elif misdeed == "flood":
        control.sendall(b"x" * 1_000_000 + b"\n")
    elif misdeed == "silence":
        time.sleep(600)
    elif misdeed == "death":
        print("cannot find the key of the moon", flush=True)  # noqa: T201
        os._exit(3)
    return Hostile(host)


class Hostile:
    """Each coroutine method misbehaves in its own way; `echo` does not."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def describe(self) -> dict[str, Any]:
        return {"size": 0}

    async def echo(self, text: str) -> str:
        return text

    async def write(self, content: bytes) -> None:
        self.host._writer.write(content)
        await self.host._writer.drain()
        await asyncio.Event().wait()

    async def garbage(self) -> None:
        await self.write(b"\xff\xfe\x00 this is no JSON\n")

    async def wrong_types(self) -> None:
        await self.write(b'{"reply": "one", "error": 3}\n')

    async def nesting(self) -> None:
        await self.write(b'{"reply": 1, "result": ' + NESTED + b"}\n")

    async def nested_request(self) -> None:
        await self.write(b'{"call": 1, "method": "complete", "params": ' + NESTED + b"}\n")

    async def half(self) -> None:
        self.host._writer.write(b'{"reply": 1, "resu')
        await self.host._writer.drain()
        os._exit(3)

    async def flood(self) -> None:
        await self.write(b"x" * 1_000_000)

    async def chatter(self) -> str:
        os.write(1, b"y" * 1_000_000)
        return "said"

    async def silence(self) -> None:
        await asyncio.Event().wait()
