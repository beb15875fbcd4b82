"""What the process that fetches a commit is given, and what it answers. Knows nothing of git."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

RESULT_FILE, WHEEL_FILE, SOURCE_FILE = "result.json", "rollout.whl", "rollout.tar.gz"

FetchProblemCode = Literal[
    "unknown_commit",
    "unknown_branch",
    "unknown_rollout",
    "source_unreachable",
    "source_denied",
    "bad_repository",
]


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which commit to fetch, and which of its rollouts to pack."""

    url: str
    commit: str = ""
    """All 40 digits; empty for the newest of the branch."""
    branch: str = ""
    """Empty for the repository's default branch."""
    rollout: str = ""
    """Empty to pack none."""
    package: str = ""
    """The name of the package that the rollout becomes."""
    with_history: bool = False
    """Also list the branches, and the last commits before this one."""
    header: str = ""
    """An Authorization header for https."""
    key: str = ""
    """A private key for ssh."""
    known_hosts: str = ""
    """The ssh server's keys; empty to accept the first one it shows."""
    proxy: str = ""
    """Leads to the repository's server; empty for a local path."""
    ca_file: str = ""


class RolloutTree(msgspec.Struct, frozen=True):
    """A rollout of a commit."""

    name: str
    tree: str
    """The hash of its folder: the same as long as nothing in it changes."""


class FetchedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe of a commit."""

    path: str
    recipe: dict[str, Any] = {}
    """As the file has it."""
    problem: str = ""
    """Why it cannot be played."""


class CommitLine(msgspec.Struct, frozen=True, kw_only=True):
    """A commit as a log lists it."""

    commit: str
    author: str = ""
    subject: str = ""
    committed_at: float = 0.0


class FetchedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, and the rollout that was packed."""

    commit: str
    branch: str = ""
    author: str = ""
    subject: str = ""
    committed_at: float = 0.0
    rollouts: list[RolloutTree] = []
    recipes: list[FetchedRecipe] = []
    branches: list[str] = []
    history: list[CommitLine] = []
    """This commit and those before it, newest first; empty if it was not asked for, or is not available."""
    wheel_name: str = ""
    files: list[str] = []
    """Of the rollout."""
    known_hosts: str = ""


class FetchProblem(msgspec.Struct, frozen=True):
    """Why a commit could not be fetched, or a rollout not be packed."""

    code: FetchProblemCode
    message: str


class FetchOutcome(msgspec.Struct, frozen=True):
    """What the process writes before it ends."""

    fetched: FetchedCommit | None = None
    problem: FetchProblem | None = None
    log: list[str] = []
    """What was done, a line each."""
