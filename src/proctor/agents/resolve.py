"""Resolve a name to an agent: a registered name, an import path, or a model for the tool loop.

Knows nothing of environments, or of where models are called.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from proctor import plugins
from proctor.agents.adapt import Settings, adapt_agent
from proctor.agents.tool_loop import TOOL_LOOP, ToolLoop
from proctor.config.endpoints import EMBEDDED_CLIENTS, NO_PREFERENCE, ModelPreference
from proctor.config.schema import EvalConfig
from proctor.contracts import Agent
from proctor.errors import ConfigError, UnknownNameError, did_you_mean
from proctor.optional_contracts import PrefersModel
from proctor.packages import loading as packages

PLAIN_WORD = re.compile(r"[A-Za-z_]+")
"""Agent names look like this; model names rarely do."""


def create_agent(word: str, **settings: Any) -> Agent:
    """An agent by its name, its import path, or the model to run in the plain tool loop.

    create_agent("claude"), create_agent("gpt-4.1-mini", max_steps=30), create_agent("mine.py:Careful")
    """
    if is_agent(word):
        return make_agent(word, settings)
    check_model(word)
    return adapt_agent(ToolLoop, word, {"model": word, **settings})


def resolve_agent(config: EvalConfig) -> Agent:
    """The agent of a configuration: the plain tool loop, unless it names another."""
    steps = {} if config.max_steps is None else {"max_steps": config.max_steps}
    return make_agent(config.agent or TOOL_LOOP, {**config.agent_args, **steps})


def make_agent(word: str, settings: Settings) -> Agent:
    """The agent of that name, or at that import path."""
    if word == TOOL_LOOP:
        return adapt_agent(ToolLoop, word, settings)
    thing = import_from_path(word) if is_import_path(word) else plugins.load(plugins.AGENTS, word)
    return adapt_agent(thing, word, settings)


# Agent or model


def is_agent(word: str) -> bool:
    """Whether a word names an agent; if not, it is the name of a model."""
    return (
        word == TOOL_LOOP
        or is_import_path(word)
        or plugins.find_entry_point(plugins.AGENTS, word) is not None
    )


def split_agent_from_model(words: Mapping[str, Any], aliases: Collection[str]) -> dict[str, Any]:
    """Settings in which `agent` names an agent: if it named a model, that is moved to `model`."""
    word = words.get("agent")
    if not isinstance(word, str):
        return dict(words)
    model = words.get("model") or words.get("endpoint_id")
    if is_agent(word):
        is_alias = word in aliases and model is None
        return {**words, "model": word} if is_alias else dict(words)
    if model is not None:
        known = did_you_mean(word, plugins.list_names(plugins.AGENTS))
        raise UnknownNameError(f"{word!r} is not an agent, and the model is already {model!r}{known}")
    check_model(word, aliases)
    return {**words, "agent": TOOL_LOOP, "model": word}


def find_preferred_model(word: str) -> str | None:
    """The model that a registered agent works with unless you name another; None if it has none."""
    if is_import_path(word) or not is_agent(word):
        return None
    try:
        agent: object = make_agent(word, {})
    except ConfigError:  # it needs settings, and says so where it is made
        return None
    preferred = agent.prefers if isinstance(agent, PrefersModel) else NO_PREFERENCE
    return preferred.model if isinstance(preferred, ModelPreference) else None


def check_model(word: str, aliases: Collection[str] = ()) -> None:
    """Refuse what is more likely a mistyped agent than a model."""
    if word in EMBEDDED_CLIENTS or word in aliases or not PLAIN_WORD.fullmatch(word):
        return
    near = did_you_mean(word, plugins.list_names(plugins.AGENTS))
    if near.startswith("; did"):
        raise UnknownNameError(f"No agent is called {word!r}{near} If it is a model, pass it with -m.")


# Import paths


def is_import_path(word: str) -> bool:
    """`file.py:Name` or `package.module:Name`. Models may have a colon too, as `llama3:latest` does."""
    module_path, colon, name = word.rpartition(":")
    if word.endswith(".py") or module_path.endswith(".py"):
        return True
    parts = module_path.split(".")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in parts):
        return False
    return len(parts) > 1 or name[0].isupper() or Path(f"{module_path}.py").is_file()


def import_from_path(word: str) -> Any:
    """The object at an import path."""
    if word.endswith(".py"):
        raise ConfigError(f"{word} is a file; name the agent in it, as in {word}:MyAgent.")
    module_path, _, name = word.rpartition(":")
    module = (
        import_agent_file(module_path) if module_path.endswith(".py") else import_agent_module(module_path)
    )
    if not hasattr(module, name):
        known = [each for each, thing in vars(module).items() if callable(thing) and each[0] != "_"]
        raise UnknownNameError(f"{module_path} has no {name!r}{did_you_mean(name, known)}")
    return getattr(module, name)


def import_agent_file(module_path: str) -> ModuleType:
    path = Path(module_path).expanduser().resolve()
    if not path.is_file():
        raise ConfigError(f"There is no agent file {module_path!r}.")
    # Not under its own name: tasks in the same file are imported under that.
    return packages.import_file(path, f"agent_in_{packages.module_name(path.stem)}")


def import_agent_module(module_path: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` does
        sys.path.insert(0, here)
    return packages.import_module(module_path)
