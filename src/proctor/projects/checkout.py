"""What a checkout has that its remote has not: the files and commits that a server would not see.

Asks git, changes nothing, and reaches no network. Knows nothing of servers.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from proctor.errors import ConfigError
from proctor.projects.code_version import SHOWN_DIGITS, run_git
from proctor.projects.layout import find_project
from proctor.support.git_urls import parse_git_url

ORIGIN = "origin"
MOST_SHOWN = 10


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """A repository as it is here."""

    root: Path
    repository: str
    """Of its remote: the same for every spelling of the address."""
    branch: str
    """Empty if HEAD is detached."""
    head: str
    uncommitted: tuple[str, ...] = ()
    """Files below rollouts/ that differ from HEAD."""


def read_checkout(root: Path) -> Checkout:
    head = run_git(root, "rev-parse", "HEAD")
    if not head:
        raise ConfigError(
            f"{root} has no commit; a server takes the code from git: `git add -A && git commit`, then push."
        )
    return Checkout(
        root=root,
        repository=find_repository(root),
        branch=run_git(root, "branch", "--show-current"),
        head=head,
        uncommitted=tuple(list_uncommitted(root)),
    )


def find_repository(root: Path) -> str:
    """Of the remote `origin`; empty if there is none that a server could fetch from."""
    try:
        return parse_git_url(run_git(root, "remote", "get-url", ORIGIN)).repository
    except ValueError:
        return ""


def find_own_repository(start: Path) -> str:
    """Of the project that a folder is in; empty if it is in none."""
    try:
        return find_repository(find_project(start).root)
    except ConfigError:
        return ""


def list_uncommitted(root: Path) -> list[str]:
    listing = run_git(root, "status", "--porcelain", "--untracked-files=all", "--", "rollouts")
    return [line[2:].strip() for line in listing.splitlines()]


def resolve_commit(root: Path, commit: str) -> str:
    """All digits of a commit that may be shortened."""
    found = run_git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    if not found and len(commit) < 40:
        raise ConfigError(
            f"There is no commit {commit!r} here; `git fetch`, or write all 40 digits of commit_sha."
        )
    return found or commit.lower()


def describe_left_out(checkout: Checkout, commit: str) -> list[str]:
    """What is here and not in the commit that would be played, as sentences."""
    warnings = []
    if checkout.uncommitted:
        shown = ", ".join(checkout.uncommitted[:MOST_SHOWN])
        more = len(checkout.uncommitted) - MOST_SHOWN
        others = f" and {more} more" if more > 0 else ""
        warnings.append(f"Not committed, and left out: {shown}{others}.")
    if commit == checkout.head:
        return warnings
    if not run_git(checkout.root, "cat-file", "-t", commit):
        return [*warnings, f"Commit {commit[:SHOWN_DIGITS]} is not here; `git pull` to see what is played."]
    ahead = run_git(checkout.root, "log", "--format=%h %s", f"{commit}..HEAD").splitlines()
    if ahead:
        shown = "; ".join(ahead[:MOST_SHOWN])
        others = f"; and {len(ahead) - MOST_SHOWN} more" if len(ahead) > MOST_SHOWN else ""
        warnings.append(
            f"Not in commit {commit[:SHOWN_DIGITS]}, and left out: {shown}{others}. Push them first."
        )
    return warnings
