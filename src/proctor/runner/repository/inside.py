"""Run in a sandbox: fetch one commit, list its rollouts, and pack one of them.

    python -m proctor.runner.repository.inside < REQUEST

Started in a folder of its own; writes its answer there. Knows nothing of servers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
from msgspec.structs import replace

from proctor.errors import ConfigError, did_you_mean
from proctor.projects.layout import ROLLOUTS
from proctor.runner.repository.git import Repository, RepositoryError
from proctor.runner.repository.recipes import list_recipes
from proctor.runner.repository.request import (
    RESULT_FILE,
    SOURCE_FILE,
    WHEEL_FILE,
    FetchedCommit,
    FetchOutcome,
    FetchRequest,
    RolloutTree,
)
from proctor.runner.repository.rollout_package import describe_package, write_package

MOST_FILES, MOST_BYTES = 5_000, 100 * 2**20
MOST_ROLLOUTS = 1_000
MOST_BRANCHES, MOST_HISTORY = 200, 50


class StepLog:
    """What was done, a line each, with the seconds since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self.lines: list[str] = []

    def add(self, text: str) -> None:
        self.lines.append(f"{time.monotonic() - self._start:6.1f} s  {text}")


def fetch(request: FetchRequest, folder: Path, log: StepLog) -> FetchedCommit:
    repository = Repository(folder, request)
    branch = request.branch
    if not request.commit and not branch:
        branch = repository.find_default_branch()
        log.add(f"{request.url} answers; its default branch is {branch or 'unknown'}")
    commit = repository.fetch()
    author, subject, committed_at = repository.describe(commit)
    log.add(f"Fetched commit {commit[:12]} by {author}: {subject}")
    rollouts, recipes = list_rollouts(repository, commit), list_recipes(repository, commit)
    bad = [each for each in recipes if each.problem]
    log.add(f"Found {len(rollouts)} rollouts and {len(recipes)} recipes")
    for each in bad:
        log.add(f"{each.path} cannot be played: {each.problem}")
    fetched = FetchedCommit(
        commit=commit,
        branch=branch,
        author=author,
        subject=subject,
        committed_at=committed_at,
        rollouts=rollouts,
        recipes=recipes,
        known_hosts=repository.known_hosts,
    )
    if request.with_history:
        fetched = add_history(repository, fetched, log)
    return pack_rollout(repository, request, fetched, folder) if request.rollout else fetched


def add_history(repository: Repository, fetched: FetchedCommit, log: StepLog) -> FetchedCommit:
    """Without it, a sync still has what it is for; so what goes wrong here is only logged."""
    try:
        branches = repository.list_branches(MOST_BRANCHES)
        history = repository.list_history(fetched.commit, MOST_HISTORY)
    except RepositoryError as error:
        log.add(f"The commits before it cannot be listed: {error}")
        return fetched
    log.add(f"Listed {len(branches)} branches and {len(history)} commits")
    return replace(fetched, branches=branches, history=history)


def list_rollouts(repository: Repository, commit: str) -> list[RolloutTree]:
    tree = repository.find_tree(commit, ROLLOUTS)
    if tree is None:
        return []
    entries = repository.list_folder(tree)
    found = [RolloutTree(name, hash_) for kind, hash_, name in entries if kind == b"tree"]
    return [each for each in found if not each.name.startswith((".", "_"))][:MOST_ROLLOUTS]


def pack_rollout(
    repository: Repository, request: FetchRequest, fetched: FetchedCommit, folder: Path
) -> FetchedCommit:
    where = f"{ROLLOUTS}/{request.rollout}"
    tree = next((each.tree for each in fetched.rollouts if each.name == request.rollout), None)
    if tree is None:
        near = did_you_mean(request.rollout, [each.name for each in fetched.rollouts])
        raise RepositoryError("unknown_rollout", f"Commit {fetched.commit[:12]} has no {where}{near}")
    files = repository.list_files(tree, where, MOST_FILES, MOST_BYTES)
    contents = {
        file.path: (content, file.is_executable) for file, content in repository.read_files(files, where)
    }
    try:
        package = describe_package(
            request.package, request.rollout, tree, {path: content for path, (content, _) in contents.items()}
        )
    except ConfigError as error:
        raise RepositoryError("bad_repository", f"{where}/{error}") from error
    packed = [(path, content, is_executable) for path, (content, is_executable) in contents.items()]
    write_package(package, packed, folder / WHEEL_FILE, folder / SOURCE_FILE)
    return replace(fetched, wheel_name=package.wheel_name, files=sorted(contents))


def main() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=FetchRequest)
    folder, log = Path.cwd(), StepLog()
    try:
        outcome = FetchOutcome(fetched=fetch(request, folder, log), log=log.lines)
    except RepositoryError as error:
        log.add(str(error))
        outcome = FetchOutcome(problem=error.problem, log=log.lines)
    (folder / RESULT_FILE).write_bytes(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
