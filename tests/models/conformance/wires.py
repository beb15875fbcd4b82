"""What a client type says to its provider and hears from it, described so that one test reads all of them.

A `Wire` renders a neutral `Answer` as its provider would send it, and reads a request that a client sent
back into neutral words. It is written from the provider's documentation, not from the client's code.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from proctor.trace import Usage

SYSTEM = "system"
"""A system prompt is told from what the user says."""
TOOLS = "tools"
IMAGES = "images"
TOOL_IMAGES = "images in tool results"
REASONING = "reasoning"
"""Readable thoughts come beside the answer."""
KEPT_THOUGHTS = "kept thoughts"
"""What the provider thought goes back to it, sealed, in the next turn."""
TOKEN_IDS = "token ids"
"""Every answer has something that only its provider can read."""
CACHED_TOKENS = "cached tokens"
REASONING_TOKENS = "reasoning tokens"
EFFORT = "effort"
"""How hard to think may be said in a word."""
FORMATS = "formats"
"""An answer may be held to a schema."""

SEAL = "c2VhbGVkIHdpdGggY2FyZQ=="
"""What a provider that seals its thoughts adds to them."""

A_LITTLE = Usage(input_tokens=7, output_tokens=3)

EVERY_FEATURE = frozenset(
    {
        SYSTEM,
        TOOLS,
        IMAGES,
        TOOL_IMAGES,
        REASONING,
        KEPT_THOUGHTS,
        CACHED_TOKENS,
        REASONING_TOKENS,
        EFFORT,
        FORMATS,
    }
)


@dataclass(frozen=True)
class Call:
    """A tool call; the arguments as JSON text without spaces, as a provider that sends objects has them."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """What the provider answers, in our words."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finish_reason: str = "stop"
    """stop, length, tool_calls or content_filter."""
    usage: Usage = A_LITTLE
    """The input is the total, cached tokens included."""


class Wire(Protocol):
    """One client type, as its provider sees it."""

    client_type: str
    features: frozenset[str]
    base: str
    """The path of the endpoint's URL: `/v1`, or nothing."""
    path: str
    """Where a request arrives."""
    check_path: str
    """Where the check before a run arrives."""
    too_long: str
    """The provider's words, with status 400, for a conversation that does not fit."""

    def key_headers(self, key: str) -> Mapping[str, str]:
        """The headers a key arrives in, by their names in lower case."""

    def reply(self, answer: Answer) -> dict[str, Any]:
        """A successful answer's body: id `reply-1`, model `served`; its thoughts, if any, bear the seal."""

    def error(self, status: int, message: str, kind: str) -> dict[str, Any]:
        """An error's body. `kind` is auth, refused, too_long, not_found, rate_limit or overloaded."""

    def system(self, body: Any) -> str | None: ...
    def turns(self, body: Any) -> list[tuple[str, str]]:
        """Who said what, without the system prompt and tool results: ("user", text), ("assistant", text)."""

    def tools(self, body: Any) -> list[str]: ...
    def tool_calls(self, body: Any) -> list[Call]:
        """The calls of earlier turns."""

    def tool_results(self, body: Any) -> dict[str, str]:
        """The text of each result, by the id of its call, in the order sent."""

    def images(self, body: Any) -> list[tuple[str, str]]:
        """(media type, base64) of each image, or ("url", address), wherever it is."""

    def seals(self, body: Any) -> list[str]:
        """The seals of the thoughts that go back."""

    def max_tokens(self, body: Any) -> int | None: ...
    def effort(self, body: Any) -> str | None: ...
    def schema(self, body: Any) -> Any:
        """What an answer must look like; None if it may look like anything."""


WIRES: dict[str, Wire] = {}


def register(wire: Wire) -> None:
    WIRES[wire.client_type] = wire


def every_wire() -> list[Wire]:
    """All wires that a module beside this one registers."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")
    return list(WIRES.values())


def image_of(url: str) -> tuple[str, str]:
    """(media type, base64) of a data URL, ("url", address) of any other."""
    if not url.startswith("data:"):
        return "url", url
    head, _, data = url.removeprefix("data:").partition(",")
    return head.removesuffix(";base64"), data


def joined(parts: str | Sequence[Mapping[str, Any]] | None) -> str:
    """The text of content that is a text or a list of parts with texts."""
    if parts is None or isinstance(parts, str):
        return parts or ""
    return "".join(part["text"] for part in parts if "text" in part)
