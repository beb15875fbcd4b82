"""Encode prompts, grades and failures for the channel, and decode them.

Knows the shapes on the wire. Knows nothing of sockets or sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor import errors
from proctor.channel.frames import INVALID_PARAMS, RemoteError
from proctor.env.multi_turn import with_metrics
from proctor.env.rewards import Grade, grade_of, is_number, messages_of
from proctor.errors import EnvError, Failure, GraderError, RolloutError
from proctor.rollout import Score, Subscore
from proctor.trace import Message, ModelCall

# Prompts


def encode_prompt(messages: Sequence[Message]) -> str | list[Message]:
    """A prompt as it was most likely yielded: a single user message becomes its text."""
    first = messages[0]
    plain = len(messages) == 1 and first.keys() == {"role", "content"} and first["role"] == "user"
    return first["content"] if plain and isinstance(first["content"], str) else list(messages)


def read_prompt(prompt: object, where: str) -> list[Message]:
    """The messages of a prompt from the wire, as Proctor serves it."""
    return messages_of(prompt, where)


def read_hud_prompt(prompt: object, where: str) -> list[Message]:
    """The messages of a prompt that `hud` serves, as its own agents get to see them: no system turns, one
    message per block of content, and no prompt as an empty turn."""
    if prompt is None or prompt == "":
        return [{"role": "user", "content": ""}]
    turns = prompt if isinstance(prompt, list) else [prompt]
    return messages_of([message for turn in turns for message in read_hud_turn(turn)], where)


def read_hud_turn(turn: object) -> list[object]:
    if not isinstance(turn, Mapping):
        return [turn]
    role = "assistant" if turn.get("role") == "assistant" else "user"
    content = turn.get("content")
    blocks = content if isinstance(content, list) else [content]
    return [{"role": role, "content": read_hud_block(block)} for block in blocks]


def read_hud_block(block: object) -> object:
    """A block of content in MCP's vocabulary, as the text or the image part of a message."""
    if not isinstance(block, Mapping):
        return block
    if block.get("type") == "image":
        url = f"data:{block.get('mimeType')};base64,{block.get('data')}"
        return [{"type": "image_url", "image_url": {"url": url}}]
    text = block.get("text")
    return text if isinstance(text, str) else [dict(block)]


# Grades


def encode_grade(grade: Grade, metrics: Mapping[str, float] | None = None) -> dict[str, Any]:
    """A grade for any client: the score, and beside it whatever else is known.

    `metrics` is for peers, which keep them apart from what the template yielded.
    """
    score = grade.score
    frame: dict[str, Any] = {"score": score.reward}
    if grade.info or grade.content is not None or score.subscores:
        frame |= {
            "done": True,
            "content": grade.content,
            "info": msgspec.to_builtins(dict(grade.info)),
            "isError": False,
            "subscores": [encode_subscore(part) for part in score.subscores],
        }
    if metrics is not None:
        frame["metrics"] = {**score.metrics, **metrics}
    return frame


def encode_subscore(part: Subscore) -> dict[str, Any]:
    return {
        "name": part.name,
        "weight": part.weight,
        "value": part.value,
        "children": [encode_subscore(child) for child in part.parts] or None,
        "info": {"note": part.note} if part.note else {},
    }


def read_grade(frame: Mapping[str, Any], where: str) -> Grade:
    """The grade in a frame, from any implementation; GraderError if there is none."""
    if frame.get("isError"):
        raise GraderError(f"{where} could not be evaluated: {frame.get('content') or 'no reason was given'}")
    subscores = frame.get("subscores")
    if isinstance(subscores, list):
        frame = {**frame, "subscores": [with_note(part) for part in subscores]}
    grade = grade_of(frame, where)
    metrics = frame.get("metrics")
    if isinstance(metrics, Mapping):
        given = {str(name): float(value) for name, value in metrics.items() if is_number(value)}
        return msgspec.structs.replace(grade, score=with_metrics(without_metrics(grade.score), given))
    return grade


def without_metrics(score: Score) -> Score:
    return msgspec.structs.replace(score, metrics={})


def with_note(part: Any) -> Any:
    """A subscore with its note where ours has it."""
    if not isinstance(part, Mapping):
        return part
    info = part.get("info")
    note = info.get("note") if isinstance(info, Mapping) else None
    children = part.get("children")
    if isinstance(children, list):
        part = {**part, "children": [with_note(child) for child in children]}
    return {**part, "note": note or part.get("note") or ""}


def read_calls(frame: Mapping[str, Any], where: str) -> list[ModelCall]:
    """The calls that judges on the other side made."""
    try:
        return msgspec.convert(frame.get("calls") or [], list[ModelCall])
    except msgspec.ValidationError as error:
        raise GraderError(f"{where} sent model calls that cannot be read: {error}") from error


# Failures


def encode_failure(error: BaseException) -> dict[str, Any]:
    """What a peer needs to distinguish failures."""
    failure = Failure.of(error)
    return {"kind": failure.kind, "transient": failure.transient, "trace": list(failure.trace)}


def decode_failure(error: RemoteError, otherwise: type[RolloutError] = EnvError) -> RolloutError:
    """The error raised on the other side, as far as it can be reconstructed."""
    kind = str(error.data.get("kind", ""))
    named = getattr(errors, kind, None)
    if isinstance(named, type) and issubclass(named, RolloutError):
        return named(str(error))
    message = f"{kind}: {error}" if kind else str(error)
    if error.code == INVALID_PARAMS:
        return EnvError(message)
    return otherwise(message)
