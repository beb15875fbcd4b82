"""Load a rollout as an environment: its entrypoint, and the selected rows of its dataset.

It is registered as the environment `workflow`; recipes are translated into its arguments. Knows nothing of
recipes or repositories.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from proctor.client.dataset_files import locate
from proctor.datasets.dataset import DatasetReport, SelectedTasks, validate
from proctor.datasets.selection import Limit, RowSelection, parse_ranges, select_rows
from proctor.errors import ConfigError
from proctor.packages.loading import hash_files, is_own_file
from proctor.store.metadata import git_commit
from proctor.workflow.entrypoint import import_entrypoint
from proctor.workflow.environment import WorkflowEnvironment
from proctor.workflow.foreign import dialect_of_rollout, locate_rollout
from proctor.workflow.server_environment import ServerEnvironment

SOURCES = (".py", ".toml")
PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
LOOPBACK = "127.0.0.1"


def load_environment(
    folder: str,
    entrypoint: str,
    dataset: str,
    sha256: str = "",
    limit: Limit = None,
    seed: int = 0,
    offset: int = 0,
    rows: str = "",
    env: Mapping[str, str] | None = None,
) -> WorkflowEnvironment | ServerEnvironment:
    """The environment of a rollout.

    `folder` holds the entrypoint; `dataset` is a file, or `owner/name@hash` on a server. If its content does
    not have the given `sha256`, it is refused. The others select rows; `env` is set for the rollout's code.
    """
    project, located = Path(folder).resolve(), locate(dataset, os.environ)
    report = read_report(located.path, sha256)
    named = parse_ranges(rows) if rows else ()
    selection = select_rows(
        report.rows, limit, content_hash=report.sha256, seed=seed, offset=offset, rows=named
    )
    os.environ.update(env or {})  # the rollout's code runs in this process
    reach_loopback_directly(os.environ)
    tasks = SelectedTasks(located.path, selection, report.mode)
    environment = make_environment(project, entrypoint, tasks)
    environment.provenance = build_provenance(project, entrypoint, located.name, report, selection)
    environment.selection = f"{selection.describe()}: {selection.short_ranges}"
    return environment


def make_environment(
    project: Path, entrypoint: str, tasks: SelectedTasks
) -> WorkflowEnvironment | ServerEnvironment:
    """The rows, played by what the entrypoint offers: two classes, a server, or one of another framework."""
    dialect = dialect_of_rollout(project, entrypoint)
    if dialect is not None:
        foreign: Any = dialect.load(locate_rollout(project, entrypoint), {"tasks": tasks})
        served: ServerEnvironment = foreign
        return served
    classes = import_entrypoint(project, entrypoint)
    if classes is None:
        return ServerEnvironment(tasks, project / entrypoint)
    return WorkflowEnvironment(tasks, classes.workflow, classes.grader, project)


def reach_loopback_directly(environ: MutableMapping[str, str]) -> None:
    """The model's address is on this machine: clients that honor a proxy must not ask it there."""
    if not any(environ.get(name) for name in PROXIES):
        return
    for name in ("no_proxy", "NO_PROXY"):
        known = [each for each in environ.get(name, "").split(",") if each]
        if LOOPBACK not in known and "*" not in known:
            environ[name] = ",".join([*known, LOOPBACK])


def read_report(file: Path, sha256: str) -> DatasetReport:
    """What a valid dataset holds."""
    report = validate(file)
    report.raise_if_invalid()
    if sha256 and sha256 != report.sha256:
        raise ConfigError(f"{file} has changed: its SHA-256 is {report.sha256}, and {sha256} is needed.")
    return report


def build_provenance(
    project: Path, entrypoint: str, dataset: str, report: DatasetReport, selection: RowSelection
) -> dict[str, Any]:
    """Which code and which rows a run is of."""
    return {
        "content_hash": hash_files(list_source_files(project)),
        "git_commit": git_commit(project),
        "rollout": project.name,
        "entrypoint": entrypoint,
        "dataset": {"name": dataset, "sha256": report.sha256, "rows": report.rows},
        "rows": selection.ranges,
        "sampling_seed": selection.seed,
    }


def list_source_files(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in SOURCES and file.is_file() and is_own_file(file.relative_to(folder))
    )
