"""Play one attempt of a hosted run: load what is finished, play the rest, report how it ended.

Started in the run's folder, with an AttemptInput on standard input and the server's address in its variables.
Exits with EXIT_REPORTED once the server has the final report, and with EXIT_RUN_OVER if it no longer wants
one.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.common import DATABASE_AWAY
from proctor.api.runner import Ending
from proctor.api.runs import Cause
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.config.providers import CHAT
from proctor.config.schema import HERE
from proctor.config.sources import REQUEST, SERVER
from proctor.contracts import Listener, Model, Request
from proctor.endpoints.endpoint import SharedEndpoint, open_model
from proctor.errors import Failure, MissingSecretError, ModelError, ProctorError, UnreachableError
from proctor.evaluation.evaluate import Control, Prepared, Result, prepare, run
from proctor.events import Event, RolloutsFinished
from proctor.listeners.waiting import WaitStatus
from proctor.rollout import Rollout
from proctor.run import Run
from proctor.runner.inside.attempt_input import (
    EXIT_REPORTED,
    EXIT_RUN_OVER,
    RUN_FOLDER,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    AttemptInput,
    decode_attempt_input,
)
from proctor.runner.inside.failures import build_cause, describe_cause
from proctor.runner.inside.finished_rows import fetch_baseline, merge_server_rows
from proctor.runner.inside.output import LogForwarder, ReportLine
from proctor.runner.inside.reporter import REPORTED_EVENTS, Reporter
from proctor.runner.inside.side_loop import SideLoop, open_side_loop
from proctor.store import metadata
from proctor.store.folder import METADATA, RunFolder, read_metadata
from proctor.support.logs import PRINTED, log
from proctor.support.loop import exit_now, raise_file_limit, run_in_loop, tune_garbage_collector
from proctor.support.output_capture import OutputCapture
from proctor.trace import Reply

PAYMENT_REQUIRED = 402
PAUSE_SECONDS = 1.0
LOOK_SECONDS, WAIT_SECONDS = 0.5, 30.0
"""How often to look whether the run waits for something, and to say so."""


class HostedModel:
    """The model of a run, called through the server.

    Waits for a server that is unreachable, or whose database is: that is not a failure of the rollout. A run
    that is out of money makes no more calls, and is left as it is.
    """

    def __init__(self, model: Model, control: Control, gateway_url: str) -> None:
        self._model = model
        self._control = control
        self._gateway_url = gateway_url

    @property
    def name(self) -> str:
        return self._model.name

    async def check(self) -> None:
        while True:
            try:
                await self._model.check()
                return
            except UnreachableError:
                await asyncio.sleep(PAUSE_SECONDS)

    async def complete(self, request: Request) -> Reply:
        while True:
            try:
                return await self._model.complete(request)
            except UnreachableError:
                await asyncio.sleep(PAUSE_SECONDS)
            except ModelError as error:
                if DATABASE_AWAY in str(error):
                    await asyncio.sleep(PAUSE_SECONDS)
                    continue
                if error.status != PAYMENT_REQUIRED:
                    hide_address(error, self._gateway_url)
                    raise
                self._control.leave()
                await asyncio.Event().wait()  # cancelled with everything else

    async def close(self) -> None:
        await self._model.close()


def hide_address(error: ModelError, gateway_url: str) -> None:
    """Name the server instead of an address that is valid only inside the sandbox."""
    message = str(error).replace(gateway_url, "the server")
    error.args = (message[:1].upper() + message[1:],)


class InsideAttempt:
    """One attempt at a run."""

    def __init__(self, attempt: AttemptInput, server: ServerConnection, folder: Path) -> None:
        self.attempt = attempt
        self.server = server
        self.folder = folder
        self.control = Control()
        self.missing_secret: Failure | None = None
        """Of the first rollout that read a variable which the run does not have."""

    async def play(self) -> int:
        loop = asyncio.get_running_loop()
        known = await merge_server_rows(self.server, self.folder)
        loop.add_signal_handler(signal.SIGTERM, self.control.leave)

        def stop() -> None:
            loop.call_soon_threadsafe(self.control.leave)

        with open_side_loop() as there:  # reports even if an environment blocks this loop
            server = ServerConnection(self.server.context)
            reporter = Reporter(server, self.folder, known, self.attempt.first_batch, stop)
            there.soon(reporter.start)
            ending = await self._play_and_report(reporter, there)
            await there.run(reporter.end(ending))
            await there.run(server.close())
        return EXIT_RUN_OVER if reporter.is_over else EXIT_REPORTED

    async def _play_and_report(self, reporter: Reporter, there: SideLoop) -> Ending:
        """Play, and report everything that is logged, printed or finished."""

        def report_line(text: str, level: str) -> None:
            there.soon(reporter.report_line, text, level)

        waits = WaitStatus(self.attempt.model)

        def listen(event: Event) -> None:
            waits(event)
            if isinstance(event, RolloutsFinished):
                self._watch_secrets(event.rollouts)
            if isinstance(event, REPORTED_EVENTS):
                there.soon(reporter.take_event, event)

        logged = LogForwarder(report_line)
        logging.getLogger().addHandler(logged)
        watching = asyncio.create_task(self._report_waits(waits, report_line))
        faulthandler.enable()  # the host reports the last output of a crash
        try:
            with OutputCapture(lambda text: report_line(text, PRINTED)):
                return self._with_missing_secret(await self._ending(listen, report_line))
        finally:
            watching.cancel()
            logging.getLogger().removeHandler(logged)

    async def _report_waits(self, waits: WaitStatus, report_line: ReportLine) -> None:
        """Tell followers what the run waits for, now and then for as long as it waits."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            pace = self.control.pace
            if wait := waits.describe(None if pace is None else pace.in_flight):
                report_line(wait, "WARNING")
                await asyncio.sleep(WAIT_SECONDS)

    def _watch_secrets(self, rollouts: Sequence[Rollout]) -> None:
        """End a run that has no score yet at the first secret it lacks: later rollouts would be paid for and
        lack it too."""
        failures = [each.failure for each in rollouts if each.failure is not None]
        missing = next((each for each in failures if each.kind == MissingSecretError.__name__), None)
        tally = self.control.tally
        if missing is None or self.missing_secret is not None or (tally is not None and tally.scored):
            return
        self.missing_secret = missing
        asyncio.get_running_loop().call_soon(self.control.leave)

    def _with_missing_secret(self, ending: Ending) -> Ending:
        missing = self.missing_secret
        if missing is None or ending.status == "failed":
            return ending
        message = f"Not one rollout was scored, because {missing.message} ({missing.phase})."
        return msgspec.structs.replace(ending, status="failed", cause=build_cause("missing_secret", message))

    async def _ending(self, listen: Listener, report_line: ReportLine) -> Ending:
        """Play, and describe the result, whatever it is."""
        try:
            if (baseline := self.attempt.settings.get("until_decided")) is not None:
                await fetch_baseline(self.server, self.folder.parent, baseline)
            prepared = self._prepare()
            self._make_resumable(prepared)
            result = await self._run(prepared, listen)
        except ProctorError as error:
            return self._build_failure(report_line, describe_cause(error))
        except asyncio.CancelledError:
            if not self.control.stopping:
                raise
            return Ending(status="stopped", metadata=self._metadata())
        except Exception as error:
            log.exception("the run failed")
            return self._build_failure(report_line, describe_cause(error))
        return self._build_ending(result)

    async def _run(self, prepared: Prepared, listen: Listener) -> Result:
        service = SharedEndpoint(
            HostedModel(open_model(prepared.endpoint), self.control, prepared.endpoint.url)
        )
        try:
            return await run(
                prepared,
                [listen],
                control=self.control,
                resume=str(self.folder),
                service=service,
            )
        finally:
            await service.close()

    def _build_ending(self, result: Result) -> Ending:
        status = result.run.status
        saved = self._metadata()
        if status == "finished":
            return Ending(status="finished", metadata=saved)
        if status == "stopped":
            return Ending(status="stopped", metadata=saved)
        return Ending(
            status="failed",
            cause=Cause(code="limit_exceeded", message=result.run.note),
            metadata=saved,
        )

    def _build_failure(self, report_line: ReportLine, cause: Cause) -> Ending:
        report_line(cause.message, "ERROR")
        return Ending(status="failed", cause=cause, metadata=self._metadata())

    def _metadata(self) -> dict[str, Any]:
        return read_metadata(self.folder) if (self.folder / METADATA).exists() else {}

    def _prepare(self) -> Prepared:
        """The evaluation, under the name that the environment has on the hub."""
        attempt = self.attempt
        given = {"api_client_type": CHAT, **attempt.settings}
        own = self._server_settings()
        origins = {**dict.fromkeys(given, REQUEST), **dict.fromkeys(own, SERVER)}
        prepared = prepare({**given, **own}, os.environ, origins)
        if not attempt.environment:
            return prepared
        provenance = {**prepared.provenance, "source_hash": prepared.provenance.get("content_hash")}
        return msgspec.structs.replace(
            prepared,
            config=msgspec.structs.replace(prepared.config, env_id=attempt.environment),
            provenance={
                **provenance,
                "version": attempt.environment.rpartition("@")[2],
                "content_hash": attempt.content_hash,
            },
        )

    def _server_settings(self) -> dict[str, Any]:
        """Settings that the server decides: the package, and its gateway as the endpoint."""
        return {
            "env_id": self.attempt.env_id,
            "model": self.attempt.model,
            "api_base_url": f"{os.environ[URL_VARIABLE]}/v1",
            "api_key_var": TOKEN_VARIABLE,
            "num_workers": 1,
            "on": HERE,
            "on_args": {},
        }

    def _make_resumable(self, prepared: Prepared) -> None:
        """Prepare a folder that the engine resumes, whether or not anything was played before."""
        folder = RunFolder(self.folder)
        try:
            if (self.folder / METADATA).exists():  # hosts differ in the gateway's address
                current = metadata.run_identity(prepared.config, prepared.endpoint)
                kept = {name: current[name] for name in ("base_url", "env_id")}
                saved = {**read_metadata(self.folder), **kept}
            else:
                saved = self._opening(prepared)
            folder.save_metadata(saved)
        finally:
            folder.close()

    def _opening(self, prepared: Prepared) -> dict[str, Any]:
        fresh = Run(
            id=self.attempt.run_id,
            env_id=prepared.name,
            model=prepared.endpoint.model,
            status="running",
            started_at=time.time(),
        )
        return metadata.opening_metadata(
            fresh, prepared.config, prepared.endpoint, prepared.provenance, prepared.origins
        )


async def main(attempt: AttemptInput, folder: Path) -> int:
    context = Context(url=os.environ[URL_VARIABLE], token=os.environ[TOKEN_VARIABLE])
    async with ServerConnection(context) as server:
        return await InsideAttempt(attempt, server, folder / RUN_FOLDER).play()


def read_attempt_input() -> AttemptInput:
    """Read it from standard input, which is empty for the environment."""
    attempt = decode_attempt_input(sys.stdin.buffer.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return attempt


if __name__ == "__main__":
    raise_file_limit()
    tune_garbage_collector()
    logging.getLogger().setLevel(logging.INFO)
    exit_now(run_in_loop(main(read_attempt_input(), Path.cwd())))
