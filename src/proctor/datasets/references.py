"""Names of datasets on a server: `owner/name`, or `owner/name@version`, where a version is a hash.

Knows nothing of servers.
"""

from __future__ import annotations

import re

import msgspec

from proctor.errors import ConfigError

LATEST = "latest"
SHORT_HASH = 12
REFERENCE = re.compile(
    r"(?P<owner>[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?)"
    r"/(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)"
    r"(?:@(?P<version>[0-9a-f]{8,64}))?"
)


class DatasetReference(msgspec.Struct, frozen=True):
    """A dataset on a server."""

    owner: str
    name: str
    version: str = LATEST

    @property
    def slug(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def is_pinned(self) -> bool:
        """Whether it names a content, rather than the latest."""
        return self.version != LATEST

    def pin(self, sha256: str) -> DatasetReference:
        return DatasetReference(self.owner, self.name, sha256)

    def __str__(self) -> str:
        return f"{self.slug}@{self.version}" if self.is_pinned else self.slug

    @property
    def short(self) -> str:
        """With no more of the hash than people read."""
        return f"{self.slug}@{self.version[:SHORT_HASH]}" if self.is_pinned else self.slug


def find_reference(text: str) -> DatasetReference | None:
    """The reference that a text is, if it is one."""
    found = REFERENCE.fullmatch(text)
    return (
        None if found is None else DatasetReference(found["owner"], found["name"], found["version"] or LATEST)
    )


def parse_reference(text: str) -> DatasetReference:
    reference = find_reference(text)
    if reference is None:
        raise ConfigError(
            f"{text!r} is not a dataset on a server; write owner/name or owner/name@hash, with at least 8 "
            f"characters of the hash."
        )
    return reference
