"""What is special about a browser's requests: the cookie of its session, and which page sent them.

Any page may send requests to any server, and a browser adds the server's cookies by itself. `SameSite=Strict`
keeps other sites out, but a page on another port of the same host counts as the same site; hence the check of
`Origin`. For the same reason, cookies have the server's address in their names: ports share cookies. Knows
nothing of sessions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from proctor.config.api_addresses import is_on_this_machine
from proctor.server.problems import ForbiddenError, InvalidError

HOST_PREFIX = "__Host-"
"""Before the name of a cookie that browsers accept only over TLS, from the host itself, for all its paths."""
OWN_PAGES = ("same-origin", "none")
"""`Sec-Fetch-Site` of requests by the server's own pages, and by the address bar."""


def name_session_cookie(server_url: str) -> str:
    name = f"proctor-{hashlib.sha256(server_url.encode()).hexdigest()[:8]}"
    return f"{HOST_PREFIX}{name}" if is_encrypted(server_url) else name


def is_encrypted(server_url: str) -> bool:
    return urlsplit(server_url).scheme == "https"


def build_session_cookie(server_url: str, value: str, seconds: float) -> str:
    """The `Set-Cookie` header; with no value and no seconds, it removes the cookie."""
    secure = "; Secure" if is_encrypted(server_url) else ""
    name = name_session_cookie(server_url)
    return f"{name}={value}; Path=/; Max-Age={int(seconds)}; HttpOnly; SameSite=Strict{secure}"


def find_session_cookie(headers: Mapping[str, str], server_url: str) -> str:
    """Its value, whatever is in the cookies beside it: other servers on the host may have set any. Of several
    the last, since browsers send those of other paths first."""
    given = headers.get("cookie", "")
    if not given:
        return ""
    pairs = (pair.strip().partition("=") for pair in given.split(";"))
    name = name_session_cookie(server_url)
    return next((value for each, _, value in reversed(list(pairs)) if each == name), "")


def check_same_origin(headers: Mapping[str, str], server_url: str) -> None:
    """Refuse a request that a page of another origin made a browser send."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin", "")
    if (site is not None and site not in OWN_PAGES) or not is_own_origin(origin, headers, server_url):
        raise ForbiddenError(
            "A page of another site sent this request; only the dashboard's own pages may change anything.",
            code="cross_site",
        )


def is_own_origin(origin: str, headers: Mapping[str, str], server_url: str) -> bool:
    """Whether an origin is the server as the browser addressed it, or its public address: a reverse proxy may
    have rewritten `Host`."""
    public, host = urlsplit(server_url), headers.get("host", "")
    return origin in (f"{public.scheme}://{public.netloc}", f"http://{host}", f"https://{host}")


def check_is_kept(headers: Mapping[str, str], server_url: str) -> None:
    """Refuse to log in a browser that would drop the cookie, since it asked without TLS."""
    origin = headers.get("origin", "")
    if is_encrypted(server_url) and urlsplit(origin).scheme == "http" and not is_on_this_machine(origin):
        raise InvalidError(f"A login at {origin} would not last; open {server_url} instead.")


def was_sent_by_page(headers: Mapping[str, str]) -> bool:
    return "origin" in headers or "sec-fetch-site" in headers
