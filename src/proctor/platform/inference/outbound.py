"""Endpoints that a run names itself, and the walls around them.

A run may have its own endpoint asked, so anybody who may start runs can make this server connect somewhere.
Nothing but addresses on the public internet is connected to, unless the operator named the host; what is
checked is the very address of the socket, so that no name can mean one thing to the check and another to the
connection. Nobody is followed anywhere else. Knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Collection
from typing import Any

from proctor.config.endpoints import address_problem, host_of
from proctor.platform.problems import InvalidError

NAT64 = ipaddress.ip_network("64:ff9b::/96")
PROTOCOLS = ipaddress.ip_network("192.0.0.0/24")
"""Some of these count as global, and none of them is anybody's server."""
IPV4_BITS = 0xFFFF_FFFF

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
    except (OSError, UnicodeError):
        raise InvalidError(
            f"The host {host!r} of api_base_url is not known here; check its spelling.", field="api_base_url"
        ) from None
    if not all(is_public(str(sockaddr[0])) for *_, sockaddr in found):
        raise InvalidError(
            f"api_base_url leads to {host!r}, which is not on the public internet; the server's operator "
            f"can allow it with --allow-endpoint-host {host}.",
            field="api_base_url",
            code="forbidden_endpoint",
        )


def public_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket to an address of the public internet, and to no other."""
    family, kind, protocol, _, sockaddr = address
    if not is_public(str(sockaddr[0])):
        raise ForbiddenAddressError("the address is not on the public internet")
    return socket.socket(family, kind, protocol)


def is_public(text: str) -> bool:
    try:
        address = inner(ipaddress.ip_address(text))
    except ValueError:
        return False
    is_odd = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    return address.is_global and not is_odd and address not in PROTOCOLS


def inner(address: Address) -> Address:
    """The address that packets end up at, where one is written inside another."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & IPV4_BITS)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address
