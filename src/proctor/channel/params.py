"""Validate the parameters of requests whose shape is not obvious.

Knows nothing of what is done with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from proctor.channel.frames import INVALID_PARAMS
from proctor.channel.server import ChannelRefusedError

Params = Mapping[str, Any]
T = TypeVar("T")


class RunCommandParams(msgspec.Struct, frozen=True):
    """Parameters of `workspace.run`."""

    command: str | list[str]
    seconds: float
    stdin: bytes = b""
    variables: dict[str, str] = {}
    door: tuple[str, str, str, str] | None = None
    """Its url, key, socket and model."""
    mounts: list[str] = []


class WorkspaceRoute(msgspec.Struct, frozen=True):
    """An address that other implementations let into a workspace."""

    capability: str
    host: str
    port: int


class ConnectionOffer(msgspec.Struct, frozen=True):
    """A server that other implementations offer to an environment."""

    name: str
    capability: str
    url: str
    headers: dict[str, str]


LISTS: dict[str, Any] = {"workspace_routes": list[WorkspaceRoute], "connections": list[ConnectionOffer]}


def check_lists(params: Params) -> None:
    """Validate the lists of a hello. We do not use them, but a client that sends them wrong should know."""
    for name, kind in LISTS.items():
        if name not in params:
            continue
        if not isinstance(params[name], list):
            raise ChannelRefusedError(INVALID_PARAMS, f"hello: '{name}' must be a list")
        convert_params(params[name], kind, f"hello: {name}")


def read_start_params(params: Params) -> tuple[str, dict[str, Any]]:
    """The template's id and its inputs."""
    template, args = params.get("id"), params.get("args")
    args = {} if args is None else args
    if not isinstance(template, str):
        raise ChannelRefusedError(INVALID_PARAMS, "tasks.start: 'id' must be a string")
    if not isinstance(args, dict):
        raise ChannelRefusedError(INVALID_PARAMS, "tasks.start: 'args' must be an object")
    return template, args


def read_answer_param(params: Params) -> str:
    """The answer as text; data is encoded as JSON."""
    answer = params.get("answer", "")
    if isinstance(answer, str):
        return answer
    return "" if answer is None else msgspec.json.encode(answer).decode()


def convert_params(given: Any, kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ChannelRefusedError(INVALID_PARAMS, f"{where}: {error}") from error
