"""What a check reports of how a version is played: its arguments, defaults, an example, rewards and tools.

What is too long for a server to keep is cut here, where the environment's own code runs anyway. Knows nothing
of servers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.api.bounds import LARGEST_SETTINGS, LONGEST_NAME
from proctor.api.hub import (
    LARGEST_DETAILS,
    MOST_PARTS,
    ArgumentInfo,
    ExampleMessage,
    ExamplePlay,
    RewardPart,
    ToolPart,
    VersionDetails,
)
from proctor.checkup.info import (
    EnvironmentDetails,
    ExampleTask,
    LoadedDetails,
    describe_loaded,
    describe_without_loading,
)
from proctor.contracts import EnvironmentProtocol
from proctor.packages.loading import EnvironmentLocation
from proctor.task import stable_repr
from proctor.trace import text_of

LONGEST_TEXT = 2_000
"""Characters of a type, a default, an answer or a tool's description."""
LONGEST_EXAMPLE = 16_000
"""Characters of the example's prompt, all messages together."""


def describe_source(found: EnvironmentLocation) -> VersionDetails:
    """What is known without loading it."""
    known = describe_without_loading(found)
    return fit(
        VersionDetails(
            arguments=[
                ArgumentInfo(
                    name=cut(each.name, LONGEST_NAME),
                    type=each.type and cut(each.type),
                    default=each.default and cut(each.default),
                )
                for each in known.arguments[:MOST_PARTS]
            ],
            takes_any=known.takes_any,
            defaults=fit_defaults(known),
        )
    )


def fit_defaults(known: EnvironmentDetails) -> Mapping[str, Any]:
    """Nothing rather than a part: half of the defaults would be taken for all."""
    plain = msgspec.to_builtins(dict(known.defaults), enc_hook=stable_repr, str_keys=True)
    return plain if len(msgspec.json.encode(plain)) <= LARGEST_SETTINGS else {}


def describe_loading(source: VersionDetails, environment: EnvironmentProtocol) -> VersionDetails:
    """The same, with what only the living environment knows."""
    loaded: LoadedDetails = describe_loaded(environment)
    whole = replace(
        source,
        kind=cut(loaded.kind, LONGEST_NAME),
        example=None if loaded.example is None else describe_example(loaded.example),
        rewards=[
            RewardPart(
                name=cut(each.name, LONGEST_NAME),
                weight=each.weight if math.isfinite(each.weight) else None,
                is_grouped=each.grouped,
            )
            for each in loaded.rewards[:MOST_PARTS]
        ],
        tools=[
            ToolPart(name=cut(each.name, LONGEST_NAME), description=cut(each.description))
            for each in loaded.tools[:MOST_PARTS]
        ],
        max_turns=loaded.max_turns if isinstance(loaded.max_turns, int) else None,
        pass_threshold=loaded.pass_threshold,
    )
    return fit(whole)


def fit(details: VersionDetails) -> VersionDetails:
    """Without its largest parts, if a server would refuse it with them."""
    sizes = (details, replace(details, example=None), replace(details, example=None, tools=[], rewards=[]))
    fitting = (each for each in sizes if len(msgspec.json.encode(each)) <= LARGEST_DETAILS)
    return next(fitting, VersionDetails())


def describe_example(task: ExampleTask) -> ExamplePlay:
    answer = task.answer if isinstance(task.answer, str) else stable_repr(task.answer)
    length = sum(len(text_of(message)) for message in task.prompt)
    return ExamplePlay(
        prompt=list(take_messages(task)),
        answer=cut(answer),
        is_cut=length > LONGEST_EXAMPLE or len(task.prompt) > MOST_PARTS or len(answer) > LONGEST_TEXT,
    )


def take_messages(task: ExampleTask) -> Iterator[ExampleMessage]:
    left = LONGEST_EXAMPLE
    for message in task.prompt[:MOST_PARTS]:
        if left <= 0:
            return
        text = cut(text_of(message), left)
        left -= len(text)
        yield ExampleMessage(role=cut(str(message.get("role", "")), LONGEST_NAME), text=text)


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """As much of a text as is kept, without halves of surrogate pairs, which no JSON can hold."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return short.encode(errors="replace").decode()
