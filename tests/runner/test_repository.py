"""What a host fetches from repositories, and what hostile ones achieve."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from proctor.isolation.limits import RunLimits
from proctor.runner.repository.fetch import FetchLimitError, FetchResult, RepositoryRules, fetch_commit
from proctor.runner.repository.git import RepositoryError
from proctor.runner.repository.request import FetchRequest
from tests.runner.repositories import MAIN, Checkout, make_checkout

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("repositories")]

RULES = RepositoryRules(seconds=60)


def fetch(checkout: Checkout, rules: RepositoryRules = RULES, **asked: Any) -> FetchResult:
    request = FetchRequest(url=f"file://{checkout.remote}", package="agents-math", **asked)
    return asyncio.run(fetch_commit(request, rules))


def refused(checkout: Checkout, **asked: Any) -> RepositoryError:
    with pytest.raises(RepositoryError) as caught:
        fetch(checkout, **asked)
    return caught.value


def test_the_newest_commit_of_the_default_branch_is_fetched_and_its_rollouts_are_listed(
    tmp_path: Path,
) -> None:
    checkout = make_checkout(tmp_path)

    found = fetch(checkout).commit

    assert found.commit == checkout.git("rev-parse", "HEAD")
    assert (found.branch, found.author, found.subject) == ("main", "Ada", "Add a rollout")
    assert [each.name for each in found.rollouts] == ["math", "other"]


def test_a_pinned_commit_is_fetched_although_newer_ones_exist(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    first = checkout.git("rev-parse", "HEAD")
    checkout.commit({"rollouts/math/main.py": MAIN + "# changed\n"})
    checkout.push()

    old, new = fetch(checkout, commit=first, rollout="math"), fetch(checkout, rollout="math")

    assert old.commit.commit == first != new.commit.commit
    assert b"# changed" not in read_main(old.wheel)
    assert b"# changed" in read_main(new.wheel)


def test_a_rollout_that_did_not_change_is_the_same_wheel_at_another_commit(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    first = fetch(checkout, rollout="math")
    checkout.commit({"README.md": "Something else.\n"})
    checkout.push()

    second = fetch(checkout, rollout="math")

    assert first.commit.commit != second.commit.commit
    assert (first.wheel, first.source) == (second.wheel, second.source)


def test_what_is_not_pushed_is_refused_by_name(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    unpushed = checkout.commit({"rollouts/math/main.py": "# not pushed\n"})

    assert refused(checkout, commit=unpushed).problem.code == "unknown_commit"
    assert unpushed[:12] in str(refused(checkout, commit=unpushed))
    assert "no branch 'feature'" in str(refused(checkout, branch="feature"))
    assert "did you mean 'math'" in str(refused(checkout, rollout="maths"))


def test_a_default_branch_without_a_commit_is_refused_though_another_branch_has_one(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    subprocess.run(("git", "-C", checkout.remote, "symbolic-ref", "HEAD", "refs/heads/trunk"), check=True)

    assert "has no commit on its default branch; push one" in str(refused(checkout))
    assert fetch(checkout, branch="main").commit.branch == "main"


def test_links_and_submodules_in_a_rollout_are_refused_and_elsewhere_ignored(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    (checkout.folder / "linked").symlink_to("/etc/passwd")
    checkout.commit()
    checkout.push()
    assert fetch(checkout, rollout="math").wheel

    (checkout.folder / "rollouts/math/passwd").symlink_to("/etc/passwd")
    checkout.commit()
    checkout.push()
    assert "rollouts/math/passwd is a link" in str(refused(checkout, rollout="math"))

    checkout.push_tree(("160000", "commit", checkout.git("rev-parse", "HEAD"), "sub"))
    assert "rollouts/math/sub is a submodule" in str(refused(checkout, rollout="math"))


def test_a_path_that_leads_out_of_the_rollout_is_refused(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    evil = checkout.git("mktree", stdin=f"100644 blob {checkout.blob('evil')}\tmain.py\n".encode())

    checkout.push_tree(("40000", "tree", evil, ".."))

    assert "'../main.py' is not a valid path" in str(refused(checkout, rollout="math"))


def test_a_small_tree_that_lists_billions_of_files_is_refused_within_seconds(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    lines = "".join(f"100644 blob {checkout.blob('x')}\t{number}\n" for number in range(10))
    for _ in range(9):
        tree = checkout.git("mktree", stdin=lines.encode())
        lines = "".join(f"040000 tree {tree}\t{number}\n" for number in range(10))

    checkout.push_tree(("40000", "tree", tree, "bomb"))

    assert "more than 5,000 files" in str(refused(checkout, rollout="math"))


def test_filters_hooks_and_lfs_pointers_run_nothing(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    hook = checkout.remote / "hooks/post-upload-pack"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    checkout.commit({".gitattributes": "* filter=lfs\n", ".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:1\n"})
    checkout.push()
    assert fetch(checkout, rollout="math").wheel
    assert not (tmp_path / "ran").exists()

    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    checkout.commit({"rollouts/math/weights.bin": pointer})
    checkout.push()
    assert "weights.bin is kept in Git LFS" in str(refused(checkout, rollout="math"))


def test_a_long_history_is_not_fetched_and_a_large_commit_ends_at_the_limit(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    noise = tmp_path / "checkout/noise"
    noise.write_bytes(os.urandom(24 * 2**20))
    checkout.commit()
    noise.unlink()
    checkout.commit()
    checkout.push()
    small = replace(RULES, limits=RunLimits(memory_mb=1024, processes=64, disk_mb=16))
    assert fetch(checkout, small).commit.rollouts

    noise.write_bytes(os.urandom(24 * 2**20))
    checkout.commit()
    checkout.push()
    with pytest.raises((FetchLimitError, RepositoryError)):
        fetch(checkout, small)


def test_a_repository_whose_server_is_silent_is_given_up(tmp_path: Path) -> None:

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/agents.git"
        rules = replace(RULES, seconds=2, allowed_hosts=("127.0.0.1",))

        with pytest.raises(FetchLimitError, match="took longer than 2 seconds"):
            asyncio.run(fetch_commit(FetchRequest(url=url), rules))


def test_a_server_in_the_private_network_is_not_connected_to_unless_the_operator_allows_it(
    tmp_path: Path,
) -> None:

    with socket.create_server(("127.0.0.1", 0)) as inner:
        inner.settimeout(0.1)
        url = f"http://127.0.0.1:{inner.getsockname()[1]}/agents.git"

        with pytest.raises(RepositoryError) as caught:
            asyncio.run(fetch_commit(FetchRequest(url=url), RULES))

        assert caught.value.problem.code in ("source_unreachable", "source_denied")
        with pytest.raises(TimeoutError):
            inner.accept()


def read_main(wheel: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(wheel)) as packed:
        return packed.read("agents_math/rollout/main.py")
