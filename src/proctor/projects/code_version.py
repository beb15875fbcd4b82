"""Which version of the code a repository is at, as git says it. Changes nothing, and reaches no network."""

from __future__ import annotations

import subprocess
from pathlib import Path

from proctor.config.experiment import Experiment

GIT_SECONDS = 10.0
SHOWN_DIGITS = 12


def run_git(root: Path, *words: str) -> str:
    """What git says, or nothing if it fails."""
    command = ("git", "-C", str(root), *words)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def describe_other_code(experiment: Experiment, root: Path) -> str:
    """How the code here differs from the version that a recipe names; empty if it does not."""
    if experiment.commit_sha is None and experiment.branch is None:
        return ""
    here = run_git(root, "rev-parse", "HEAD")
    is_changed = bool(run_git(root, "status", "--porcelain", "--", "rollouts"))
    now = f"commit {here[:SHOWN_DIGITS]}" if here else "no commit"
    now += ", with uncommitted changes" if is_changed else ""
    if experiment.commit_sha is not None:
        named, is_same = f"commit {experiment.commit_sha}", here.startswith(experiment.commit_sha.lower())
    else:
        branch = run_git(root, "branch", "--show-current")
        named, is_same = f"branch {experiment.branch}", branch == experiment.branch
        now = f"branch {branch or '(none)'}, {now}"
    if is_same and here and not is_changed:
        return ""
    return f"it names {named}, and a local run plays the files that are here ({now})."
