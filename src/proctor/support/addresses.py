"""Decide which IP addresses belong to the public internet: the only ones we connect to for others.

One answer for every part that connects for others, written out as tables: what Python's `is_global` says
differs between releases, and it counts some special-purpose ranges as global. Knows addresses, not names: a
name must be resolved first, and the very address that was checked must be the one connected to.
"""

from __future__ import annotations

import ipaddress
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

SPECIAL_IPV4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # carrier-grade NAT; some clouds keep their metadata here
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # Azure's metadata: a public address that only its own machines reach
            "169.254.0.0/16",  # link-local; most clouds keep their metadata here
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112: answered by whatever machine is nearest
            "192.52.193.0/24",  # automatic multicast tunnelling
            "192.88.99.0/24",  # 6to4 relays: answered by whatever machine is nearest
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
UNICAST_IPV6 = ipaddress.IPv6Network("2000::/3")
"""Everything ever allocated; loopback, site-local, NAT64, multicast and the rest lie outside."""
SPECIAL_IPV6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID, AS112 and others
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: wraps an IPv4 address
            "2620:4f:8000::/48",  # AS112
            "3ffe::/16",  # 6bone, returned
            "3fff::/20",  # documentation
        ),
    )
)
ANY_PORT = 9


def is_public(text: str) -> bool:
    """Whether an address, as a resolver writes it, belongs to the public internet.

    What only wraps another address does not, except IPv4 written as IPv6 (`::ffff:1.1.1.1`), which the
    kernel connects to as that IPv4 address. Neither does a text that is not an address.
    """
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:  # of one link
            return False
        if address.ipv4_mapped is None:
            return address in UNICAST_IPV6 and not any(address in network for network in SPECIAL_IPV6)
        address = address.ipv4_mapped
    return not any(address in network for network in SPECIAL_IPV4)


def is_own(text: str) -> bool:
    """Whether an address is one of this machine's own, however public it is.

    The kernel answers from the address it would connect to; nothing is sent.
    """
    try:
        family = socket.AF_INET6 if ":" in text else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((text, ANY_PORT))
            return ipaddress.ip_address(probe.getsockname()[0]) == ipaddress.ip_address(text)
    except (OSError, ValueError):
        return False  # without a route, no connection is made either


def may_connect(text: str) -> bool:
    """Whether we connect there for others: only to the internet, never to this machine."""
    return is_public(text) and not is_own(text)
