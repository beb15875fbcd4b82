"""metadata.json: what was run, how, with which versions, and the result.

The numbers in it are a copy for readers; every report is computed from the rows again.
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from proctor.config import headers
from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig
from proctor.report.summary import Summary
from proctor.run import Run

PACKAGES = ("proctor", "aiohttp", "msgspec", "uvloop")


def run_identity(config: EvalConfig, endpoint: Endpoint) -> dict[str, Any]:
    """What makes two runs comparable row by row; see store/resume_rules.py."""
    return {
        "env_id": config.env_id,
        "name": config.name,
        "label": config.label,
        "env_args": dict(config.env_args),
        "extra_env_kwargs": dict(config.extra_env_kwargs),
        "agent": config.agent,
        "agent_args": dict(config.agent_args),
        "max_steps": config.max_steps,
        "model": endpoint.model,
        "base_url": endpoint.address,
        "api_client_type": endpoint.client_type,
        "sampling_args": config.sampling(),
        "num_examples": config.num_examples,
        "rollouts_per_example": config.rollouts_per_example,
        "task_ids": list(config.task_ids),
        "shuffle": config.shuffle,
        "seed": config.seed,
    }


def opening_metadata(
    run: Run,
    config: EvalConfig,
    endpoint: Endpoint,
    environment: Mapping[str, Any],
    origins: Mapping[str, str],
) -> dict[str, Any]:
    """The part that is known before the first rollout."""
    return {
        "run_id": run.id,
        "suite": run.suite,
        "status": run.status,
        "date": format_time(run.started_at),
        **run_identity(config, endpoint),
        "config_hash": config.config_hash,
        "state_columns": list(config.state_columns),
        "environment": dict(environment),
        "version_info": package_versions(),
        "config": msgspec.to_builtins(config, enc_hook=str)
        | {"headers": headers.redact_headers(config.headers)},
        "origins": dict(origins),
    }


def format_time(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def progress_metadata(run: Run, settled: int, planned: int | None) -> dict[str, Any]:
    """The part that changes while a run is in progress."""
    return {
        "status": run.status,
        "note": run.note,
        "time": (run.ended_at or time.time()) - run.started_at,
        "planned": planned,
        "settled": settled,
    }


def closing_metadata(summary: Summary) -> dict[str, Any]:
    """The result of a run, under familiar names and in full."""
    finished = summary.finished
    return {
        "avg_reward": summary.reward.mean,
        "avg_metrics": {name: estimate.mean for name, estimate in summary.metrics.items()},
        "avg_error": 1 - summary.scored / finished if finished else None,
        "pass_at_k": summary.pass_at_k,
        "pass_all_k": summary.pass_hat_k,
        "pass_threshold": summary.pass_threshold,
        "usage": msgspec.to_builtins(summary.usage),
        "cost": None if summary.cost_usd is None else {"total_usd": summary.cost_usd},
        "summary": msgspec.to_builtins(summary),
    }


@cache
def package_versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def git_commit(folder: Path) -> str | None:
    """The commit a folder is at, with a plus sign when it has changes that are in no commit."""
    words = ["git", "-C", str(folder), "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
