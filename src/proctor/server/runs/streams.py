"""Streams for readers of runs: counted, and for as long as their reader may read."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from proctor.server.people.tokens import Caller
from proctor.server.people.watch import Check
from proctor.server.platform import Platform
from proctor.server.quotas import name_visitor
from proctor.server.runs import sharing


def still_reads(platform: Platform, run_id: str, link: str = "", *, with_log: bool = False) -> Check:
    """Raises if the caller may no longer read a run."""

    async def check(now: Caller) -> None:
        reader = sharing.as_reader(now, link)
        await platform.database.read(sharing.need_readable_run, reader, run_id, link, with_log=with_log)

    return check


def name_reader(caller: Caller) -> str:
    """Whose limits a request counts towards."""
    return caller.run_id or caller.user or caller.token_id or name_visitor(caller.address)


def counted_stream(
    platform: Platform, caller: Caller, pieces: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """A stream that counts towards its reader's limit, and is refused beyond it."""
    reader = name_reader(caller)
    platform.streams.check(reader)

    async def count_stream() -> AsyncGenerator[bytes, None]:
        with platform.streams.taking(reader):  # only now: a stream that never starts never ends
            async with aclosing(pieces) as open_pieces:
                async for piece in open_pieces:
                    yield piece

    return count_stream()
