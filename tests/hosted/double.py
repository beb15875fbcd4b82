"""A small server of runs for tests: the routes of api/runs.py over real HTTP, in a thread.

A run is a list of events that the test adds to. The double can be taken away and brought back, cut its
streams after a number of events, or have no stream at all. Knows nothing of users or tables.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
from aiohttp import web
from msgspec.structs import replace

from proctor.api.common import BASE, Page, Problem
from proctor.api.runner import Report, ReportReply
from proctor.api.runs import (
    Cause,
    Estimate,
    Events,
    NewRun,
    NewRuns,
    NewUpload,
    Progress,
    RolloutBrief,
    RunEvent,
    RunInfo,
    StartedRuns,
    UploadEnd,
)
from proctor.run import ENDED, RunStatus
from tests.ports import free_port
from tests.waiting import SECONDS

TOKEN = "proctor_test"


class Double:
    """What the server knows, and how it misbehaves."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.runs: dict[str, RunInfo] = {}
        self.events: dict[str, list[RunEvent]] = {}
        self.rows: dict[str, dict[str, bytes]] = {}
        self.metadata: dict[str, Mapping[str, Any]] = {}
        self.uploads: dict[str, str] = {}
        self.asked: list[NewRun] = []
        self.keys: dict[str, RunInfo] = {}
        self.requests: list[str] = []
        self.stream_cuts_after: int | None = None
        self.has_stream = True
        self.refuses_after: int | None = None
        """So many runs are started, and no more."""
        self.is_old = False
        """It starts one run at a time."""
        self.on_start: Callable[[RunInfo], None] = lambda run: None
        self.estimate = Estimate(
            rollouts=15, low_usd=0.01, likely_usd=0.02, high_usd=0.04, basis="3 earlier runs"
        )
        self.loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    # What a test does

    def environ(self) -> dict[str, str]:
        return {"PROCTOR_API_URL": self.url, "PROCTOR_API_KEY": TOKEN}

    def add_run(self, run_id: str = "run-1", status: RunStatus = "running", **fields: Any) -> RunInfo:
        run = RunInfo(
            **{
                "id": run_id,
                "kind": "hosted",
                "owner": "ada",
                "environment": "ada/echo",
                "version": "1.0.0",
                "content_hash": "c0ffee" * 4,
                "model": "scripted",
                "status": status,
                "created_at": time.time(),
                **fields,
            }
        )
        self.runs[run_id] = run
        self.events.setdefault(run_id, [])
        self.rows.setdefault(run_id, {})
        return run

    def say(self, run_id: str, *texts: str) -> None:
        for text in texts:
            self._add(run_id, kind="log", level="INFO", text=text)

    def rollout(self, run_id: str, task: str, reward: float | None = 1.0, **fields: Any) -> None:
        outcome = "scored" if reward is not None else "model_error"
        brief = RolloutBrief(task=task, number=0, outcome=outcome, reward=reward, seconds=0.1, **fields)
        self._add(run_id, kind="rollout", rollout=brief)

    def progress(self, run_id: str, **counts: Any) -> None:
        progress = Progress(**counts)
        self.runs[run_id] = replace(self.runs[run_id], progress=progress)
        self._add(run_id, kind="progress", progress=progress)

    def end(self, run_id: str, status: RunStatus = "finished", cause: Cause | None = None) -> None:
        self.runs[run_id] = replace(self.runs[run_id], status=status, cause=cause, ended_at=time.time())
        self._add(run_id, kind="status", status=status, cause=cause)

    def plays(self, status: RunStatus = "finished", cause: Cause | None = None, scored: int = 2) -> None:
        """Every run that is started is played at once: two rollouts, and this end."""

        def play(run: RunInfo) -> None:
            self._add(run.id, kind="status", status="running")
            self.progress(run.id, planned=2)
            self.say(run.id, f"hello from {run.environment}")
            for place in range(2):
                self.rollout(run.id, f"t{place}", 1.0 if place < scored else None)
            self.progress(run.id, planned=2, settled=2, scored=scored, failed=2 - scored, mean_reward=1.0)
            self.end(run.id, status, cause)

        self.on_start = play

    def _add(self, run_id: str, **fields: Any) -> None:
        events = self.events[run_id]
        events.append(RunEvent(seq=len(events) + 1, at=time.time(), **fields))
        self.runs[run_id] = replace(self.runs[run_id], last_seq=len(events))
        self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def call(self, work: Awaitable[Any]) -> Any:
        async def run() -> Any:
            return await work

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(SECONDS)

    # Being there and being away

    async def come(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.add_routes([web.route("*", "/{path:.*}", self._answer)])
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def go(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # Answers

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix(BASE)
        self.requests.append(f"{request.method} {path}")
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return problem(401, "unauthenticated", "This needs a token; log in with `proctor login`.")
        parts = path.strip("/").split("/")
        method = getattr(self, f"{request.method.lower()}_{parts[0]}", None)
        answer: web.StreamResponse = await method(request, parts[1:]) if method else missing()
        return answer

    async def get_runs(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        if not parts:
            return self._listed(request)
        run_id, *rest = parts
        if run_id not in self.runs:
            return missing()
        what = "/".join(rest)
        if not what:
            return encoded(self.runs[run_id])
        if what == "events":
            return encoded(self._events(run_id, int(request.query.get("after", 0))))
        if what == "events/stream":
            return await self._stream(request, run_id)
        rows = list(self.rows[run_id].values())
        if what == "rows":
            if request.query.get("failed") == "true":
                rows = [row for row in rows if json.loads(row)["reward"] is None]
            if "task" in request.query:
                rows = [row for row in rows if str(json.loads(row)["example_id"]) == request.query["task"]]
            return encoded(Page([msgspec.Raw(row) for row in rows]))
        if what == "results.jsonl":
            return web.Response(body=b"".join(row + b"\n" for row in rows))
        return encoded(self.metadata.get(run_id, {"run_id": run_id, "env_id": "echo", "model": "m"}))

    def _listed(self, request: web.Request) -> web.Response:
        wanted = ("status", "model", "environment", "kind", "owner")
        conditions = {name: value for name, value in request.query.items() if name in wanted}
        found = [
            run
            for run in reversed(self.runs.values())
            if all(getattr(run, name) == value for name, value in conditions.items())
        ]
        first, most = int(request.query.get("cursor", 0)), int(request.query["limit"])
        rest = first + most < len(found)
        return encoded(Page(found[first : first + most], str(first + most) if rest else None))

    async def post_runs(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        if parts[-1:] == ["stop"]:
            self.end(parts[0], "stopped")
            return encoded(self.runs[parts[0]])
        if parts[-1:] == ["resume"]:
            self.runs[parts[0]] = replace(self.runs[parts[0]], status="pending")
            return encoded(self.runs[parts[0]])
        key = request.headers["idempotency-key"]
        if parts == ["batch"] and self.is_old:
            return problem(405, "method_not_allowed", "Method Not Allowed")
        if parts == ["batch"]:
            return self._start_all(msgspec.json.decode(await request.read(), type=NewRuns), key)
        new = msgspec.json.decode(await request.read(), type=NewRun)
        if parts == ["estimate"]:
            return refusal() if self._is_full(1) else encoded(self.estimate)
        if self._is_full(1):
            return refusal()
        return encoded(self._start(new, key))

    def _start_all(self, new: NewRuns, key: str) -> web.StreamResponse:
        if self._is_full(len(new.runs)):
            return refusal()
        return encoded(StartedRuns([self._start(each, f"{key}/{n}") for n, each in enumerate(new.runs)]))

    def _is_full(self, more: int) -> bool:
        return self.refuses_after is not None and len(self.runs) + more > self.refuses_after

    def _start(self, new: NewRun, key: str) -> RunInfo:
        if key not in self.keys:
            self.asked.append(new)
            environment, _, version = new.environment.partition("@")
            self.keys[key] = run = self.add_run(
                f"run-{len(self.runs) + 1}",
                "pending",
                environment=environment,
                version=version or "1.0.0",
                model=new.model or "default",
                name=new.name,
                settings=new.settings,
            )
            self.on_start(run)
        return self.keys[key]

    async def delete_runs(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        return missing() if self.runs.pop(parts[0], None) is None else web.Response(status=204)

    async def post_uploads(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        body = await request.read()
        if not parts:
            new = msgspec.json.decode(body, type=NewUpload)
            run_id = self.uploads.setdefault(new.client_run_id, f"run-{len(self.runs) + 1}")
            if run_id not in self.runs:
                self.add_run(run_id, kind="local", environment=new.environment, version=None, model=new.model)
            return encoded(self.runs[run_id])
        run = self.runs[parts[0]]
        if parts[1] == "end":
            end = msgspec.json.decode(body, type=UploadEnd)
            self.metadata[run.id] = end.metadata
            self.runs[run.id] = replace(run, status=end.status)
            return encoded(self.runs[run.id])
        report = msgspec.json.decode(body, type=Report)
        for row in report.rows:
            fields = json.loads(bytes(row))
            self.rows[run.id][json.dumps([fields["example_id"], fields["rollout"]])] = bytes(row)
        self.runs[run.id] = replace(run, progress=Progress(settled=len(self.rows[run.id])))
        return encoded(ReportReply())

    def _events(self, run_id: str, after: int) -> Events:
        events = self.events[run_id]
        return Events(events[after:], len(events), self.runs[run_id].status in ENDED)

    async def _stream(self, request: web.Request, run_id: str) -> web.StreamResponse:
        if not self.has_stream:
            return problem(503, "no_stream", "Not now.")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": hello\n\n")
        seen, sent = int(request.query.get("after", 0)), 0
        while True:
            changed = self._changed
            for event in self.events[run_id][seen:]:
                if sent == self.stream_cuts_after:
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                await response.write(b"id: %d\ndata: %s\n\n" % (event.seq, msgspec.json.encode(event)))
                seen, sent = event.seq, sent + 1
            if self.runs[run_id].status in ENDED and seen == len(self.events[run_id]):
                await response.write(b"event: end\ndata: {}\n\n")
                return response
            await changed.wait()


def encoded(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def problem(status: int, code: str, message: str) -> web.Response:
    content = msgspec.json.encode(Problem(code, message))
    return web.Response(status=status, body=content, content_type="application/json")


def refusal() -> web.Response:
    return problem(422, "no_such_model", "There is no model like that; `proctor models` lists them.")


def missing() -> web.Response:
    return problem(404, "not_found", "There is no such run, or it is not yours to see.")


@contextmanager
def doubled() -> Iterator[Double]:
    double = Double()
    thread = threading.Thread(target=double.loop.run_forever, name="double", daemon=True)
    thread.start()
    try:
        double.call(double.come())
        yield double
    finally:
        double.call(double.go())
        double.loop.call_soon_threadsafe(double.loop.stop)
        thread.join(SECONDS)
        double.loop.close()
