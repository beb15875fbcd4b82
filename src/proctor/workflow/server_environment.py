"""A rollout whose author serves it: a script that speaks the rollout protocol over HTTP.

The server gets a prompt, a label and an address of the evaluated model, and reports a grade. Its process is
shared by all attempts, and started again if it ends. Knows nothing of how it is asked.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from proctor.contracts import HttpEndpoint, Seat, Session
from proctor.errors import AgentError, DeadlineError, ExcludedError, GraderError, InfraError
from proctor.rollout import Score, require_finite_number
from proctor.task import Task
from proctor.workflow.environment import TRAITS, adopt_messages, copy_messages
from proctor.workflow.server_callbacks import CallbackServer
from proctor.workflow.server_process import RolloutServerProcess
from proctor.workflow.server_protocol import FINAL, Report, ServedAttempt

MOST_STARTS = 5


class ServerEnvironment:
    """Plays rows at a rollout server."""

    traits = TRAITS
    provenance: Mapping[str, Any] = {}
    selection = "all rows"

    def __init__(self, tasks: Sequence[Task], script: Path, python: Path | None = None) -> None:
        """`python` is the interpreter that runs the script; this one, unless it needs another."""
        self._tasks = tasks
        self.script = script
        self.python = python
        self._http: aiohttp.ClientSession | None = None
        self._callbacks: CallbackServer | None = None
        self._server: RolloutServerProcess | None = None
        self._starts = 0
        self._starting = asyncio.Lock()

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    async def check(self) -> None:
        await self._running_server()

    async def close(self) -> None:
        if self._server is not None:
            await self._server.end()
        if self._callbacks is not None:
            await self._callbacks.close()
        if self._http is not None:
            await self._http.close()

    @asynccontextmanager
    async def open(self, task: Task) -> AsyncIterator[Session]:
        server = await self._running_server()
        assert self._http is not None
        assert self._callbacks is not None
        session = ServerSession(task, server, self._http, self._callbacks)
        try:
            yield session
        finally:
            await session.close()

    async def _running_server(self) -> RolloutServerProcess:
        """The server; started if there is none, or again if it has ended."""
        async with self._starting:
            if self._server is not None and self._server.is_running:
                return self._server
            if self._server is not None and self._starts >= MOST_STARTS:
                raise self._server.describe_end()
            if self._http is None or self._callbacks is None:
                self._http = aiohttp.ClientSession()
                self._callbacks = CallbackServer()
                await self._callbacks.start()
            self._starts += 1
            self._server = await RolloutServerProcess.start(self.script, self._http, self.python)
            return self._server


class ServerSession:
    """One attempt at one row."""

    def __init__(
        self,
        task: Task,
        server: RolloutServerProcess,
        http: aiohttp.ClientSession,
        callbacks: CallbackServer,
    ) -> None:
        self.task = task
        self.server = server
        self.http = http
        self.callbacks = callbacks
        self.attempt: ServedAttempt | None = None
        self.is_over = False

    async def close(self) -> None:
        if self.attempt is None:
            return
        self.attempt.close()
        if not self.is_over:
            await self.attempt.cancel()

    async def play(self, seat: Seat) -> None:
        seat.trace.prompt = list(self.task.prompt)
        async with seat.open_endpoint() as endpoint:
            rollout_id = f"row-{self.task.id}-{secrets.token_hex(6)}"
            attempt = ServedAttempt(rollout_id, self.server, self.http, self.callbacks, endpoint.key)
            self.attempt = attempt
            await attempt.begin(self._request(endpoint))
            report = await attempt.wait_for_workflow()
            if report.get("status") in FINAL and report["status"] != "success":
                self.is_over = True
                if endpoint.traffic.failure is not None:
                    raise endpoint.traffic.failure
                raise workflow_failure(report)

    async def score(self, seat: Seat) -> Score:
        assert self.attempt is not None
        report = await self.attempt.wait_for_grade()
        self.is_over = True
        sample = report.get("sample") or {}
        if sample.get("remove_sample"):
            raise ExcludedError("the grader removed the sample")
        if report.get("status") != "success":
            raise grader_failure(report)
        if sample.get("messages"):
            with suppress(AgentError):  # of a shape that only the server knows; the recorded trace remains
                adopt_messages(seat.trace, self.task.prompt, list(sample["messages"]))
        if sample.get("reward") is None:
            raise GraderError("the grader set no reward")
        reward = require_finite_number(sample["reward"], "the rollout server")
        return Score(reward, read_metrics(sample.get("metrics")))

    def _request(self, endpoint: HttpEndpoint) -> Report:
        label = self.task.answer
        return {
            "initial_messages": copy_messages(self.task.prompt),
            "label": label if label is None or isinstance(label, str) else json.dumps(label),
            "metadata": self.task.info or None,
            "chat_completions_url": f"{endpoint.url}/v1",
        }


def workflow_failure(report: Report) -> AgentError | DeadlineError | InfraError:
    text = str(report.get("err_message") or f"the workflow ended as {report.get('status')}")
    category = report.get("err_category")
    if category == "timeout":
        return DeadlineError(text)
    if category == "lease_expired":
        return InfraError(text)
    return AgentError(f"the workflow failed: {text}")


def grader_failure(report: Report) -> GraderError | DeadlineError:
    text = str(report.get("err_message") or f"grading ended as {report.get('status')}")
    if report.get("err_category") == "timeout":
        return DeadlineError(text)
    return GraderError(f"the grader failed: {text}")


def read_metrics(metrics: object) -> dict[str, float]:
    """The numbers among a sample's metrics; a server may send anything beside them."""
    if not isinstance(metrics, dict):
        return {}
    return {
        str(name): float(value)
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }
