"""Environments on a hub: what is pushed, listed and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from proctor.api.bounds import (
    MEGABYTE,
    MOST_BYTES,
    FactsTable,
    LogExcerpt,
    Name,
    Paragraph,
    ProgramText,
    SettingsTable,
    TaskText,
    VariableName,
)
from proctor.api.run_list import FacetValue

Visibility = Literal["public", "private"]
Role = Literal["owner", "write", "read"]
RunPolicy = Literal["readers", "writers"]
"""Who may run an environment on the server: users who may read it, or only those who may change it."""
ROLE_RANK: Mapping[str, int] = {"read": 1, "write": 2, "owner": 3}
CheckStatus = Literal["pending", "running", "passed", "failed", "inconclusive"]
"""`inconclusive`: it needs a secret to load, and checks have none."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a version installs, loads and yields tasks, as checked by the server after the push."""

    status: CheckStatus = "pending"
    message: str = ""
    tasks: int | None = None
    seconds: float | None = None
    log: str = ""


# What a check learns of a version, for people who are about to run it

MOST_PARTS = 200
"""Arguments, rewards or tools of a version that are kept."""
LARGEST_DETAILS = MEGABYTE // 4


class ArgumentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of `load_environment()`."""

    name: Name
    type: TaskText | None = None
    """As written in the source; None if it has no annotation."""
    default: TaskText | None = None
    """As written in the source; None if a run must give a value."""


class RewardPart(msgspec.Struct, frozen=True, kw_only=True):
    """One function of the rubric."""

    name: Name
    weight: float | None
    """None if it is not a finite number."""
    is_grouped: bool = False
    """It compares the rollouts of a task."""


class ToolPart(msgspec.Struct, frozen=True, kw_only=True):
    name: Name
    description: TaskText = ""


class ExampleMessage(msgspec.Struct, frozen=True, kw_only=True):
    role: Name
    text: ProgramText


class ExamplePlay(msgspec.Struct, frozen=True, kw_only=True):
    """The first task."""

    prompt: Annotated[list[ExampleMessage], Meta(max_length=MOST_PARTS)]
    answer: TaskText = ""
    is_cut: bool = False
    """It is longer than what is kept of it."""


class VersionDetails(msgspec.Struct, frozen=True, kw_only=True):
    """How a version is played: what its source states, and, if it could be loaded, what it says about
    itself."""

    arguments: Annotated[list[ArgumentInfo], Meta(max_length=MOST_PARTS)] = []
    takes_any: bool = False
    """`load_environment()` accepts arguments that it does not name."""
    defaults: SettingsTable = {}
    """The package's own settings for an evaluation."""
    kind: Name = ""
    """The class of the environment; empty if it could not be loaded."""
    example: ExamplePlay | None = None
    rewards: Annotated[list[RewardPart], Meta(max_length=MOST_PARTS)] = []
    tools: Annotated[list[ToolPart], Meta(max_length=MOST_PARTS)] = []
    max_turns: int | None = None
    pass_threshold: float | None = None


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
    """Names of the secrets it declares: `[tool.proctor] secrets`."""
    pushed_by: str
    created_at: float
    check: Check = Check()
    details: VersionDetails | None = None
    """What its check learned of how it is played; None until then, and in lists."""


class EnvironmentFacets(msgspec.Struct, frozen=True, kw_only=True):
    """The tags, owners and visibilities among the environments that you may read, with their numbers."""

    tag: list[FacetValue]
    owner: list[FacetValue]
    visibility: list[FacetValue]
    total: int


class EnvironmentInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    owner: str
    name: str
    visibility: Visibility
    description: str = ""
    tags: list[str] = []
    role: Role | None = None
    """The caller's role; None for a public environment of others."""
    latest: Version | None = None
    forked_from: str | None = None
    run_policy: RunPolicy = "readers"
    run_policy_is_default: bool = True
    """The environment follows the server's policy."""
    created_at: float
    updated_at: float

    @property
    def slug(self) -> str:
        return f"{self.owner}/{self.name}"


class PushResult(msgspec.Struct, frozen=True, kw_only=True):
    environment: EnvironmentInfo
    version: Version
    created: bool
    """False: exactly this version existed already, and nothing was changed."""


class EnvironmentChange(msgspec.Struct, frozen=True, kw_only=True):
    visibility: Visibility | None = None
    description: Paragraph | None = None
    run_policy: RunPolicy | Literal["default"] | None = None
    """`default` follows the server's policy; None leaves it as it is."""


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """Requests a copy in your own namespace; it keeps its name, because its wheel does."""

    team: Name | None = None
    version: Name | None = None


class Collaborator(msgspec.Struct, frozen=True, kw_only=True):
    """A user or a team with a role on one environment."""

    name: Name
    role: Role


class FileEntry(msgspec.Struct, frozen=True):
    path: str
    size: int


class FileText(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a version, or the content of a folder in it."""

    path: str
    entries: list[FileEntry] | None = None
    text: str | None = None
    """None for a folder, and for binary content."""
    size: int = 0
    truncated: bool = False


class PushForm(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a push that is not a file."""

    owner: Name | None = None
    """A team's name or your own; None for your own."""
    visibility: Visibility | None = None
    """None: unchanged; private if it is new."""
    content_hash: Name
    """As the client computed it; the server computes its own and rejects a different one."""


class TaskInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of a version, as its check found it: a row from which the task can be made again, or, for one
    that comes from no template, how its prompt begins."""

    slug: TaskText
    env: TaskText = ""
    template: TaskText = ""
    args: Mapping[str, Any] = {}
    columns: Mapping[str, Any] = {}
    prompt: TaskText = ""


MOST_TASKS = 10_000
"""Tasks of a version that are listed."""
LARGEST_TASKS = 2 * MEGABYTE
TaskList = Annotated[list[TaskInfo], Meta(max_length=MOST_TASKS, extra={MOST_BYTES: LARGEST_TASKS})]


# Checks, which hosts run after a push


class CheckAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """A version for a host to check."""

    version_id: str
    environment: str
    version: str
    module: str
    wheel_name: str
    wheel_sha256: str
    variables: Mapping[str, str] = {}
    """The environment's variables; checks have no secrets, because every reader of the environment can read
    their log."""
    secrets: list[str] = []
    """Names of the secrets it declares."""
    lease_seconds: float


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check."""

    passed: bool
    message: ProgramText
    needs_secret: VariableName = ""
    """A declared secret without which it could not be loaded, so that nothing is known of it."""
    tasks: int | None = None
    seconds: float
    log: LogExcerpt = ""
    lock: LogExcerpt | None = None
    """What is installed, as printed by `pip freeze`."""
    facts: FactsTable = {}
    """`mean_prompt_characters`, for estimates."""
    task_list: TaskList = []
    """The tasks, as far as they fit."""
    details: Annotated[VersionDetails, Meta(extra={MOST_BYTES: LARGEST_DETAILS})] | None = None
    """None if not even its source could be read."""
