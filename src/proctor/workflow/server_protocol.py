"""One attempt at a rollout server: requested, followed to its grade, cancelled.

A server that answers the request with a polling lease is polled; any other is expected to call back. Either
way the workflow's end comes first and the grade second. Knows nothing of seats or scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar

import aiohttp

from proctor.errors import EnvError, InfraError
from proctor.workflow.server_callbacks import CallbackServer, PendingReports
from proctor.workflow.server_process import RolloutServerProcess

T = TypeVar("T")

LEASE_HEADER = "X-Osmosis-Rollout-Lease"
FINAL = ("success", "failure", "cancelled")
AFTER_WORKFLOW = ("grading", *FINAL)
REQUEST_SECONDS = 30.0
POLL_SECONDS = 90.0
PAUSE_SECONDS = 0.5
MOST_PAUSE_SECONDS = 30.0
STATUS_SECONDS = 5.0
"""How often to poll a server that should call back, whether it still knows the attempt."""
SILENT_LOOKS = 3
"""So often it may say that the attempt has ended, without having reported it."""
BROKEN_POLLS = 10
CANCEL_SECONDS = 5.0
LONGEST_DETAIL = 500

Report = dict[str, Any]


class ServedAttempt:
    """An attempt that a server works on."""

    def __init__(
        self,
        rollout_id: str,
        server: RolloutServerProcess,
        http: aiohttp.ClientSession,
        callbacks: CallbackServer,
        key: str,
    ) -> None:
        self.key = key
        """Of the attempt: for the model and, with servers that have only this one, for reports."""
        self.rollout_id = rollout_id
        self.server = server
        self.http = http
        self.callbacks = callbacks
        self._lease: str | None = None
        self._pending: PendingReports = callbacks.expect(rollout_id, key)
        self._last: Report = {}

    async def begin(self, body: Report) -> None:
        """Request the attempt; a server that is full gets the request again after the time it names."""
        body = {**body, "rollout_id": self.rollout_id, **self._callback_fields()}
        while True:
            status, answer, wait = await self._post("/rollout", body)
            if status == 429:
                await asyncio.sleep(wait)
            elif status in (200, 202):
                lease = answer.get("polling_lease_token")
                self._lease = lease if isinstance(lease, str) else None
                return
            elif status >= 500:
                raise InfraError(f"the rollout server answered {status}: {describe_detail(answer)}")
            else:
                raise EnvError(f"the rollout server refused the row ({status}): {describe_detail(answer)}")

    async def wait_for_workflow(self) -> Report:
        """The report of the workflow's end; its status is final if that was the end of the attempt."""
        if self._lease is not None:
            return await self._poll(AFTER_WORKFLOW)
        return await self._wait_for_callback(self._pending.completion)

    async def wait_for_grade(self) -> Report:
        if self._lease is not None:
            return await self._poll(FINAL)
        return await self._wait_for_callback(self._pending.grade)

    async def cancel(self) -> None:
        """Tell the server that no caller waits any more; it may ignore that."""
        with suppress(EnvError, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._post("/rollout/cancel", {"ids": [self.rollout_id]})

    def close(self) -> None:
        self.callbacks.forget(self.rollout_id)

    def _callback_fields(self) -> Report:
        base = f"{self.callbacks.url}/{self.rollout_id}"
        return {
            "completion_callback_url": f"{base}/completion",
            "grader_callback_url": f"{base}/grade",
            "controller_api_key": self.key,
            "llm_api_key": self.key,
        }

    async def _poll(self, wanted: tuple[str, ...]) -> Report:
        """Ask for the result until it has one of these states."""
        broken = 0
        while self._last.get("status") not in wanted:
            try:
                self._last = await self._unless_gone(self._get_result())
                broken = 0
            except (aiohttp.ClientError, TimeoutError) as error:
                broken += 1
                if broken >= BROKEN_POLLS:
                    raise InfraError(f"the rollout server stopped answering: {error}") from error
                await asyncio.sleep(PAUSE_SECONDS)
        return self._last

    async def _get_result(self) -> Report:
        url = f"{self.server.url}/rollout/{self.rollout_id}/result"
        timeout = aiohttp.ClientTimeout(total=POLL_SECONDS)
        async with self.http.get(url, headers={LEASE_HEADER: self._lease or ""}, timeout=timeout) as answer:
            body = await read_object(answer)
            if answer.status >= 500:
                raise aiohttp.ClientError(f"status {answer.status}")
            if answer.status != 200:
                raise EnvError(f"the rollout server lost the attempt: {describe_detail(body)}")
            if body.get("status") not in AFTER_WORKFLOW:
                await asyncio.sleep(0)  # a server that answers at once must not starve others
            return body

    async def _wait_for_callback(self, report: asyncio.Future[Report]) -> Report:
        """A report; an error if the server ends, or says that the attempt has ended without a report."""
        silent = 0
        while True:
            await self._unless_gone(asyncio.wait({report}, timeout=STATUS_SECONDS))
            if report.done():
                return report.result()
            silent = silent + 1 if await self._is_over() else 0
            if silent >= SILENT_LOOKS:
                raise EnvError("the rollout server ended the attempt without calling back")

    async def _is_over(self) -> bool:
        url = f"{self.server.url}/rollout/{self.rollout_id}/status"
        try:
            async with self.http.get(url, timeout=aiohttp.ClientTimeout(total=STATUS_SECONDS)) as answer:
                body = await read_object(answer)
        except (aiohttp.ClientError, TimeoutError):
            return False
        return answer.status == 404 or body.get("status") in (*FINAL, "unknown")

    async def _post(self, path: str, body: Report) -> tuple[int, Report, float]:
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        try:
            async with self.http.post(f"{self.server.url}{path}", json=body, timeout=timeout) as answer:
                return answer.status, await read_object(answer), read_wait(answer)
        except (aiohttp.ClientError, TimeoutError) as error:
            if not self.server.is_running:
                raise self.server.describe_end() from error
            raise InfraError(f"the rollout server does not answer: {error}") from error

    async def _unless_gone(self, waiting: Awaitable[T]) -> T:
        """Wait for something, but not longer than the server lives."""
        work = asyncio.ensure_future(waiting)
        gone = asyncio.ensure_future(self.server.wait_for_exit())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise self.server.describe_end()
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.wait({work, gone})


async def read_object(answer: aiohttp.ClientResponse) -> Report:
    try:
        body = await answer.json(content_type=None)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"detail": (await answer.text())[:LONGEST_DETAIL]}


def read_wait(answer: aiohttp.ClientResponse) -> float:
    try:
        seconds = float(answer.headers.get("retry-after", ""))
    except ValueError:
        seconds = PAUSE_SECONDS
    return min(MOST_PAUSE_SECONDS, max(PAUSE_SECONDS, seconds))


def describe_detail(body: Report) -> str:
    return str(body.get("detail") or body.get("err_message") or body)[:LONGEST_DETAIL]
