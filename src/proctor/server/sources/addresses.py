"""Which repositories users may add: on the public internet, or where the operator allowed it."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from proctor.api.sources import NewSource
from proctor.server.problems import InvalidError
from proctor.server.settings import Settings
from proctor.support.addresses import may_connect
from proctor.support.git_urls import GitUrl, parse_git_url


async def check_source_url(new: NewSource, settings: Settings) -> GitUrl:
    """The address, if this server may fetch from it with what was given."""
    try:
        found = parse_git_url(new.url)
    except ValueError as error:
        raise InvalidError(f"{new.url!r} {error}.", field="url") from None
    if found.has_password:
        raise InvalidError("The address holds credentials; pass them as the source's token.", field="url")
    check_credentials(new, found)
    if found.scheme == "file":
        check_local_path(found, settings)
    elif found.host not in settings.source_hosts:
        await check_public(found)
    return found


def check_credentials(new: NewSource, found: GitUrl) -> None:
    if new.token and found.scheme not in ("https", "http"):
        raise InvalidError("A token is for https; ssh needs a key.", field="token")
    if new.key and found.scheme != "ssh":
        raise InvalidError("A key is for ssh; https takes a token.", field="key")
    if found.scheme == "ssh" and not new.key:
        raise InvalidError(
            "A repository on ssh needs a private key, such as a deploy key that may read it.", field="key"
        )
    if any(character in new.token + new.username for character in "\r\n\0") or ":" in new.username:
        raise InvalidError(
            "The token or the user name has characters that no header may have.", field="token"
        )


def check_local_path(found: GitUrl, settings: Settings) -> None:
    """Without links: what is checked is what is fetched."""
    real = Path(os.path.realpath(found.path))
    allowed = [Path(os.path.realpath(folder)) for folder in settings.source_paths]
    if not any(real.is_relative_to(folder) for folder in allowed):
        raise InvalidError(
            f"Repositories in {found.path} cannot be added; the server's operator can allow a folder with "
            f"--allow-source-path.",
            field="url",
            code="forbidden_source",
        )
    if str(real) != found.path:
        raise InvalidError(f"{found.path} leads through a link; name {real}.", field="url")


async def check_public(found: GitUrl) -> None:
    hint = f"the server's operator can allow it with --allow-source-host {found.host}."
    if found.scheme == "http":
        raise InvalidError(
            f"{found.url} is not encrypted; use https, or {hint}", field="url", code="forbidden_source"
        )
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(found.host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        raise InvalidError(
            f"The host {found.host!r} cannot be resolved; check its spelling.", field="url"
        ) from None
    if not all(may_connect(str(where[0])) for *_, where in addresses):
        raise InvalidError(
            f"The host {found.host!r} is not on the public internet; {hint}",
            field="url",
            code="forbidden_source",
        )
