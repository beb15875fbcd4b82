"""Environments on a hub: what is pushed, listed and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from proctor.api.bounds import FactsTable, LogExcerpt, Name, Paragraph, ProgramText, VariableName

Visibility = Literal["public", "private"]
Role = Literal["owner", "write", "read"]
ROLE_RANK: Mapping[str, int] = {"read": 1, "write": 2, "owner": 3}
CheckStatus = Literal["pending", "running", "passed", "failed", "inconclusive"]
"""`inconclusive`: it needs a secret while it loads, which no check is given."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a version installs, loads and yields tasks, as the server found out after the push."""

    status: CheckStatus = "pending"
    message: str = ""
    tasks: int | None = None
    seconds: float | None = None
    log: str = ""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    version: str
    content_hash: str
    """Over the source's files and the wheel's, computed by the server."""
    wheel_name: str
    wheel_sha256: str
    wheel_size: int
    source_sha256: str
    source_size: int
    requires_python: str = ""
    dependencies: list[str] = []
    secrets: list[str] = []
    """Names of secrets it says it needs: `[tool.proctor] secrets`."""
    pushed_by: str
    created_at: float
    check: Check = Check()


class EnvironmentInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    owner: str
    name: str
    visibility: Visibility
    description: str = ""
    tags: list[str] = []
    role: Role | None = None
    """What the caller may do; None for a public one that is nobody's of theirs."""
    latest: Version | None = None
    forked_from: str | None = None
    created_at: float
    updated_at: float

    @property
    def slug(self) -> str:
        return f"{self.owner}/{self.name}"


class PushResult(msgspec.Struct, frozen=True, kw_only=True):
    environment: EnvironmentInfo
    version: Version
    created: bool
    """False: exactly this was there already, and nothing was changed."""


class EnvironmentChange(msgspec.Struct, frozen=True, kw_only=True):
    visibility: Visibility | None = None
    description: Paragraph | None = None


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for a copy in one's own namespace; it keeps its name, since its wheel does."""

    team: Name | None = None
    version: Name | None = None


class Collaborator(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who was given a role on one environment: a user's or a team's name."""

    name: Name
    role: Role


class FileEntry(msgspec.Struct, frozen=True):
    path: str
    size: int


class FileText(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a version, or what lies in a folder of it."""

    path: str
    entries: list[FileEntry] | None = None
    text: str | None = None
    """None for a folder, and for what is no text."""
    size: int = 0
    truncated: bool = False


class PushForm(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a push that is no file."""

    owner: Name | None = None
    """A team's name or one's own; None: one's own."""
    visibility: Visibility | None = None
    """None: as it is; private where it is new."""
    content_hash: Name
    """As the client has it; the server computes its own and refuses another."""


# What a host of runs does after a push


class CheckAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """A version to be tried out."""

    version_id: str
    environment: str
    version: str
    module: str
    wheel_name: str
    wheel_sha256: str
    variables: Mapping[str, str] = {}
    """Of the environment; secrets are not for checks, whose log every reader of the environment reads."""
    secrets: list[str] = []
    """Names of the secrets that it says it needs."""
    lease_seconds: float


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    passed: bool
    message: ProgramText
    needs_secret: VariableName = ""
    """A declared secret that it could not be loaded without, so that nothing is known of it."""
    tasks: int | None = None
    seconds: float
    log: LogExcerpt = ""
    lock: LogExcerpt | None = None
    """What is installed, as `pip freeze` tells it."""
    facts: FactsTable = {}
    """`mean_prompt_characters`, for estimates."""
