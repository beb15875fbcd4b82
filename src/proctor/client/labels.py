"""Labels of a run on a server: read them, and give your own."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.api.common import Page
from proctor.api.labels import MOST_LABELS, NewLabel, NewLabels, RunLabel, SavedLabels
from proctor.client.connection import ServerConnection
from proctor.client.runs import MOST_A_PAGE, run_path


async def read_labels(server: ServerConnection, run_id: str, person: str | None = None) -> list[RunLabel]:
    """All labels of a run, or those of one person."""
    path = f"{run_path(run_id)}/labels"
    return [
        label async for label in server.iterate_pages(path, Page[RunLabel], person=person, limit=MOST_A_PAGE)
    ]


async def give_labels(server: ServerConnection, run_id: str, labels: Sequence[NewLabel]) -> int:
    """Label rollouts as the user who is logged in; returns how many were saved."""
    saved = 0
    for start in range(0, len(labels), MOST_LABELS):
        data = NewLabels(labels=list(labels[start : start + MOST_LABELS]))
        saved += (await server.post(f"{run_path(run_id)}/labels", data, SavedLabels)).saved
    return saved
