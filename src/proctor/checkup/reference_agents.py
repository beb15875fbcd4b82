"""Agents of known quality: one that is right, one that says nothing, two that are wrong.

Everything they say is decided before the first turn. Knows nothing of rewards.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.contracts import EnvironmentProtocol, Request
from proctor.env.gold import Gold, gold_of
from proctor.env.parsers import MaybeThinkParser, ThinkParser
from proctor.env.xml_parser import XMLParser, format_elements
from proctor.errors import ContextTooLongError
from proctor.models.scripted import Step, as_reply
from proctor.task import Task, TaskId
from proctor.trace import Reply

MOST_TURNS = 50
"""An agent stops after this many turns, as if its context were full."""
EMPTY = "empty"
RANDOM = "random"
SWAPPED = "exchanged"
RANDOM_WORDS = (
    "river",
    "stone",
    "seven",
    "window",
    "42",
    "lamp",
    "garden",
    "17",
    "yes",
    "copper",
    "3",
    "no",
    "engine",
)

PlayerLines = Sequence[Step]
Pace = Callable[[], Awaitable[None]]


class ScriptedPlayer(msgspec.Struct, frozen=True):
    """An agent: what it says on every task, turn by turn; the last line is repeated."""

    name: str
    lines: Mapping[TaskId, PlayerLines]
    wrapping: str = ""
    """How gold answers are said, where it says them."""


class Rendezvous:
    """Keeps rollouts in step: none gets its next line before all others have asked for theirs, or ended."""

    def __init__(self, members: int) -> None:
        self._turns = dict.fromkeys(range(members), 0)
        self._changed = asyncio.Event()

    async def arrive(self, member: int) -> None:
        self._turns[member] += 1
        turn = self._turns[member]
        self._changed.set()
        while min(self._turns.values()) < turn:
            self._changed.clear()
            await self._changed.wait()

    def leave(self, member: int) -> None:
        self._turns[member] = MOST_TURNS + 1
        self._changed.set()


class PlayerModel:
    """A model that says a player's lines on one task."""

    def __init__(self, name: str, lines: PlayerLines, pace: Pace = lambda: asyncio.sleep(0)) -> None:
        self._name = name
        self.lines = lines
        self.pace = pace
        """Awaited before each line."""
        self.turn = 0

    @property
    def name(self) -> str:
        return self._name

    async def check(self) -> None:
        pass

    async def complete(self, request: Request) -> Reply:
        await self.pace()  # a conversation between two that never wait would let no deadline pass
        if self.turn >= MOST_TURNS:
            raise ContextTooLongError(f"{self.name} said enough after {MOST_TURNS} turns")
        line = self.lines[min(self.turn, len(self.lines) - 1)]
        self.turn += 1
        return as_reply(line, request)

    async def close(self) -> None:
        pass


def create_players(
    environment: EnvironmentProtocol, tasks: Sequence[Task], seed: int = 0
) -> list[ScriptedPlayer]:
    """The players: the oracle in every wrapping, if gold answers are known, and the others."""
    players = [
        ScriptedPlayer(EMPTY, {task.id: [Step(text="")] for task in tasks}),
        ScriptedPlayer(RANDOM, {task.id: random_lines(f"{seed} {task.id!r}") for task in tasks}),
    ]
    gold = {task.id: gold_of(environment, task) for task in tasks}
    if not all(gold.values()):
        return players
    other = swap_tasks(gold)
    for wrapping, script in wrap_gold_answers(getattr(environment, "parser", None), gold).items():
        players.append(ScriptedPlayer(f"oracle ({wrapping})", script, wrapping))
        if other:
            lines = {task: script[another] for task, another in other.items()}
            players.append(ScriptedPlayer(f"{SWAPPED} ({wrapping})", lines, wrapping))
    return players


def random_lines(seed: str) -> list[Step]:
    """Words and numbers, others every turn, the same for the same seed."""
    source = random.Random(seed)
    return [Step(text=" ".join(source.choices(RANDOM_WORDS, k=6))) for _ in range(MOST_TURNS)]


def swap_tasks(gold: Mapping[TaskId, Gold]) -> dict[TaskId, TaskId]:
    """For each task the next one whose gold answer is another; empty if all have the same."""
    ids = list(gold)
    found = {}
    for index, task in enumerate(ids):
        after = [*ids[index + 1 :], *ids[:index]]
        other = next((each for each in after if gold[each] != gold[task]), None)
        if other is None:
            return {}
        found[task] = other
    return found


def wrap_gold_answers(parser: Any, gold: Mapping[TaskId, Gold]) -> dict[str, dict[TaskId, PlayerLines]]:
    """The gold answers in every form that an environment may expect them in."""
    if not all(isinstance(script, str) for script in gold.values()):
        return {"turn by turn": {task: gold_to_lines(script) for task, script in gold.items()}}
    texts = {task: str(script) for task, script in gold.items()}
    forms = {"bare": texts}
    formatted = {task: format_for_parser(parser, text) for task, text in texts.items()}
    if all(formatted.values()):
        forms["in the parser's format"] = {task: text or "" for task, text in formatted.items()}
    if not isinstance(parser, XMLParser):
        boxed = {task: rf"\boxed{{{text}}}" for task, text in texts.items()}
        forms["boxed"] = {task: format_for_parser(parser, text) or text for task, text in boxed.items()}
    return {
        name: {task: [Step(text=text)] for task, text in script.items()} for name, script in forms.items()
    }


def format_for_parser(parser: Any, text: str) -> str | None:
    """The text as a parser of ours wants it, where it wants anything."""
    if isinstance(parser, XMLParser):
        fields = {field: text if field == parser.answer_field else "…" for field in choose_fields(parser)}
        return format_elements(parser.fields, fields)
    if isinstance(parser, ThinkParser) and not isinstance(parser, MaybeThinkParser):
        return f"<think>\n…\n</think>\n{text}"
    return None


def choose_fields(parser: XMLParser) -> list[str]:
    """One name of each field: of alternatives, the one that holds the answer."""
    return [parser.answer_field if parser.answer_field in names else names[0] for names in parser.fields]


def gold_to_lines(gold: Gold) -> PlayerLines:
    entries = [gold] if isinstance(gold, str) else list(gold)
    return [
        Step(text=entry)
        if isinstance(entry, str)
        else Step(
            text=entry.get("content"), tool_calls=[dict(call) for call in entry.get("tool_calls") or ()]
        )
        for entry in entries
    ]
