"""Run in a sandbox: fetch one commit, list its rollouts, and pack one of them.

    python -m proctor.runner.repository.inside < REQUEST

Started in a folder of its own; writes its answer there. Knows nothing of servers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from msgspec.structs import replace

from proctor.errors import ConfigError, did_you_mean
from proctor.projects.layout import ROLLOUTS
from proctor.runner.repository.git import Repository, RepositoryError
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


def fetch(request: FetchRequest, folder: Path) -> FetchedCommit:
    repository = Repository(folder, request)
    branch = request.branch
    if not request.commit and not branch:
        branch = repository.find_default_branch()
    commit = repository.fetch()
    author, subject, committed_at = repository.describe(commit)
    rollouts = list_rollouts(repository, commit)
    fetched = FetchedCommit(
        commit=commit,
        branch=branch,
        author=author,
        subject=subject,
        committed_at=committed_at,
        rollouts=rollouts,
        known_hosts=repository.known_hosts,
    )
    return pack_rollout(repository, request, fetched, folder) if request.rollout else fetched


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
    folder = Path.cwd()
    try:
        outcome = FetchOutcome(fetched=fetch(request, folder))
    except RepositoryError as error:
        outcome = FetchOutcome(problem=error.problem)
    (folder / RESULT_FILE).write_bytes(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
