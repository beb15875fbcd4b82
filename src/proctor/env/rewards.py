"""What a template yields: messages to begin a turn, and a reward at the end.

Knows nothing of generators, or of who answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.errors import EnvError, GraderError
from proctor.rollout import Score, Subscore, is_score, require_finite_number, validate_score
from proctor.trace import Content, Message

ROLES = ("system", "user", "assistant", "tool")
SCORE = "score"


class Grade(msgspec.Struct, frozen=True):
    """A reward, with notes about it."""

    score: Score
    info: Mapping[str, Any] = {}
    content: Content | None = None


class EvaluationResult(msgspec.Struct, kw_only=True):
    """A reward with what led to it, as an object: what HUD's environments yield last."""

    reward: float = 0.0
    done: bool = True
    content: str | None = None
    info: dict[str, Any] = {}
    isError: bool = False  # noqa: N815
    """The evaluation itself failed, so the reward does not count."""
    subscores: Sequence[Subscore] = ()


def is_reward(value: object) -> bool:
    """Whether this is meant as the reward: whatever is neither text nor messages."""
    if isinstance(value, Mapping):
        return "role" not in value
    if isinstance(value, (list, tuple)):
        return not all(isinstance(part, str) or is_message(part) for part in value)
    return not isinstance(value, str)


def is_message(value: object) -> bool:
    return isinstance(value, Mapping) and "role" in value


def messages_of(prompt: object, where: str) -> list[Message]:
    """The messages of a prompt: a text, a message, or a list of both."""
    parts = list(prompt) if isinstance(prompt, (list, tuple)) else [prompt]
    if not parts or prompt == "":
        raise EnvError(f"{where} yielded an empty prompt; there is nothing to answer")
    return [message_of(part, where) for part in parts]


def message_of(part: object, where: str) -> Message:
    if isinstance(part, str):
        return {"role": "user", "content": part}
    if not isinstance(part, Mapping) or "role" not in part:
        raise EnvError(f"{where} yielded {short_repr(part)} as its prompt; yield a text, a message or a list")
    if part["role"] not in ROLES:
        raise EnvError(f"{where} yielded a message of {part['role']!r}; a role is one of {', '.join(ROLES)}")
    if not isinstance(part.get("content"), (str, list)) and not part.get("tool_calls"):
        raise EnvError(f"{where} yielded a message of {part['role']!r} without content")
    return dict(part)


def grade_of(value: object, where: str) -> Grade:
    """The reward in the last value yielded; GraderError if it is not one."""
    if isinstance(value, Score):
        return Grade(validate_score(value))
    if isinstance(value, Subscore):
        validate_subscore(value, where)
        return Grade(Score(value.value, {}, value.parts or (value,)))
    if isinstance(value, EvaluationResult):
        return grade_of_result(value, where)
    if isinstance(value, Mapping) and SCORE in value:
        return grade_in(value, where)
    if isinstance(value, (str, bool)) or value is None:
        raise GraderError(
            f"{where} yielded {short_repr(value)} last; a reward is a number, such as {suggest_reward(value)}"
        )
    return Grade(Score(validate_number(value, where)))


def grade_of_result(result: EvaluationResult, where: str) -> Grade:
    if result.isError:
        raise GraderError(f"{where} could not be evaluated: {result.content or 'no reason was given'}")
    parts = {"info": result.info, "content": result.content, "subscores": result.subscores}
    return grade_in({SCORE: result.reward, **parts}, where)


def grade_in(value: Mapping[str, Any], where: str) -> Grade:
    """The parts of `{"score": …, "subscores": …, "info": …, "content": …}`."""
    info = value.get("info") or {}
    if not isinstance(info, Mapping):
        raise GraderError(f"{where} yielded info that is {short_repr(info)}; it must be an object")
    metrics = {str(name): float(known) for name, known in info.items() if is_number(known)}
    subscores = subscores_of(value.get("subscores") or (), where)
    score = validate_score(Score(validate_number(value[SCORE], where), metrics, subscores))
    return Grade(score, dict(info), value.get("content"))


def subscores_of(given: object, where: str) -> tuple[Subscore, ...]:
    """Subscores as objects, as plain data, or simply by name."""
    if isinstance(given, Mapping):
        return tuple(Subscore(str(name), validate_number(value, where)) for name, value in given.items())
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise GraderError(f"{where} yielded subscores that are {short_repr(given)}; give a list or an object")
    return tuple(subscore_of(part, where) for part in given)


def subscore_of(part: object, where: str) -> Subscore:
    if isinstance(part, Subscore):
        return validate_subscore(part, where)
    if not isinstance(part, Mapping) or "name" not in part or "value" not in part:
        raise GraderError(f"{where} yielded the subscore {short_repr(part)}; it needs a name and a value")
    return Subscore(
        str(part["name"]),
        validate_number(part["value"], where),
        validate_number(part.get("weight", 1.0), where),
        str(part.get("note") or ""),
        subscores_of(part.get("parts") or part.get("children") or (), where),
    )


def validate_subscore(subscore: Subscore, where: str) -> Subscore:
    validate_number(subscore.value, f"subscore {subscore.name!r} of {where}")
    for part in subscore.parts:
        validate_subscore(part, where)
    return subscore


def validate_number(value: object, where: str) -> float:
    item = getattr(value, "item", None)
    if isinstance(item() if callable(item) else value, bool):
        raise GraderError(
            f"{where} scored {value!r}; a score is a number, such as {suggest_reward(bool(value))}"
        )
    return require_finite_number(value, where)


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and is_score(value)


def suggest_reward(value: object) -> str:
    return "float(…) of it" if isinstance(value, bool) else "1.0"


def short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
