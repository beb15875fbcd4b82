"""Prices set by an admin, which override the list prices. Knows nothing of endpoints."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from proctor.api.ledger import NewPrice
from proctor.config.prices import Price
from proctor.server.db.tables import prices
from proctor.server.problems import InvalidError, NotFoundError


def load_prices(connection: Connection) -> dict[str, Price]:
    """All of them, by model."""
    rows = connection.execute(select(prices).order_by(prices.c.model))
    return {row.model: Price(row.input, row.output, row.cached) for row in rows}


def put_price(connection: Connection, model: str, new: NewPrice) -> None:
    figures = (new.input_usd_per_million, new.output_usd_per_million, new.cached_usd_per_million)
    if any(figure is not None and not 0 <= figure < float("inf") for figure in figures):
        raise InvalidError("A price is dollars per million tokens, 0 or more.")
    connection.execute(delete(prices).where(prices.c.model == model))
    row = dict(zip(("input", "output", "cached"), figures, strict=True))
    connection.execute(insert(prices).values(model=model, **row))


def remove_price(connection: Connection, model: str) -> None:
    if not connection.execute(delete(prices).where(prices.c.model == model)).rowcount:
        raise NotFoundError(f"No price was set for {model!r}; the list price applies.")
