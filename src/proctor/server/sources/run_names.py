"""Names of submitted runs: readable, and unique among the runs of their owner. Knows nothing of HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, select

from proctor.server.db.tables import runs
from proctor.server.names import check_name
from proctor.server.problems import ConflictError

ADJECTIVES = (
    *("amber", "bold", "brave", "brisk", "bright", "calm", "clear", "clever", "cool"),
    *("crisp", "deep", "early", "fair", "fast", "fresh", "gentle", "glad", "golden"),
    *("green", "happy", "keen", "kind", "light", "lively", "lucky", "mellow", "merry"),
    *("mild", "neat", "noble", "patient", "plain", "proud", "quick", "quiet", "rapid"),
    *("ready", "sharp", "silver", "simple", "smart", "smooth", "solid", "steady", "still"),
    *("sunny", "swift", "tidy", "vivid", "warm", "wide", "wild", "wise", "young"),
)
NOUNS = (
    *("acorn", "anchor", "arrow", "badger", "bay", "beacon", "birch", "bridge", "brook"),
    *("canyon", "cedar", "cliff", "cloud", "comet", "coral", "crane", "creek", "dawn"),
    *("delta", "dune", "eagle", "ember", "falcon", "fern", "field", "finch", "forest"),
    *("fox", "garden", "glade", "harbor", "hawk", "heron", "hill", "island", "lake"),
    *("lark", "leaf", "maple", "marsh", "meadow", "moon", "moss", "oak", "otter"),
    *("owl", "pine", "raven", "reef", "ridge", "river", "robin", "stone", "swan"),
    *("tide", "valley", "willow", "wren"),
)
TRIES = 20


def choose_run_name(
    connection: Connection, owner: str, rollout: str, choose: Callable[[Sequence[str]], str] = secrets.choice
) -> str:
    """Such as my-rollout-brisk-otter."""
    for _ in range(TRIES):
        name = f"{rollout}-{choose(ADJECTIVES)}-{choose(NOUNS)}"
        if not is_taken(connection, owner, name):
            return name
    return f"{name}-{secrets.token_hex(3)}"


def check_run_name(connection: Connection, owner: str, name: str) -> None:
    check_name(name, "name")
    if is_taken(connection, owner, name):
        raise ConflictError(f"You have a run {name!r} already; choose another name.", code="name_taken")


def is_taken(connection: Connection, owner: str, name: str) -> bool:
    query = select(runs.c.id).where(runs.c.owner == owner, runs.c.name == name).limit(1)
    return connection.execute(query).first() is not None
