"""Addresses of git repositories: which one a spelling means, whatever way it is reached by. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

SHORT_SSH = re.compile(r"(?:(?P<user>[\w.-]+)@)?(?P<host>[\w.-]+):(?P<path>(?!//|:)[^\s]+)")
"""As in git@host:owner/name.git."""
SCHEMES = ("https", "http", "ssh", "file")


class GitUrl(NamedTuple):
    """Where a repository is."""

    url: str
    """Without credentials, as git reads it."""
    scheme: str
    host: str
    path: str
    repository: str
    """The same for every spelling of the same repository."""
    has_password: bool = False


def parse_git_url(text: str) -> GitUrl:
    """Raises ValueError with what is wrong, as the rest of a sentence."""
    text = text.strip()
    if not text or any(character.isspace() or not character.isprintable() for character in text):
        raise ValueError("is not the address of a repository")
    if text.startswith("/"):
        text = f"file://{text}"
    short = SHORT_SSH.fullmatch(text)
    if short is not None and "://" not in text:
        text = f"ssh://{short['user'] or 'git'}@{short['host']}/{short['path'].lstrip('/')}"
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError("must begin with https://, ssh:// or /, or look like git@host:owner/name.git")
    host = parts.hostname or ""
    if (parts.scheme == "file") == bool(host) or host.startswith("-") or parts.query or parts.fragment:
        raise ValueError("is not the address of a repository")
    path = parts.path.rstrip("/")
    if not path.strip("/") or ".." in path.split("/"):
        raise ValueError("names no repository")
    named = f"{parts.username}@" if parts.scheme == "ssh" and parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    return GitUrl(
        url=urlunsplit((parts.scheme, f"{named}{host}{port}", path, "", "")) if host else f"file://{path}",
        scheme=parts.scheme,
        host=host,
        path=path,
        repository=f"{host.lower()}{port}{path}".removesuffix(".git"),
        has_password=bool(parts.password) or (parts.scheme in ("http", "https") and bool(parts.username)),
    )
