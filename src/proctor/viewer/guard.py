"""Which requests a server without a login may answer: those of this machine's own browser pages.

Any web page can send requests to loopback, and a name that its owner points there makes the browser take the
answers for its own. So the `Host` must name loopback, and a request for data must not come from another
origin. Knows nothing of web frameworks.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

OWN_SITES = frozenset({"same-origin", "none"})
"""Of `Sec-Fetch-Site`: our own pages, and typed addresses."""


def find_refusal(method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
    """The status and the sentence by which a request is refused; None if it may be answered."""
    if method not in ("GET", "HEAD"):
        return 405, "proctor view only reads; it answers GET."
    if not is_loopback_host(headers.get("host", "")):
        return (
            421,
            "proctor view answers on this machine only; open it at http://127.0.0.1 or http://localhost.",
        )
    if not path.startswith("/api/"):
        return None
    origin = headers.get("origin", "")
    site = headers.get("sec-fetch-site", "same-origin")
    if (origin and origin.partition("://")[2] != headers.get("host", "")) or site not in OWN_SITES:
        return 403, "proctor view answers its own pages only, and this request comes from another site."
    return None


def is_loopback_host(host: str) -> bool:
    """Whether a `Host` header names this machine; the port may be another one, of a tunnel."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
