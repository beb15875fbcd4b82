"""Write a run as data to train on: conversations that went well, or pairs of a better and a worse one.

Messages have the shape of the chat completions API, which trainers read. Where the model's client kept token
ids, they are written too, so that nothing has to be tokenized again. Only rollouts that were played to their
end are good examples. Rows are read one at a time. Knows nothing of trainers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from proctor.contracts import PASS_THRESHOLD
from proctor.rollout import RolloutKey
from proctor.store.folder import read_metadata
from proctor.store.recorded import StoredPlays
from proctor.store.replay import StoredRow
from proctor.task import TaskId
from proctor.trace import Message, ToolSpec
from proctor.wires.chat import encode_messages, encode_tool

FORMATS = ("messages", "preferences")
SCORED = "scored"
"""Played to its end and scored; what was cut short may be a bad example, but not a good one."""


class TrainingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which rollouts are written."""

    min_reward: float | None = None
    """That a good example has at least; by default what counts as passed, or anything for pairs."""
    min_gap: float = 0.0
    """By which the better one of a pair leads at least; they always differ."""
    all_pairs: bool = False
    """Every pair of a task instead of its best rollout against its worst."""


class TrainingCounts(msgspec.Struct):
    """What was written, counted on the way."""

    written: int = 0
    tasks: int = 0
    with_token_ids: int = 0
    other_prompts: int = 0
    """Pairs left out because their rollouts were asked different things."""
    same_answers: int = 0
    """Pairs left out because their rollouts said the same, from which nothing is learned."""
    faults: int = 0


def write_training(folder: Path, kind: str, options: TrainingOptions, file: BinaryIO) -> TrainingCounts:
    """Write a run's conversations or pairs as JSON lines."""
    metadata = read_metadata(folder)
    counts = TrainingCounts()
    encode = msgspec.json.Encoder().encode
    with closing(StoredPlays(folder, metadata)) as plays:
        counts.faults = plays.faults
        source = RunSource(plays, str(metadata.get("run_id") or folder.name))
        examples = (
            build_conversations(source, options, read_threshold(metadata))
            if kind == "messages"
            else build_pairs(source, options, counts)
        )
        tasks: set[TaskId] = set()
        for example in examples:
            file.write(encode(example) + b"\n")
            counts.written += 1
            counts.with_token_ids += any(name.endswith("token_ids") for name in example)
            tasks.add(example["example_id"])
        counts.tasks = len(tasks)
    return counts


def read_threshold(metadata: Mapping[str, Any]) -> float:
    value = metadata.get("pass_threshold")
    return value if isinstance(value, (int, float)) else PASS_THRESHOLD


class RunSource(msgspec.Struct, frozen=True):
    """A run to take examples from."""

    plays: StoredPlays
    run_id: str

    def tools(self, row: StoredRow) -> dict[str, Any]:
        """What the model was offered, if anything, under the name that trainers know."""
        offered = msgspec.convert(row.tool_defs, list[ToolSpec]) if row.tool_defs else self.plays.tools
        return {"tools": [encode_tool(tool) for tool in offered]} if offered else {}


def build_conversations(
    source: RunSource, options: TrainingOptions, threshold: float
) -> Iterator[dict[str, Any]]:
    least = threshold if options.min_reward is None else options.min_reward
    for key, line in source.plays.lines.items():
        if line.outcome != SCORED or line.reward is None or line.reward < least:
            continue
        row = source.plays.read_row(key)
        yield {
            "messages": encode_messages([*row.prompt, *row.completion]),
            **source.tools(row),
            "run_id": source.run_id,
            "example_id": row.example_id,
            "rollout": row.rollout,
            "reward": row.reward,
            **name_token_ids("token_ids", row.completion),
        }


def build_pairs(
    source: RunSource, options: TrainingOptions, counts: TrainingCounts
) -> Iterator[dict[str, Any]]:
    by_task: dict[TaskId, list[tuple[float, RolloutKey]]] = {}
    for key, line in source.plays.lines.items():
        if line.reward is not None:
            by_task.setdefault(key[0], []).append((line.reward, key))
    for rated in by_task.values():
        for better, worse in choose_pairs(source, rated, options):
            chosen, rejected = source.plays.read_row(better), source.plays.read_row(worse)
            if encode_messages(chosen.prompt) != encode_messages(rejected.prompt):
                counts.other_prompts += 1
                continue
            pair = build_pair(source, chosen, rejected)
            if pair["chosen"] == pair["rejected"]:
                counts.same_answers += 1
                continue
            yield pair


def choose_pairs(
    source: RunSource, rated: Sequence[tuple[float, RolloutKey]], options: TrainingOptions
) -> Iterator[tuple[RolloutKey, RolloutKey]]:
    """Pairs of a better and a worse rollout of one task; of equals, the first counts."""
    least = options.min_reward
    good = [
        (reward, key)
        for reward, key in rated
        if source.plays.lines[key].outcome == SCORED and (least is None or reward >= least)
    ]
    ranked = sorted(good, key=lambda each: -each[0])
    worst_first = sorted(rated, key=lambda each: each[0])
    pairs = (
        itertools.product(ranked, worst_first)
        if options.all_pairs
        else zip(ranked[:1], worst_first[:1], strict=False)
    )
    for (high, better), (low, worse) in pairs:
        if high > low and high - low >= options.min_gap:
            yield better, worse


def build_pair(source: RunSource, chosen: StoredRow, rejected: StoredRow) -> dict[str, Any]:
    return {
        "prompt": encode_messages(chosen.prompt),
        "chosen": encode_messages(chosen.completion),
        "rejected": encode_messages(rejected.completion),
        **source.tools(chosen),
        "run_id": source.run_id,
        "example_id": chosen.example_id,
        "chosen_rollout": chosen.rollout,
        "rejected_rollout": rejected.rollout,
        "chosen_reward": chosen.reward,
        "rejected_reward": rejected.reward,
        **name_token_ids("chosen_token_ids", chosen.completion),
        **name_token_ids("rejected_token_ids", rejected.completion),
    }


def name_token_ids(name: str, completion: Sequence[Message]) -> dict[str, Any]:
    """The ids of every answer under a name, if all of them were kept."""
    answers = [message for message in completion if message.get("role") == "assistant"]
    turns = [turn for message in answers if (turn := read_token_ids(message)) is not None]
    return {name: turns} if turns and len(turns) == len(answers) else {}


def read_token_ids(message: Message) -> dict[str, list[int]] | None:
    native = message.get("native")
    if not isinstance(native, Mapping) or "token_ids" not in native or "prompt_token_ids" not in native:
        return None
    return {"prompt": native["prompt_token_ids"], "completion": native["token_ids"]}
