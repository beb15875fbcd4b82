"""Datasets on a server: what is pushed, listed and read."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from proctor.api.bounds import Paragraph
from proctor.api.hub import Role, Visibility

DatasetFormat = Literal["jsonl", "csv", "parquet"]
DATASET_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
"""Datasets are named after files, so more characters are allowed than in other names."""
LONGEST_COLUMNS = 4_000
"""Characters of the list of columns as JSON."""


class DatasetVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One content of a dataset. It never changes, and its name is its hash."""

    sha256: str
    """Of the file, computed by the server."""
    format: DatasetFormat
    size: int
    """Bytes."""
    rows: int | None = None
    """As counted by the client that pushed it; None if it did not."""
    columns: list[str] = []
    """As read by the client that pushed it; the first ones of many."""
    pushed_by: str
    created_at: float
    pushed_at: float
    """When this content was last pushed: the latest version is the one that was pushed last."""


class DatasetInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    owner: str
    name: str
    visibility: Visibility
    description: str = ""
    role: Role | None = None
    """The caller's role; None for a public dataset of others."""
    latest: DatasetVersion | None = None
    created_at: float
    updated_at: float

    @property
    def slug(self) -> str:
        return f"{self.owner}/{self.name}"


class DatasetPushResult(msgspec.Struct, frozen=True, kw_only=True):
    dataset: DatasetInfo
    version: DatasetVersion
    created: bool
    """False: the dataset had exactly this content already."""


class DatasetChange(msgspec.Struct, frozen=True, kw_only=True):
    visibility: Visibility | None = None
    description: Paragraph | None = None


class NewDatasetUpload(msgspec.Struct, frozen=True, kw_only=True):
    """A file to send in parts."""

    size: Annotated[int, Meta(ge=1, le=2**53)]
    """Bytes."""
    format: DatasetFormat
    visibility: Visibility | None = None
    """None: unchanged; private if it is new."""
    description: Paragraph | None = None


class DatasetUploadInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is being sent in parts. What has arrived is kept, so a cut connection continues there."""

    id: str
    owner: str
    name: str
    format: DatasetFormat
    size: int
    received: int
    """Bytes that have arrived: the offset of the next part."""
    created_at: float
    expires_at: float
    """When it is dropped, unless more arrives."""


class DatasetPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The first rows of a version, as text."""

    columns: list[str]
    """The first ones of many."""
    rows: list[list[str | None]]
    """A text per column, the beginning of a long one; None where a row has no such column."""
    is_whole: bool
    """These are all rows."""
    problem: str = ""
    """Why the file cannot be read as a dataset."""
