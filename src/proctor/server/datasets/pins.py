"""Which versions of datasets a run's settings name: resolved when it is submitted, and kept for it.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert

from proctor.datasets.references import DatasetReference, find_reference
from proctor.server.datasets.records import resolve_version
from proctor.server.db.tables import run_datasets
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, NotFoundError

ARGUMENTS = "env_args"
DATASET = "dataset"


def pin_datasets(
    connection: Connection, caller: Caller, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The settings with the whole hash of each dataset among the environment's arguments, and the versions.

    The argument `dataset` with a hash must exist. Other texts of that form may mean something else, such as a
    repository, and are left as they are.
    """
    arguments = settings.get(ARGUMENTS)
    if not isinstance(arguments, Mapping):
        return dict(settings), []
    pinned, versions = dict(arguments), []
    for name, value in arguments.items():
        reference = find_reference(value) if isinstance(value, str) else None
        if reference is None or not (reference.is_pinned or name == DATASET):
            continue
        found = find_pin(connection, caller, reference, required=reference.is_pinned and name == DATASET)
        if found is not None:
            pinned[name] = str(reference.pin(found[1]))
            versions.append(found[0])
    return {**settings, ARGUMENTS: pinned}, list(dict.fromkeys(versions))


def find_pin(
    connection: Connection, caller: Caller, reference: DatasetReference, *, required: bool
) -> tuple[str, str] | None:
    """The id and the hash of a version."""
    try:
        _, row = resolve_version(connection, caller, reference.owner, reference.name, reference.version)
    except (NotFoundError, ConflictError):
        if required:
            raise
        return None
    return row.id, row.sha256


def save_pins(connection: Connection, run_id: str, versions: Sequence[str]) -> None:
    for version_id in versions:
        connection.execute(insert(run_datasets).values(run_id=run_id, version_id=version_id))
