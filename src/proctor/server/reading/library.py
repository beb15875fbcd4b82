"""The runs of the server's database as a library for one caller. Knows nothing of HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.api.feed import FeedEvent
from proctor.api.run_list import RunFacets, RunListQuery, RunPage, SuiteInfo
from proctor.api.runs import RunInfo, RunScore
from proctor.config.prices import Price, find_price
from proctor.reading.run_lists import build_suite, count_facets, list_suites, select_page
from proctor.reading.scores import score_of_summary
from proctor.run import ENDED
from proctor.server.db.database import Database
from proctor.server.gateway.models import Models
from proctor.server.people.tokens import Caller
from proctor.server.people.watch import AccessWatch
from proctor.server.problems import NotFoundError
from proctor.server.reading.changes import read_whole_rows
from proctor.server.reading.feed import RunFeed
from proctor.server.reading.listed_runs import VisibleRun, describe_runs, list_visible, read_settings
from proctor.server.reading.open_runs import OpenRuns
from proctor.server.reading.reader import ServerRunReader
from proctor.server.runs import sharing
from proctor.server.runs.service import RunService
from proctor.server.storage.blobs import Blobs

MOST_FRESH = 50
"""Runs in progress of a list whose score is computed anew; of others, the score that was computed last."""
MOST_UNSCORED = 8
"""Runs of a list that have ended and whose report is made now."""
MOST_SUITE_RUNS = 1_000
NOT_AXES = {"env_id", "model", "agent", "name", "label", "output_dir"}
"""Settings that are not an axis of a sweep: they say where a run is, or are shown anyway."""


class RunReading:
    """What a server needs to let its runs be read, made once."""

    def __init__(
        self,
        database: Database,
        service: RunService,
        watch: AccessWatch,
        models: Models,
        server_url: str,
        blobs: Blobs,
    ) -> None:
        self.blobs = blobs
        self.database = database
        self.service = service
        self.server_url = server_url
        self._models = models
        self.opened = OpenRuns(database, self.price_of)
        self.feed = RunFeed(database, service, watch, self.opened)
        service.feed.on_wake.append(self.feed.wake)

    def price_of(self, model: str) -> Price | None:
        """The registry's price of a model, else the one that an admin set, else the list price."""
        return self._models.registry_price(model) or self._models.prices.get(model) or find_price(model)

    def library(self, caller: Caller, link: str = "") -> ServerLibrary:
        return ServerLibrary(self, caller, link)


class ServerLibrary:
    """The runs that one caller may see."""

    def __init__(self, reading: RunReading, caller: Caller, link: str = "") -> None:
        self._reading = reading
        self._caller = caller
        self._link = link
        """The link through which the caller got access to a run."""

    async def open(self, run_id: str) -> ServerRunReader:
        reading = self._reading
        row, access = await reading.database.read(sharing.need_readable_run, self._caller, run_id, self._link)
        return ServerRunReader(
            reading.database,
            reading.service,
            reading.opened,
            row,
            self._caller,
            access,
            reading.server_url,
            reading.blobs,
        )

    # Lists

    async def list_runs(self, query: RunListQuery) -> RunPage:
        page = select_page(await self._visible(query), query)
        described = await self._describe([run.id for run in page.items])
        return RunPage(items=described, total=page.total, next_cursor=page.next_cursor)

    async def facets(self, query: RunListQuery) -> RunFacets:
        found = await self._reading.database.read(list_visible, self._caller, query, for_facets=True)
        return count_facets(found, query)

    async def _visible(self, query: RunListQuery) -> list[VisibleRun]:
        found = await self._reading.database.read(list_visible, self._caller, query)
        if query.sort not in ("score", "coverage"):
            return found
        live = [run.id for run in found if run.status not in ENDED]
        scores = await self._score_live(live)
        return [replace(run, score=scores.get(run.id, run.score)) for run in found]

    async def _describe(self, ids: Sequence[str]) -> list[RunInfo]:
        """Runs of a page, with the score of each as it is now."""
        reading = self._reading
        found = await reading.database.read(describe_runs, self._caller, ids)
        unscored = [run.id for run in found if run.status in ENDED and run.score is None]
        for run_id in unscored[:MOST_UNSCORED]:
            await reading.service.read_summarized(run_id)
        if unscored:
            found = await reading.database.read(describe_runs, self._caller, ids)
        scores = await self._score_live([run.id for run in found if run.status not in ENDED])
        return [with_score(run, scores[run.id]) if run.id in scores else run for run in found]

    async def _score_live(self, ids: Sequence[str]) -> dict[str, RunScore]:
        """The scores of runs in progress."""
        opened = self._reading.opened
        rows = await self._reading.database.read(read_whole_rows, ids[:MOST_FRESH])
        scores = {row.id: score_of_summary(await opened.open(row.id).summary(row)) for row in rows}
        for run_id in ids[MOST_FRESH:]:
            known = opened.find(run_id)
            if known is not None and known.last_summary is not None:
                scores[run_id] = score_of_summary(known.last_summary)
        return scores

    # Sweeps

    async def suites(self) -> list[SuiteInfo]:
        found = [run for run in await self._visible(RunListQuery()) if run.suite]
        newest = sorted(found, key=lambda run: run.created_at, reverse=True)[:MOST_SUITE_RUNS]
        described, settings = await self._describe_suites([run.id for run in newest])
        return list_suites(described, lambda run: label_run(run, settings.get(run.id, {})))

    async def suite(self, suite_id: str) -> SuiteInfo:
        visible = await self._visible(RunListQuery(suite=suite_id))
        described, settings = await self._describe_suites([run.id for run in visible][:MOST_SUITE_RUNS])
        if not described:
            raise NotFoundError(f"There is no sweep {suite_id[:200]!r} that you may see.")
        return build_suite(suite_id, described, lambda run: label_run(run, settings.get(run.id, {})))

    async def _describe_suites(
        self, ids: Sequence[str]
    ) -> tuple[list[RunInfo], Mapping[str, Mapping[str, Any]]]:
        described = await self._describe(ids)
        return described, await self._reading.database.read(read_settings, ids)

    # What changes

    def changes(self) -> AsyncIterator[FeedEvent | None]:
        return self._reading.feed.follow(self._caller)


def with_score(run: RunInfo, score: RunScore) -> RunInfo:
    return replace(run, score=score, progress=replace(run.progress, mean_reward=score.mean))


def label_run(run: RunInfo, settings: Mapping[str, Any]) -> dict[str, str]:
    """What a sweep may have chosen for a run: its settings, and the `key=value` words of its name."""
    chosen = {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in settings.items()
        if name not in NOT_AXES and isinstance(value, (str, int, float, bool))
    }
    pairs = (word.partition("=") for word in run.name.split())
    return {**chosen, **{key: value for key, equals, value in pairs if equals}}
