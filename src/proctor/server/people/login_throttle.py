"""Slow down guessing: addresses that fail often are refused for a while. Knows nothing of what is guessed."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from ipaddress import ip_address, ip_network

from proctor.server.problems import TooManyError

MOST_FAILURES = 20
"""In a row; one more is forgiven every few seconds."""
FORGIVEN_SECONDS = 3.0
MOST_ADDRESSES = 10_000
FORWARDED_HEADER = "x-forwarded-for"


class LoginThrottle:
    """Failures by address, each forgiven after a while."""

    def __init__(self, most: int = MOST_FAILURES, forgiven_seconds: float = FORGIVEN_SECONDS) -> None:
        self.most = most
        self.forgiven_seconds = forgiven_seconds
        self._forgiven_at: OrderedDict[str, float] = OrderedDict()
        """When all failures of an address are forgiven; the address that failed last is last."""

    def check(self, address: str, now: float) -> None:
        """Refuse an address that has failed too often."""
        until = self._forgiven_at.get(address, now) - (self.most - 1) * self.forgiven_seconds
        if until > now:
            seconds = math.ceil(until - now)
            raise TooManyError(
                f"Too many failed logins from {address}; try again in {seconds} s.", retry_after=seconds
            )

    def record_failure(self, address: str, now: float) -> None:
        since = max(now, self._forgiven_at.pop(address, now))
        self._forgiven_at[address] = since + self.forgiven_seconds
        if len(self._forgiven_at) > MOST_ADDRESSES:
            self._forgiven_at.popitem(last=False)


def find_client_address(peer: str, headers: Mapping[str, str], trusted_proxies: tuple[str, ...]) -> str:
    """Where a request comes from: behind a proxy on this machine or a trusted one, what that proxy saw."""
    forwarded = headers.get(FORWARDED_HEADER, "").rpartition(",")[2].strip()
    try:
        address = ip_address(peer)
    except ValueError:  # a Unix socket has no address
        return forwarded or peer
    is_proxy = address.is_loopback or any(address in ip_network(each) for each in trusted_proxies)
    return forwarded if forwarded and is_proxy else peer
