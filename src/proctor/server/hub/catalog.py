"""Lists of environments: which ones, in which order, and what the filters could be set to.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, Connection, Text, cast, func, or_, select, tuple_

from proctor.api.bounds import Name
from proctor.api.common import Page
from proctor.api.hub import EnvironmentFacets, EnvironmentInfo, Visibility
from proctor.api.run_list import FacetValue
from proctor.server.db.tables import environments
from proctor.server.hub.access import check_scope, ownership_condition, readable_condition
from proctor.server.hub.records import describe_environments
from proctor.server.names import check_text
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.people.tokens import Caller

Sort = Literal["name", "owner", "created_at", "updated_at"]
RISING: tuple[Sort, ...] = ("name", "owner")
"""Read from A to Z; times from the newest."""
LONGEST_SEARCH = 100
"""A database compares it at every place of every description."""
MOST_FACETS = 200
"""Values of one filter that are counted, the most frequent."""


class EnvironmentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which environments to list."""

    search: str | None = None
    owner: str | None = None
    name: str | None = None
    """With `owner`: that one, or none."""
    visibility: Visibility | None = None
    tag: Annotated[list[Name], Meta(max_length=20)] = []
    """All of them."""
    mine: bool = False
    sort: Sort = "updated_at"
    limit: int = 50
    cursor: str | None = None


def list_environments(
    connection: Connection, caller: Caller, wanted: EnvironmentQuery
) -> Page[EnvironmentInfo]:
    check_scope(caller)
    column = environments.c[wanted.sort]
    rises = wanted.sort in RISING
    query = select(environments).where(*list_conditions(connection, caller, wanted))
    position = decode_cursor(wanted.cursor, str if rises else float, str)
    key = tuple_(column, environments.c.id)
    if position:
        query = query.where(key > position if rises else key < position)
    order = [each.asc() if rises else each.desc() for each in (column, environments.c.id)]
    limit = check_limit(wanted.limit)
    rows = connection.execute(query.order_by(*order).limit(limit + 1)).all()
    return build_page(
        describe_environments(connection, caller, rows),
        limit,
        lambda item: (getattr(item, wanted.sort), item.id),
    )


def list_conditions(
    connection: Connection, caller: Caller, wanted: EnvironmentQuery
) -> list[ColumnElement[bool]]:
    found = narrow(connection, caller, wanted)
    if wanted.visibility:
        found.append(environments.c.visibility == wanted.visibility)
    if wanted.owner:
        found.append(environments.c.owner == wanted.owner)
    if wanted.name:
        found.append(environments.c.name == wanted.name)
    for tag in wanted.tag:
        written = msgspec.json.encode(tag).decode()
        found.append(cast(environments.c.tags, Text).contains(written, autoescape=True))
    return found


def narrow(connection: Connection, caller: Caller, wanted: EnvironmentQuery) -> list[ColumnElement[bool]]:
    """As conditions: all but those whose other values facets count."""
    found = [readable_condition(connection, caller)]
    if wanted.mine:
        found.append(ownership_condition(caller))
    if wanted.search:
        check_text(wanted.search, "search", longest=LONGEST_SEARCH)
        text = wanted.search.lower()
        slug = environments.c.owner + "/" + environments.c.name
        columns = (slug, func.lower(environments.c.description), cast(environments.c.tags, Text))
        found.append(or_(*(column.contains(text, autoescape=True) for column in columns)))
    return found


def count_facets(connection: Connection, caller: Caller, wanted: EnvironmentQuery) -> EnvironmentFacets:
    check_scope(caller)
    columns = (environments.c.owner, environments.c.tags, environments.c.visibility)
    query = select(*columns).where(*narrow(connection, caller, wanted))
    rows = connection.execute(query).all()
    return EnvironmentFacets(
        total=len(rows),
        owner=rank_values(Counter(row.owner for row in rows)),
        visibility=rank_values(Counter(row.visibility for row in rows)),
        tag=rank_values(Counter(tag for row in rows for tag in row.tags)),
    )


def rank_values(counted: Counter[str]) -> list[FacetValue]:
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [FacetValue(value, count) for value, count in ranked[:MOST_FACETS]]
