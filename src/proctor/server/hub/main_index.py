"""Names on the operator's main index: they cannot be pushed here, unless the operator allows it.

An installer that uses several indexes takes the highest version, wherever it is. If anyone could push `idna
999.0` here, it would be installed instead of the real `idna`. So new names are looked up first; names that
are already on the hub are not. Knows nothing of pushes.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiohttp
import msgspec

from proctor.errors import InstallError
from proctor.runner.installer import load_pip_settings
from proctor.server.problems import ApiError, ForbiddenError
from proctor.support.logs import log

AS_PIP = "pip"
"""Instead of an address: the indexes that pip is configured with on this machine."""
LOOKUP_SECONDS = 10.0
PAUSE_SECONDS = 60.0
"""How long to leave an index alone that did not answer."""
CREDENTIALS = re.compile(r"//[^/@\s]+@")
ABSENT = (404, 410)
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"


class Indexes(msgspec.Struct, frozen=True):
    """Where to look names up, and which certificates to trust there."""

    urls: tuple[str, ...]
    certificates: str | None = None


class UnknownError(Exception):
    """An index did not say whether it has a name."""


class MainIndex:
    """Looks names up before they are taken."""

    def __init__(self, address: str | None, allowed: tuple[str, ...] = ()) -> None:
        self._address = address
        """None: no name is looked up."""
        self._allowed = frozenset(allowed)
        self._indexes: Indexes | None = None
        self._away_until = 0.0

    async def check(self, name: str) -> None:
        """Refuse a name that the main index has. An index configured by its address must answer; if pip's own
        indexes are unreachable, as on a machine without internet, the name is accepted with a warning."""
        if self._address is None or name in self._allowed:
            return
        try:
            has_it = await self._has(name)
        except UnknownError as error:
            log.warning("could not look up %r on the main index: %s", name, redact_error(error))
            if self._address == AS_PIP:
                return
            raise ApiError(
                f"The main index did not answer whether it has {name!r}; push again later.",
                status=503,
                code="main_index_unavailable",
            ) from error
        if has_it:
            raise ForbiddenError(
                f"{name!r} is a package on the main index, and yours could be installed in its place; "
                f"choose another name, or ask an admin to allow it (proctor server --allow-name {name}).",
                code="name_on_main_index",
            )

    async def _has(self, name: str) -> bool:
        if time.monotonic() < self._away_until:
            raise UnknownError("it did not answer a moment ago")
        try:
            if self._indexes is None:
                self._indexes = await indexes_at(str(self._address))
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await look_up(self._indexes, name)
        except (TimeoutError, OSError, ValueError, InstallError, aiohttp.ClientError, UnknownError) as error:
            self._away_until = time.monotonic() + PAUSE_SECONDS
            raise UnknownError(str(error) or f"no answer within {LOOKUP_SECONDS:g} seconds") from error


def redact_error(error: Exception) -> str:
    return CREDENTIALS.sub("//****@", str(error))


async def indexes_at(address: str) -> Indexes:
    settings = await load_pip_settings()
    urls = indexes_of_pip(settings) if address == AS_PIP else (address,)
    return Indexes(urls, settings.get("cert"))


def indexes_of_pip(settings: Mapping[str, str]) -> tuple[str, ...]:
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return ()
    further = settings.get("extra-index-url", "").split()
    return (settings.get("index-url") or default_index(), *further)


def default_index() -> str:
    """The index that pip uses when nothing is configured, as pip itself knows it."""
    from pip._internal.models.index import PyPI  # heavy, and needed only where nothing is configured

    return PyPI.simple_url


async def look_up(indexes: Indexes, name: str) -> bool:
    remote = [url for url in indexes.urls if not url.startswith("file://")]
    folders = [Path(unquote(urlsplit(url).path)) for url in indexes.urls if url.startswith("file://")]
    if await asyncio.to_thread(lambda: any((folder / name).exists() for folder in folders)):
        return True
    if not remote:
        return False
    trusted = ssl.create_default_context(cafile=indexes.certificates)
    async with aiohttp.ClientSession(trust_env=True, headers={"accept": ACCEPT}) as session:
        for url in remote:
            async with session.get(f"{url.rstrip('/')}/{name}/", ssl=trusted, max_redirects=5) as response:
                if response.status == 200:
                    return True
                if response.status not in ABSENT:
                    raise UnknownError(f"it answered {response.status}")
    return False
