"""Change an environment, and announce it to followers of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from proctor.server.announcements import announce_environment
from proctor.server.hub.access import find_readers
from proctor.server.platform import Platform

P = ParamSpec("P")
T = TypeVar("T")


async def change_and_announce(
    platform: Platform,
    slug: str,
    work: Callable[Concatenate[Connection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Change an environment, and announce that to those who could read it before or can now."""

    def change(connection: Connection) -> T:
        before = find_readers(connection, slug)
        result = work(connection, *args, **kwargs)
        announce_environment(connection, slug, before)
        return result

    return await platform.database.write(change)
