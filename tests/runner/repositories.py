"""Git repositories for tests: a checkout with a bare repository as its remote, and hostile trees."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

MAIN = """\
from proctor import AgentWorkflow, Grader


class Workflow(AgentWorkflow):
    async def run(self, ctx):
        return [*ctx.prompt, {"role": "assistant", "content": "four"}]


class Check(Grader):
    async def grade(self, ctx):
        ctx.set_reward(1.0 if ctx.label in ctx.sample.text else 0.0)
"""
PYPROJECT = """\
[project]
name = "math"
version = "0.1.0"
dependencies = ["proctor"]
"""


class Checkout:
    """A folder with a repository, and a bare one that it pushes to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.remote = folder / "remote.git"
        self.folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        subprocess.run(("git", "init", "--quiet", "--bare", "--initial-branch=main", self.remote), check=True)
        self.git("remote", "add", "origin", str(self.remote))

    def git(self, *words: str, stdin: bytes = b"") -> str:
        own = {
            name: value
            for role in ("AUTHOR", "COMMITTER")
            for name, value in (
                (f"GIT_{role}_NAME", "Ada"),
                (f"GIT_{role}_EMAIL", "ada@example.org"),
                (f"GIT_{role}_DATE", "2026-01-02T03:04:05Z"),
            )
        }
        told = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ("git", *words),
            cwd=self.folder,
            env={**os.environ, **own, **told},
            input=stdin,
            capture_output=True,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.decode().strip()

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: Mapping[str, str] | None = None, message: str = "Change the rollout") -> str:
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def push(self, branch: str = "main") -> None:
        self.git("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")

    def push_tree(self, *entries: tuple[str, str, str, str], at: str = "rollouts/math") -> str:
        """Push a commit whose folder has these entries (mode, kind, hash, name), however invalid."""
        raw = b"".join(
            f"{mode} {name}\0".encode() + bytes.fromhex(hash_)
            for mode, _, hash_, name in sorted(entries, key=lambda entry: entry[3])
        )
        tree = self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=raw)
        for name in reversed(at.split("/")):
            tree = self.git("mktree", stdin=f"040000 tree {tree}\t{name}\n".encode())
        commit = self.git("commit-tree", "-m", "Hostile", tree)
        self.git("push", "--quiet", "--force", "origin", f"{commit}:refs/heads/main")
        return commit

    def blob(self, text: str) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=text.encode())


def make_checkout(folder: Path, main: str = MAIN) -> Checkout:
    """A repository with one rollout, pushed."""
    checkout = Checkout(folder)
    checkout.commit(
        {
            "rollouts/math/main.py": main,
            "rollouts/math/pyproject.toml": PYPROJECT,
            "rollouts/other/main.py": MAIN,
        },
        "Add a rollout",
    )
    checkout.push()
    return checkout
