"""Handlers of the routes about people's labels: what is left to label, a rollout to label blind, and how far
a judge agrees. Order and arithmetic are those of `proctor eval label` and `agreement`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from proctor.api.labels import (
    AgreementQuery,
    BlindMessage,
    BlindRollout,
    LabellingPerson,
    LabellingQuery,
    LabellingQueue,
    QueuedRollout,
)
from proctor.api.refusals import ApiError, InvalidError
from proctor.comparison.agreement import JudgeReport, examine_judge
from proctor.errors import did_you_mean
from proctor.reading.entries import task_key
from proctor.reading.exchange import ReadRequest
from proctor.reading.library import RunLibrary, RunReader
from proctor.reading.replays import UnreadableRowError
from proctor.reading.rollout_handlers import open_rollout
from proctor.reading.rollout_index import RolloutIndex
from proctor.rollout import RolloutKey
from proctor.store.export import format_message, to_text
from proctor.store.folder import UNREADABLE, find_rescored_run
from proctor.store.labels import Label, RunLabels, order_for_labelling
from proctor.store.replay import StoredRow

LONGEST_MESSAGE = 100_000
MOST_MESSAGES = 400

_decode_row = msgspec.json.Decoder(StoredRow).decode


class NoLabelsError(ApiError):
    """The run has no labels."""

    status, code = 404, "no_labels"


# Labelling


async def get_labelling(library: RunLibrary, request: ReadRequest) -> LabellingQueue:
    reader = await library.open(request.path["run_id"])
    index, labels = await reader.index(whole=True), await reader.labels()
    return await asyncio.to_thread(build_queue, index, labels, request.query)


def build_queue(index: RolloutIndex, labels: RunLabels, query: LabellingQuery) -> LabellingQueue:
    keys = order_for_labelling(collect_values(index, None), query.seed)
    own = {} if query.person is None else labels.of(query.person)
    shown = keys if query.only == "all" else [key for key in keys if key not in own]
    return LabellingQueue(
        total=len(keys),
        labelled=sum(key in own for key in keys),
        people=[count_labels(person, given.values()) for person, given in sorted(labels.by_person.items())],
        items=[describe_queued(key, own.get(key)) for key in shown[: query.limit]],
    )


def describe_queued(key: RolloutKey, label: Label | None) -> QueuedRollout:
    task, number = key
    queued = QueuedRollout(key=task_key(task), example_id=task, rollout=number)
    if label is None:
        return queued
    return msgspec.structs.replace(queued, is_labelled=True, score=label.score, note=label.note)


def count_labels(person: str, labels: Iterable[Label]) -> LabellingPerson:
    scores = [label.score for label in labels]
    skipped = scores.count(None)
    return LabellingPerson(person=person, scored=len(scores) - skipped, skipped=skipped)


async def get_blind_rollout(library: RunLibrary, request: ReadRequest) -> BlindRollout:
    number = request.number("number")
    found = await open_rollout(library, request.path["run_id"], request.path["key"], number)
    return await asyncio.to_thread(build_blind_rollout, await found.raw())


def build_blind_rollout(raw: bytes) -> BlindRollout:
    try:
        row = _decode_row(raw)
    except UNREADABLE as error:
        raise UnreadableRowError(f"This rollout cannot be read: {error}.") from error
    room = max(0, MOST_MESSAGES - len(row.prompt))
    return BlindRollout(
        prompt=list_messages(row.prompt[:MOST_MESSAGES]),
        completion=list_messages(row.completion[:room]),
        answer=None if row.answer in (None, "") else (to_text(row.answer) or "")[:LONGEST_MESSAGE],
        left_out=max(0, len(row.prompt) - MOST_MESSAGES) + max(0, len(row.completion) - room),
    )


def list_messages(messages: Sequence[Any]) -> list[BlindMessage]:
    return [describe_message(message) for message in messages if isinstance(message, dict)]


def describe_message(message: dict[str, Any]) -> BlindMessage:
    text = format_message(message)
    left_out = max(0, len(text) - LONGEST_MESSAGE)
    return BlindMessage(role=str(message.get("role", "?")), text=text[:LONGEST_MESSAGE], left_out=left_out)


# Agreement


async def get_agreement(library: RunLibrary, request: ReadRequest) -> JudgeReport:
    query: AgreementQuery = request.query
    reader = await library.open(request.path["run_id"])
    source = reader if query.labels is None else await library.open(query.labels)
    if source.id != reader.id:
        await check_same_answers(reader, source)
    index = await reader.index(whole=True)
    judged = await asyncio.to_thread(collect_values, index, query.metric)
    if query.metric is not None and not judged:
        known = did_you_mean(query.metric, index.metrics.names)
        raise InvalidError(f"No metric {query.metric!r} in this run{known}", field="metric")
    labels = await source.labels()
    if not labels.scored:
        raise NoLabelsError(
            f"Run {source.id} has no labels yet; start with `proctor eval label {source.id}`."
        )
    return await asyncio.to_thread(
        examine_judge,
        judged,
        labels.scores,
        judge=query.metric or "reward",
        pass_threshold=index.pass_threshold,
        level=query.level,
    )


async def check_same_answers(reader: RunReader, source: RunReader) -> None:
    """Labels are about answers, so another run may use them only if it has the same ones."""
    known = find_rescored_run(await reader.metadata())
    if known is None or known not in (source.id, (await source.metadata()).get("run_id")):
        raise InvalidError(
            f"{reader.id} is not a re-score of {source.id}, so its answers differ; label it directly.",
            field="labels",
        )


def collect_values(index: RolloutIndex, metric: str | None) -> dict[RolloutKey, float]:
    """Each scored rollout's reward, or one of its metrics."""
    with index.lock:
        slots = [slot for slot in index.slots() if index.reward[slot] == index.reward[slot]]
        column = index.reward if metric is None else index.metrics.column(metric)
        return {
            (index.tasks[index.task[slot]], index.number[slot]): column[slot]
            for slot in slots
            if column[slot] == column[slot]
        }
