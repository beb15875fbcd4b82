"""The record of one run: rows on disk first, then counted, then reported to listeners.

Knows nothing of how rollouts are played.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.config.prices import Price, find_price
from proctor.contracts import Listener
from proctor.engine.plan import Plan
from proctor.engine.runner import as_store_error
from proctor.errors import ProctorError, StoreError
from proctor.evaluation.early_stop import StoppingWatch
from proctor.evaluation.prepare import Prepared
from proctor.evaluation.resolved import resolve_settings
from proctor.events import Event, RolloutsFinished, RunEnded, RunStarted
from proctor.report.lines import RolloutLine, rollout_line
from proctor.report.summary import Summary
from proctor.report.tally import Tally
from proctor.rollout import Rollout
from proctor.run import Run, RunStatus
from proctor.store import metadata
from proctor.store.folder import RunFolder
from proctor.store.rows import encode_row
from proctor.support.logs import log
from proctor.trace import ToolSpec
from proctor.workers.pool import WorkerPool

METADATA_EVERY_SECONDS = 5.0
WRITE_EVERY_SECONDS = 0.01
"""One write this often is enough: a write for each rollout costs more than its scoring."""


class RunRecord:
    """Everything recorded of a run so far: its folder, its tally, and what its listeners know."""

    def __init__(
        self,
        run: Run,
        prepared: Prepared,
        plan: Plan,
        folder: RunFolder,
        tally: Tally,
        listeners: Sequence[Listener],
    ) -> None:
        self.run = run
        self.prepared = prepared
        self.plan = plan
        self.folder = folder
        self.tally = tally
        self.listeners = list(listeners)
        self.workers: WorkerPool | None = None
        """Worker processes, which encode rows themselves."""
        self.failure: ProctorError | None = None
        """Why finished rollouts could not be written, if that happened."""
        self.on_failure: Callable[[ProctorError], None] | None = None
        """Called when it does."""
        self.summary: Summary | None = None
        """Of all rollouts, once the run has ended."""
        self.accepted_changes: Sequence[Mapping[str, Any]] = ()
        """Settings that changed between the parts of a resumed run, with the user's consent."""
        self.watch: StoppingWatch | None = None
        """Decides whether enough tasks were played, if the settings ask for that."""
        self.origin: Mapping[str, Any] | None = None
        """The run that this one was made from, if it was."""
        self._metadata: dict[str, Any] = {}
        self._waiting: list[tuple[Rollout, bytes, RolloutLine]] = []
        """Rollouts that ended and are not written yet."""
        self._has_seen_scoring = False
        self._written_at = 0.0
        self._saved_at = 0.0

    def begin(self, settled: int) -> None:
        """Write the first metadata and report the start; `settled` rollouts are there from before."""
        prepared = self.prepared
        self._metadata = metadata.opening_metadata(
            self.run, prepared.config, prepared.endpoint, prepared.provenance, prepared.origins
        )
        self._note_tasks()
        if self.origin is not None:
            self._metadata["origin"] = dict(self.origin)
        if self.accepted_changes:
            self._metadata["accepted_changes"] = list(self.accepted_changes)
        self._metadata["pass_threshold"] = self.tally.pass_threshold  # a report of a live run needs it
        self._set_tools(self.folder.tools)
        self._save_metadata()
        self.emit(RunStarted(self.run, self.plan.planned, settled, str(self.folder.path)))

    def keep(self, rollouts: Sequence[Rollout]) -> None:
        """Encode rollouts as they end; write them at once or, in a rush, with those of the next moment.

        Encoding waits for nothing: a moment later everything in the row has left the processor's cache.
        """
        if not self._waiting:
            loop = asyncio.get_running_loop()
            delay = max(0.0, self._written_at + WRITE_EVERY_SECONDS - loop.time())
            loop.call_later(delay, self.flush)
        for rollout in rollouts:
            encoded = None if self.workers is None else self.workers.rows.pop(rollout.key, None)
            try:
                self._share_tools(rollout)
            finally:
                row, line = encoded or (encode_row(rollout, self.folder.tools), rollout_line(rollout))
                self._waiting.append((rollout, row, line))

    def count(self, line: RolloutLine) -> None:
        """Count a rollout that is in the folder."""
        self.tally.add(line)
        if self.watch is not None:
            self.watch.add(line)

    def flush(self) -> None:
        """Make waiting rollouts durable, then count and report them."""
        if not self._waiting:
            return
        self._written_at = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, []
        rollouts = tuple([rollout for rollout, _, _ in waiting])
        if not self._has_seen_scoring:
            self._report_first_scoring(rollouts)
        try:
            try:
                self.folder.append([row for _, row, _ in waiting])
            finally:
                for _, _, line in waiting:
                    self.count(line)
            if time.monotonic() - self._saved_at > METADATA_EVERY_SECONDS:
                self._save_metadata()
        except Exception as error:
            self._fail(as_store_error(rollouts, error))
        self.emit(RolloutsFinished(rollouts))

    def _report_first_scoring(self, rollouts: Sequence[Rollout]) -> None:
        """If the first rollout that is scored fails in scoring, so may all others: warn before they are
        paid for."""
        self._has_seen_scoring = self.tally.scored > 0  # before a resume
        for rollout in rollouts:
            if self._has_seen_scoring:
                return
            self._has_seen_scoring = rollout.score is not None or rollout.outcome == "grader_error"
            if rollout.score is None and rollout.failure is not None and self._has_seen_scoring:
                log.warning(
                    "The first rollout to be scored could not be: %s. If others fail like it, press Ctrl-C, "
                    "fix the scoring, and continue with --resume.",
                    rollout.failure.message.rstrip("."),
                )

    def end(self, status: RunStatus, note: str = "") -> None:
        """Write what is left, and report the end."""
        self.flush()
        self.run = msgspec.structs.replace(self.run, status=status, ended_at=time.time(), note=note)
        self.summary = self._summarize()
        self._note_tasks()
        self._metadata.update(metadata.closing_metadata(self.summary))
        if self.watch is not None:
            self._metadata["early_stop"] = msgspec.to_builtins(self.watch.describe())
        try:
            self._save_metadata()
        except StoreError as error:
            log.error("%s", error)
        self.emit(RunEnded(self.run))

    def emit(self, event: Event) -> None:
        """Report to every listener; one that raises is logged and dropped; the others still get events."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                log.exception("a listener raised and is left out from here on")
                self.listeners = [other for other in self.listeners if other is not listener]

    def spent_usd(self) -> float:
        """What was paid so far; 0 without a price."""
        return self.tally.cost_usd(self.prepared.endpoint.model, self._find_prices()) or 0.0

    def count_ended(self) -> int:
        return self.tally.finished

    def _find_prices(self) -> dict[str, Price]:
        endpoint = self.prepared.endpoint
        prices = {name: price for name in self.tally.other_usage if (price := find_price(name)) is not None}
        prices.pop(endpoint.model, None)
        if (own := endpoint.tariff) is not None:
            prices[endpoint.model] = own
        return prices

    def _summarize(self) -> Summary:
        return self.tally.summary(
            planned=self.count_planned(),
            rollouts_per_task=self.plan.rollouts_per_task,
            model=self.prepared.endpoint.model,
            prices=self._find_prices(),
        )

    def count_planned(self) -> int | None:
        if self.plan.planned is not None or self.run.status != "finished":
            return self.plan.planned
        return self.plan.counted * self.plan.rollouts_per_task

    def count_tasks(self) -> int | None:
        """How many tasks are evaluated, once that is known."""
        planned = self.count_planned()
        return None if planned is None else planned // self.plan.rollouts_per_task

    def _note_tasks(self) -> None:
        """Record what is used rather than what was requested; lazily read tasks are counted at the end."""
        counted = self.count_tasks()
        self._metadata["selection"] = self.prepared.selection(counted)
        self._metadata["resolved"] = msgspec.to_builtins(
            resolve_settings(self.prepared, counted), enc_hook=str
        )

    def _fail(self, error: ProctorError) -> None:
        self.failure = self.failure or error
        if self.on_failure is not None:
            self.on_failure(error)

    def _share_tools(self, rollout: Rollout) -> None:
        """Write the tools into the metadata before the first row leaves them out."""
        calls = rollout.trace.calls
        tools = calls[0].tools if calls else ()
        if tools and not self.folder.tools:
            self._set_tools(tools)
            self._save_metadata()
            self.folder.tools = tools
            if self.workers is not None:
                self.workers.share(tools)

    def _set_tools(self, tools: Sequence[ToolSpec]) -> None:
        self._metadata["tools"] = msgspec.to_builtins(list(tools)) or None

    def _save_metadata(self) -> None:
        self._saved_at = time.monotonic()
        settled = self.tally.scored + self.tally.outcomes["excluded"]
        self._metadata.update(metadata.progress_metadata(self.run, settled, self.count_planned()))
        self.folder.save_metadata(self._metadata)
