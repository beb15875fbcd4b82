"""Handlers of the routes that read lists of runs, and a run as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from proctor.api.log import LogPage
from proctor.api.run_list import RunFacets, RunPage, SuiteInfo
from proctor.api.runs import RunInfo
from proctor.reading.exchange import EVENT_STREAM, Download, ReadRequest
from proctor.reading.library import RunLibrary
from proctor.report.summary import Summary

KEEP_ALIVE = b": still here\n\n"
FEED_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}

_encode = msgspec.json.Encoder().encode


async def get_runs(library: RunLibrary, request: ReadRequest) -> RunPage:
    return await library.list_runs(request.query)


async def get_facets(library: RunLibrary, request: ReadRequest) -> RunFacets:
    return await library.facets(request.query)


async def get_run(library: RunLibrary, request: ReadRequest) -> RunInfo:
    return await (await library.open(request.path["run_id"])).info()


async def get_summary(library: RunLibrary, request: ReadRequest) -> Summary:
    return await (await library.open(request.path["run_id"])).summary()


async def get_log(library: RunLibrary, request: ReadRequest) -> LogPage:
    return await (await library.open(request.path["run_id"])).log(request.query)


async def get_suites(library: RunLibrary, _: ReadRequest) -> list[SuiteInfo]:
    return await library.suites()


async def get_suite(library: RunLibrary, request: ReadRequest) -> SuiteInfo:
    return await library.suite(request.path["suite_id"])


async def get_feed(library: RunLibrary, _: ReadRequest) -> Download:
    return Download(EVENT_STREAM, stream_feed(library), FEED_HEADERS)


async def stream_feed(library: RunLibrary) -> AsyncIterator[bytes]:
    """What changes as server-sent events. They have no numbers: after a break, a `resync` comes first."""
    async for event in library.changes():
        yield KEEP_ALIVE if event is None else b"data: %b\n\n" % _encode(event)
