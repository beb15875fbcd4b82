"""Rows of the database as structs of the API. Knows nothing of tables."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from sqlalchemy import Row

T = TypeVar("T", bound=msgspec.Struct)


def struct_from_row(kind: type[T], row: Row[Any], **computed: Any) -> T:
    """A struct whose fields are the columns of the same name, except for the computed ones."""
    columns = {name: getattr(row, name) for name in kind.__struct_fields__ if name not in computed}
    return kind(**columns, **computed)
