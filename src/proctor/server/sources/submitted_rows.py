"""Which rows of which dataset a recipe plays, for people who do not have the file.

Knows nothing of HTTP or of files.
"""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection

from proctor.api.datasets import DatasetFormat
from proctor.api.runs import RunDataset
from proctor.api.sources import RowsRequest, SelectedRows
from proctor.config.experiment import Recipe
from proctor.datasets.references import LATEST, DatasetReference, find_reference
from proctor.datasets.selection import parse_ranges, select_rows
from proctor.errors import ConfigError
from proctor.server.datasets.access import find_dataset as find_by_name
from proctor.server.datasets.records import resolve_version
from proctor.server.people.tokens import Caller
from proctor.server.problems import InvalidError

MOST_LISTED = 1_000_000
"""Rows in memory: how many a version has is its pusher's word."""


class FoundVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a dataset."""

    id: str
    owner: str
    name: str
    format: DatasetFormat
    sha256: str
    rows: int | None


def find_dataset(connection: Connection, caller: Caller, word: str) -> FoundVersion:
    """The version that a recipe names: a bare name is a dataset of yours, or else of a team of yours."""
    reference = find_reference(word) or find_own(connection, caller, word)
    dataset, version = resolve_version(
        connection, caller, reference.owner, reference.name, reference.version or LATEST
    )
    return FoundVersion(
        id=version.id,
        owner=dataset.owner,
        name=dataset.name,
        format=version.format,
        sha256=version.sha256,
        rows=version.rows,
    )


def find_own(connection: Connection, caller: Caller, word: str) -> DatasetReference:
    name, _, version = word.partition("@")
    for owner in (caller.user, *sorted(caller.teams)):
        if find_by_name(connection, owner, name) is not None:
            return DatasetReference(owner, name, version or LATEST)
    raise InvalidError(
        f"There is no dataset {name!r} of yours on this server, and files in data/ are not fetched; upload "
        f"it, or choose another one.",
        field="dataset",
        code="unknown_dataset",
    )


def select_for_recipe(recipe: Recipe, version: FoundVersion, wanted: RowsRequest) -> SelectedRows:
    """Exactly the rows that the command line would select. Takes a second for a million."""
    assert version.rows is not None
    evaluation = recipe.evaluation
    try:
        selection = select_rows(
            version.rows,
            evaluation.limit,
            content_hash=version.sha256,
            seed=evaluation.seed if evaluation.limit is None else 0,
            offset=wanted.offset,
            rows=parse_ranges(wanted.rows) if wanted.rows else (),
            most_listed=MOST_LISTED,
        )
    except ConfigError as error:
        raise InvalidError(str(error), field="rows" if wanted.rows else "offset") from error
    return SelectedRows(
        dataset=RunDataset(
            owner=version.owner,
            name=version.name,
            format=version.format,
            sha256=version.sha256,
            selected_rows=len(selection),
        ),
        total=selection.total,
        rule=selection.rule,
        ranges=selection.short_ranges,
    )
