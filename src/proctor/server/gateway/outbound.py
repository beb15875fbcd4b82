"""Endpoints that a run names itself, and the walls around them.

A run may have its own endpoint asked, so anybody who may start runs can make this server connect somewhere.
Nothing but addresses on the public internet is connected to, unless the operator named the host; what is
checked is the very address of the socket, so that no name can mean one thing to the check and another to the
connection. Nobody is followed anywhere else. Knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from typing import Any

from proctor.config.endpoints import address_problem, host_of
from proctor.server.problems import InvalidError
from proctor.support.addresses import may_connect


class ForbiddenAddressError(OSError):
    """An address that this server does not connect to for others."""


async def check_endpoint_url(url: str, allowed: Collection[str]) -> None:
    """Refuse an endpoint that would not be connected to, before anything is started for it."""
    if problem := address_problem(url):
        raise InvalidError(problem, field="api_base_url")
    host = host_of(url)
    if host in allowed:
        return
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        raise InvalidError(
            f"The host {host!r} of api_base_url is not known here; check its spelling.", field="api_base_url"
        ) from None
    if not all(may_connect(str(sockaddr[0])) for *_, sockaddr in found):
        raise InvalidError(
            f"api_base_url leads to {host!r}, which is not on the public internet; the server's operator "
            f"can allow it with --allow-endpoint-host {host}.",
            field="api_base_url",
            code="forbidden_endpoint",
        )


def open_public_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket to an address of the public internet, and to no other."""
    family, kind, protocol, _, sockaddr = address
    if not may_connect(str(sockaddr[0])):
        raise ForbiddenAddressError("the address is not on the public internet")
    return socket.socket(family, kind, protocol)
