"""Git repositories that a server takes rollouts from, and the runs of their recipes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from proctor.api.bounds import Name, SettingsTable, Variables
from proctor.api.runs import DEFAULT_TIMEOUT_MINUTES, Estimate, Permissions, RunDataset

Address = Annotated[str, Meta(max_length=2_000)]
Commit = Annotated[str, Meta(max_length=40)]
Credential = Annotated[str, Meta(max_length=16_384)]


class NewSource(msgspec.Struct, frozen=True, kw_only=True):
    """A git repository to take rollouts from."""

    url: Address
    """https, ssh, or a path on the server that its operator allowed."""
    name: Name = ""
    """Empty for the repository's own."""
    team: Name | None = None
    """The team that owns it; None for yourself."""
    token: Credential = ""
    """Over https, a token that may read the repository."""
    username: Name = ""
    """Over https, the user beside the token, if the repository's server asks for one."""
    key: Credential = ""
    """For ssh: a private key, such as a deploy key."""


class SourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A git repository that rollouts are taken from."""

    id: str
    name: str
    owner: str
    url: str
    repository: str
    """The same for every spelling of the address."""
    has_credentials: bool
    branch: str = ""
    """That was fetched last."""
    commit_sha: str = ""
    author: str = ""
    subject: str = ""
    committed_at: float | None = None
    rollouts: list[str] = []
    problem: str = ""
    """Why the last fetch failed."""
    synced_at: float | None = None
    created_at: float
    webhook_url: str = ""
    branches: list[str] = []
    syncing_since: float | None = None
    """When the sync began that is under way."""


class SourceCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of a source."""

    commit_sha: str
    author: str = ""
    subject: str = ""
    committed_at: float | None = None


class SourceRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe of a commit."""

    path: str
    recipe: Mapping[str, Any] = {}
    """As the file has it, to submit."""
    problem: str = ""
    """Why it cannot be played, if so."""


class SourceContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit holds."""

    commit: SourceCommit
    rollouts: list[str]
    recipes: list[SourceRecipe]


SyncStatus = Literal["running", "succeeded", "failed", "interrupted"]


class SourceSync(msgspec.Struct, frozen=True, kw_only=True):
    """One fetch of a source, and its log."""

    id: str
    cause: str
    """Who asked: a user, or `webhook`."""
    branch: str = ""
    status: SyncStatus
    log: list[str] = []
    commit_sha: str = ""
    started_at: float
    ended_at: float | None = None


class RowsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows would a recipe play?"""

    recipe: SettingsTable
    dataset: Name = ""
    """owner/name, or owner/name@hash; empty for the one that the recipe names."""
    rows: Name = ""
    offset: int = 0


class SelectedRows(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a dataset, and the rows of it, that a recipe plays."""

    dataset: RunDataset
    total: int
    rule: str
    """In words."""
    ranges: str
    """As --rows has them, the first ones."""


class AddedSource(msgspec.Struct, frozen=True, kw_only=True):
    source: SourceInfo
    webhook_secret: str
    """To sign webhooks with; it is shown only once."""


class SyncRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Fetch a source now."""

    branch: Name = ""
    """Empty for its default branch."""


class NewSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe to play: its code is taken from a commit, its values from here."""

    source: Name
    """The id of a source, or owner/name."""
    recipe: SettingsTable
    """With experiment, evaluation, env, secrets and advanced, as the file has them."""
    dataset: RunDataset
    branch: Name = ""
    commit_sha: Commit = ""
    """All 40 digits; empty for the newest commit of the branch."""
    rows: Name = ""
    offset: int = 0
    name: Name = ""
    """Empty for one that the server makes."""
    custom_secrets: Variables = {}
    permissions: Permissions = Permissions()
    timeout_minutes: int = DEFAULT_TIMEOUT_MINUTES
    max_cost_usd: float | None = None


class SubmissionPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a submission would play."""

    commit_sha: str
    branch: str
    author: str = ""
    subject: str = ""
    environment: str
    version: str
    model: str
    estimate: Estimate
    missing_secrets: list[str] = []
