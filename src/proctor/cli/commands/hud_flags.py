"""Flags that people know from `hud eval`: understood, or answered with what to type instead.

They are hidden in --help; docs/command-line.md lists them. Knows nothing of what is evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from proctor.config.providers import PROCTOR
from proctor.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

FULL_STEPS = 100
"""Steps that --full allows an agent for one answer."""
OPTIONS = (
    click.option("--full", is_flag=True, hidden=True),
    click.option("--gateway", "-g", is_flag=True, hidden=True),
    click.option("--remote", is_flag=True, hidden=True),
    click.option("--yes", "-y", is_flag=True, hidden=True),
    click.option("--auto-respond", is_flag=True, hidden=True),
    click.option("--config", multiple=True, hidden=True),
)
NO_AUTO_RESPOND = (
    "--auto-respond has no counterpart: an agent works until the model answers without a tool call, and a "
    "task that wants to ask again yields another prompt. Leave it out; --max-steps bounds the work."
)


def hud_options(function: F) -> F:
    for option in OPTIONS:
        function = option(function)
    return function


def translate_hud_flags(values: dict[str, Any]) -> dict[str, Any]:
    """The same options in Proctor's own words; raises for those that have none."""
    values = dict(values)
    given = {name: values.pop(name) for name in ("full", "gateway", "remote", "auto_respond", "config")}
    values.pop("yes")  # there is no prompt
    if given["auto_respond"]:
        raise ConfigError(NO_AUTO_RESPOND)
    if given["config"]:
        raise ConfigError(suggest_agent_args(given["config"]))
    if given["full"]:
        values["all_tasks"] = True
        values["max_steps"] = values.get("max_steps") or FULL_STEPS
    if given["gateway"]:
        values["provider"] = values.get("provider") or PROCTOR
    if given["remote"]:
        values["hosted"] = True
    return values


def suggest_agent_args(words: tuple[str, ...]) -> str:
    """--agent-args for what was given as key=value, or agent.key=value."""
    pairs = (word.partition("=") for word in words)
    arguments = {key.rpartition(".")[2]: read_value(value) for key, _, value in pairs}
    return (
        f"Settings of an agent are passed as JSON: --agent-args '{json.dumps(arguments)}'. "
        f"Settings of the evaluation have flags of their own, and go into a suite's TOML file."
    )


def read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
