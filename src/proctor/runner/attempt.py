"""Play one attempt of one run on a host: install its wheel, run it in a sandbox, report how it ended.

Passes on a stop, and reports a process that died. Knows nothing of how the host claimed the run, nor of what
is played.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.runner import HostAttemptId, Lease, LogText, LostRun, Report, RunAssignment
from proctor.api.runs import Cause, CauseCode
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context
from proctor.errors import InstallError, ProctorError, describe_os_error
from proctor.isolation.untrusted_tree import discard_tree
from proctor.runner.excerpt import Excerpt
from proctor.runner.folder_lock import hold_folder
from proctor.runner.host_paths import hide_folder
from proctor.runner.host_settings import HostSettings
from proctor.runner.inside.attempt_input import (
    EXIT_REPORTED,
    RUN_VARIABLE,
    TOKEN_VARIABLE,
    AttemptInput,
    encode_attempt_input,
)
from proctor.runner.internet_proxy import open_internet_proxy
from proctor.runner.launch import ProcessExit, ProcessSpec, SandboxedProcess, launch
from proctor.runner.lease import LeaseRenewal
from proctor.runner.loss_report import REPORT_TRIES, LossReport
from proctor.runner.server_relay import open_server_relay
from proctor.runner.venvs import Venv, Venvs
from proctor.runner.wheels import fetch_wheel
from proctor.support.logs import cut_text, log
from proctor.support.processes import summarize_output

LINES_AT_ONCE = 250
LONGEST_LINE, LONGEST_MESSAGE = 20_000, 32_000
"""The server keeps less, after it has removed secrets."""
GRACE_SECONDS = 20.0
"""How long a stopped run may take to end."""
LEAVING_SECONDS = 5.0
"""The same when the host itself shuts down."""
HOLD_SECONDS = 60.0
"""How long an earlier attempt on this machine may take to end; its host may not know yet that it is over."""
INSTALLER_REPORT_SECONDS = 1.0
FIRST_BATCH_INSIDE = 10_000
"""Smaller batch numbers are for the host's own reports of an attempt."""
INSIDE = "proctor.runner.inside"
LAST_OUTPUT = "The last output of the run's process:"
SHUT_DOWN = "The host that played the run was shut down."
STOPPED = "The run was stopped before it began."
REASONS = {
    "memory": "It exceeded its memory limit.",
    "disk": "It exceeded its disk limit.",
    "processes": "It exceeded its limit of processes.",
    "cpu": "It exceeded its limit of CPU time.",
}


class HostResources(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of a host share."""

    name: str
    """Of the host."""
    context: Context
    settings: HostSettings
    server: ServerConnection
    venvs: Venvs
    wheels: Path


class HostAttempt:
    """One attempt of one run, from its wheel to its final report."""

    def __init__(self, resources: HostResources, assignment: RunAssignment) -> None:
        self.resources = resources
        self.assignment = assignment
        self.folder = resources.settings.work / assignment.run_id
        self.preparing: asyncio.Future[Venv] | None = None
        self.running: SandboxedProcess | None = None
        self.stopped = False
        """The server asked for the end, or gave the run to another host."""
        self.lost = False
        self._reporting = ServerConnection(
            Context(url=resources.context.url, token=assignment.token), tries=2
        )
        self._batch = 0

    async def play(self) -> None:
        renewal = LeaseRenewal(self.resources.server, self.resources.name, self.assignment, self._obey)
        renewing = asyncio.create_task(renewal.run())
        try:
            await self._play()
        except asyncio.CancelledError:
            await self._finish(self._report_lost("crashed", SHUT_DOWN, blameless=True, tries=1))
            raise
        except InstallError as error:
            await self._report_lines(*error.last_lines, level="ERROR")
            await self._report_lost("install_failed", str(error), retry=False)
        except ProctorError as error:
            await self._report_lost("internal", str(error))
        except Exception as error:
            await self._report_lost(
                "internal", f"The host could not play the run: {describe_host_error(error)}."
            )
            raise
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})
            await self._reporting.close()

    async def _play(self) -> None:
        assignment = self.assignment
        await self._report_lines(
            f"Attempt {assignment.attempt} of {assignment.environment}@{assignment.version} "
            f"on {self.resources.name}"
        )
        venv = await self._prepare_venv()
        if venv is None:
            await self._report_lost("crashed", STOPPED, blameless=True)
            return
        async with hold_folder(self.folder, HOLD_SECONDS):
            await self._report_exit(await self._run_process(venv))

    async def _prepare_venv(self) -> Venv | None:
        """None if the run was stopped in the meantime."""
        self.preparing = asyncio.ensure_future(self._venv())
        try:
            venv = await self.preparing
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.stopped or (task is not None and task.cancelling()):
                raise
            return None
        return None if self.stopped else venv

    async def _run_process(self, venv: Venv) -> ProcessExit:
        assignment, settings = self.assignment, self.resources.settings
        inside = AttemptInput(
            run_id=assignment.run_id,
            attempt=assignment.attempt,
            env_id=assignment.module,
            environment=f"{assignment.environment}@{assignment.version}",
            content_hash=assignment.content_hash,
            model=assignment.model,
            settings=assignment.settings,
            first_batch=FIRST_BATCH_INSIDE,
        )
        async with open_server_relay(self.resources.context.url) as server_socket, self._outward() as outward:
            spec = ProcessSpec(
                run_id=assignment.run_id,
                command=(str(venv.python), "-P", "-m", INSIDE),
                folder=self.folder,
                stdin=encode_attempt_input(inside),
                variables={
                    **venv.variables,
                    **assignment.variables,
                    TOKEN_VARIABLE: assignment.token,
                    RUN_VARIABLE: assignment.run_id,
                },
                paths=venv.paths,
                hidden=settings.hidden,
                socket=server_socket,
                outward=outward,
                limits=settings.limits,
            )
            self.running = await launch(spec, allow_no_sandbox=settings.allow_no_sandbox)
            try:
                if self.stopped:
                    await self.running.end(GRACE_SECONDS)
                return await self.running.wait()
            except asyncio.CancelledError:
                await self._finish(self.running.end(LEAVING_SECONDS))
                raise

    async def _venv(self) -> Venv:
        assignment, resources = self.assignment, self.resources
        wheel = await fetch_wheel(resources.server, assignment.wheel_sha256, resources.wheels)
        installer_output, is_over = Excerpt(), asyncio.Event()
        streaming = asyncio.create_task(self._stream_excerpt(installer_output, is_over))
        try:
            return await resources.venvs.ready(
                wheel, assignment.wheel_name, assignment.lock, installer_output.add
            )
        finally:
            is_over.set()
            await streaming

    async def _stream_excerpt(self, installer_output: Excerpt, is_over: asyncio.Event) -> None:
        """Report the installer's output about once a second."""
        while not is_over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(is_over.wait(), INSTALLER_REPORT_SECONDS)
            await self._report_lines(*installer_output.take())
        await self._report_lines(*installer_output.take())

    @asynccontextmanager
    async def _outward(self) -> AsyncIterator[Path | None]:
        """A proxy to the internet, if the run was granted access."""
        if not self.assignment.permissions.network:
            yield None
            return
        async with open_internet_proxy() as proxy:
            yield proxy

    # Reports to the server

    async def _obey(self, lease: Lease) -> None:
        if lease.lost:
            self.lost = True
        if (lease.stop or lease.lost) and not self.stopped:
            self.stopped = True
            if self.running is None:
                if self.preparing is not None:
                    self.preparing.cancel()
            else:
                await self.running.end(0.0 if lease.lost else GRACE_SECONDS)

    async def _report_lines(self, *lines: str, level: str = "INFO") -> None:
        """Add lines of the host's own to the run's log."""
        now = time.time()
        for start in range(0, len(lines), LINES_AT_ONCE):
            self._batch += 1
            shown = [self._hide_paths(line) for line in lines[start : start + LINES_AT_ONCE]]
            logs = [LogText(level, cut_text(line, LONGEST_LINE), now) for line in shown]
            try:
                await self._reporting.send("/runner/reports", Report(batch=self._batch, logs=logs))
            except ServerError as error:
                log.warning("%s: could not deliver log lines: %s", self.assignment.run_id, error)
                return

    async def _report_exit(self, exit_: ProcessExit) -> None:
        """A process that exits with EXIT_REPORTED has reported its own end; any other is reported here."""
        if exit_.code == EXIT_REPORTED:
            await asyncio.to_thread(discard_tree, self.folder)
        else:
            code: CauseCode = "limit_exceeded" if exit_.reason else "crashed"
            if exit_.last_lines:
                await self._report_lines(LAST_OUTPUT, *exit_.last_lines, level="ERROR")
            await self._report_lost(code, describe_exit(exit_))

    async def _report_lost(
        self,
        code: CauseCode,
        message: str,
        *,
        retry: bool = True,
        blameless: bool = False,
        tries: int = REPORT_TRIES,
    ) -> None:
        """Reports nothing about a run that is no longer ours."""
        cause = Cause(code=code, message=self._hide_paths(message)[:LONGEST_MESSAGE])
        report = LossReport(
            host=self.resources.name,
            attempt=HostAttemptId(self.assignment.run_id, self.assignment.attempt),
            lost=LostRun(cause, retry=retry, blameless=blameless),
        )
        await report.send(self.resources.server, tries, lambda: self.lost)

    def _hide_paths(self, text: str) -> str:
        return hide_folder(text, self.resources.settings.data)

    async def _finish(self, work: Awaitable[Any]) -> None:
        """Finish work that must complete although this task was cancelled."""
        await asyncio.shield(asyncio.ensure_future(work))


def describe_host_error(error: Exception) -> str:
    """What went wrong on this machine, without the paths of its folders."""
    return describe_os_error(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"


def describe_exit(exit_: ProcessExit) -> str:
    """How a process ended, as a sentence."""
    if exit_.reason:
        return REASONS[exit_.reason]
    how = f"was killed by signal {exit_.signal}" if exit_.signal else f"ended with exit code {exit_.code}"
    last = summarize_output(exit_.last_lines)
    return f"The run's process {how}" + (f"; its last output: {last}" if last else ".")
