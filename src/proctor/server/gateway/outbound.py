"""Which addresses the server may connect to for a run's own endpoint.

Anyone who may start runs can name an endpoint, and so make this server connect to it. The server connects
only to public internet addresses, unless the operator allowed the host. It checks the address of the socket
itself, so that a name cannot resolve to one address for the check and to another for the connection.
Redirects are not followed. Knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from typing import Any

from proctor.config.api_addresses import address_problem, host_of
from proctor.server.problems import InvalidError
from proctor.support.addresses import may_connect


class ForbiddenAddressError(OSError):
    """An address that the server does not connect to on behalf of a run."""


async def check_endpoint_url(url: str, allowed: Collection[str]) -> None:
    """Refuse an endpoint that the server would not connect to, before a run is started for it."""
    if problem := address_problem(url):
        raise InvalidError(problem, field="api_base_url")
    host = host_of(url)
    if host in allowed:
        return
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        raise InvalidError(
            f"The host {host!r} of api_base_url cannot be resolved; check its spelling.", field="api_base_url"
        ) from None
    if not all(may_connect(str(sockaddr[0])) for *_, sockaddr in found):
        raise InvalidError(
            f"The host {host!r} of api_base_url is not on the public internet; the server's operator "
            f"can allow it with --allow-endpoint-host {host}.",
            field="api_base_url",
            code="forbidden_endpoint",
        )


def open_public_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for a public internet address; any other address raises ForbiddenAddressError."""
    family, kind, protocol, _, sockaddr = address
    if not may_connect(str(sockaddr[0])):
        raise ForbiddenAddressError("the address is not on the public internet")
    return socket.socket(family, kind, protocol)
