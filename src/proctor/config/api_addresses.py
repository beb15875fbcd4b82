"""Addresses of APIs: whether one can be called, its host, and whether that is this machine.

Knows nothing of providers, keys or networks: no name is resolved.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from proctor.errors import ConfigError


def validate_address(url: str) -> str:
    problem = address_problem(url)
    if problem is not None:
        raise ConfigError(problem)
    return url.rstrip("/")


def address_problem(url: str) -> str | None:
    """Why an API cannot be asked there, as a sentence that repeats no password."""
    if not is_address(url):
        return f"{url!r} is not an API address; it should look like https://host/v1."
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        return (
            f"The address at {parts.hostname} holds more than https://host/v1, and addresses are shown and "
            f"saved; name the variable of a key with -k, and send anything else as a header."
        )
    return None


def is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that cannot be
        return False
    return is_one and not any(letter.isspace() for letter in url)


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def is_on_this_machine(url: str) -> bool:
    host = host_of(url)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
