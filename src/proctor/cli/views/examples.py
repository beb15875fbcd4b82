"""A few rollouts of a finished run, as text: the ends of what was said, and how it was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proctor.cli.views.escape import strip_escapes
from proctor.cli.views.formatting import format_number
from proctor.evaluation.evaluate import Result
from proctor.rollout import RolloutKey
from proctor.store.folder import read_rows
from proctor.trace import text_of

SHOWN_LINES = 6


def show_examples(console: Console, result: Result) -> None:
    rows = read_rows(result.folder, result.notable)
    console.print(Text("Examples", style="bold"))
    for key, reason in result.notable.items():
        if key in rows:
            console.print(Padding(build_example(key, reason, rows[key], console.width), (0, 0, 1, 2)))


def build_example(key: RolloutKey, reason: str, row: Mapping[str, Any], width: int) -> Table:
    reward = row.get("reward")
    verdict = row["outcome"].replace("_", " ") if reward is None else f"reward {format_number(reward)}"
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    why = "" if reason == verdict else f"{reason}: "
    heading = strip_escapes(f"{why}task {key[0]}, rollout {key[1]}, {verdict}")
    grid.add_row(Text(""), Text(heading, style="underline"))
    for message in [*take_ends(row["prompt"]), *take_ends(row["completion"])]:
        grid.add_row(Text(strip_escapes(role_of(message))), shorten_text(message_text(message), width))
    if row.get("answer") not in ("", None):
        grid.add_row(Text("answer"), shorten_text(str(row["answer"]), width))
    error = row.get("error")
    if error:
        grid.add_row(Text("error", style="red"), shorten_text(f"{error['error']}: {error['message']}", width))
    return grid


def take_ends(messages: Sequence[Any]) -> Sequence[Any]:
    """The ends of a conversation."""
    return messages if len(messages) <= 4 else [*messages[:2], *messages[-2:]]


def role_of(message: Any) -> str:
    return str(message.get("role", "?")) if isinstance(message, dict) else "?"


def message_text(message: Any) -> str:
    """What a message says; an environment may have put anything there."""
    if not isinstance(message, dict):
        return str(message)
    calls = message.get("tool_calls") or []
    parts = [text_of(message), *(call_text(call) for call in calls)]
    return "\n".join(part for part in parts if part) or "(nothing)"


def call_text(call: Any) -> str:
    """A tool call, in our shape or in that of OpenAI."""
    made = call.get("function", call) if isinstance(call, dict) else None
    return f"→ {made.get('name')}({made.get('arguments')})" if isinstance(made, dict) else f"→ {call}"


def shorten_text(text: str, width: int) -> Text:
    lines = strip_escapes(text).splitlines() or [""]
    most = max(20, width - 16) * 2
    shown = [line if len(line) <= most else line[:most] + " …" for line in lines[:SHOWN_LINES]]
    if len(lines) > SHOWN_LINES:
        shown.append(f"… {len(lines) - SHOWN_LINES} more lines")
    return Text("\n".join(shown))
