"""A command-line agent program as its settings describe it: what is run, with which variables, and where its
answer is found.

The settings come from a TOML, shipped or anybody's, and from words that win over it. Knows nothing of where
the program runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.config.toml_file import read_text, read_toml
from proctor.contracts import HttpEndpoint
from proctor.errors import ConfigError, FileError, UnknownNameError, did_you_mean

SHIPPED = Path(__file__).parent / "programs"
STDOUT = "stdout"
LAST_MESSAGE = "last_message"
KEPT_OUTPUT = 200_000
KEPT_ERRORS = 4_000
"""Bytes kept of the end of standard output and of standard error."""

PLACEHOLDER = re.compile(
    r"""(?P<quote>["']?)\{(?P<name>prompt|prompt_file|url|key|model|script)\}(?P=quote)"""
)
IN_A_WORD = re.compile(r"\{(prompt|prompt_file|url|key|model|script)\}")

DOOR_VARIABLES = {
    "OPENAI_BASE_URL": "{url}/v1",
    "OPENAI_API_BASE": "{url}/v1",
    "OPENAI_API_KEY": "{key}",
    "OPENAI_MODEL": "{model}",
    "ANTHROPIC_BASE_URL": "{url}",
    "ANTHROPIC_API_KEY": "{key}",
    "ANTHROPIC_MODEL": "{model}",
}
"""What every program is told, whatever it is: where the model is, and that it needs no other."""


class AgentProgram(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a command-line agent is run."""

    command: str | list[str]
    """A text is run by `sh`, a list as it is. {prompt}, {prompt_file}, {url}, {key}, {model} and {script} are
    filled in; without one of the first two, the prompt stands on the standard input."""
    name: str = "command"
    env: dict[str, str] = {}
    """Variables, which may use {url}, {key} and {model}."""
    answer: str = STDOUT
    """`stdout`, `last_message`, or a file, by its path in the folder where the program works."""
    max_steps: int | None = None
    """How often it may ask the model."""
    mounts: tuple[str, ...] = ()
    """Paths of this machine that it must be able to read where it is walled off."""
    success_codes: tuple[int, ...] = (0,)
    script: str | None = None
    """A file whose text is {script}, beside the TOML."""
    model: str | None = None
    provider: str | None = None
    client_type: str | None = None
    """Whom it asks where nobody names another model."""


class ProgramResult(msgspec.Struct, frozen=True):
    """What is left of a program that has exited."""

    code: int
    stdout: str
    stderr: str
    file: str | None = None
    """Contents of the file that was to hold its answer, if it exists."""


def resolve_program(word: str | None, settings: Mapping[str, Any]) -> AgentProgram:
    """The program of a name or a TOML, or of the settings alone; what is None was not set."""
    own = {name: value for name, value in settings.items() if value is not None}
    told = {} if word is None else read_program_file(word)
    if "env" in own and isinstance(own["env"], Mapping):
        own["env"] = {**told.get("env", {}), **own["env"]}
    merged = {**told, **own}
    if "command" not in merged:
        raise ConfigError(
            "Agent 'command' needs a command, or a program: --agent-args '{\"program\": \"mini\"}'"
            f" ({', '.join(list_shipped_programs())}, or your own TOML)."
        )
    try:
        program = msgspec.convert(merged, AgentProgram)
    except msgspec.ValidationError as error:
        raise ConfigError(f"Agent 'command' cannot be made: {error}.") from error
    if not program.command:
        raise ConfigError("Agent 'command' has an empty command.")
    if program.max_steps is not None and program.max_steps < 1:
        raise ConfigError(f"max_steps of {program.name} is {program.max_steps}, and must be at least 1.")
    return program


def list_shipped_programs() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def read_program_file(word: str) -> dict[str, Any]:
    """What the TOML of a program says; all that is wrong with it is told with its line."""
    path = Path(word).expanduser() if word.endswith(".toml") else SHIPPED / f"{word}.toml"
    if not path.is_file():
        if word.endswith(".toml"):
            raise ConfigError(f"There is no program at {word!r}.")
        near = did_you_mean(word, list_shipped_programs())
        raise UnknownNameError(f"No program is called {word!r}{near} Your own is named by its .toml file.")
    file = read_toml(path)
    known = AgentProgram.__struct_fields__
    unknown = [name for name in file.data if name not in known]
    if unknown:
        found = [
            (file.line_of((name,)), f"there is no setting {name!r}{did_you_mean(name, known)}")
            for name in unknown
        ]
        raise FileError(str(path), found)
    try:
        msgspec.convert({"command": "", **file.data}, AgentProgram)
    except msgspec.ValidationError as error:
        named = re.search(r"\$\.(\w+)", str(error))
        line = file.line_of((named[1],)) if named else 1
        raise FileError(str(path), [(line, f"{error}.")]) from error
    told = {"name": path.stem, **file.data}
    if "script" in told:
        told["script"] = read_text(path.parent / told["script"])
    return told


class ProgramInvocation(msgspec.Struct, frozen=True):
    """A program that is ready to be run for one prompt."""

    words: list[str]
    variables: dict[str, str]
    stdin: bytes
    """Empty where the prompt is given otherwise."""


def build_invocation(
    program: AgentProgram, prompt: str, prompt_file: str, door: HttpEndpoint
) -> ProgramInvocation:
    """Put in what is known about one rollout. What is put in is not looked through again."""
    at_door = {"url": door.url, "key": door.key, "model": door.model}
    values = {**at_door, "prompt": prompt, "prompt_file": prompt_file, "script": program.script or ""}
    command = program.command
    if isinstance(command, str):
        words = ["sh", "-c", PLACEHOLDER.sub(lambda found: shlex.quote(values[found["name"]]), command)]
    else:
        words = [fill_placeholders(word, values) for word in command]
    given = {**DOOR_VARIABLES, **program.env}
    variables = {name: fill_placeholders(value, at_door) for name, value in given.items()}
    return ProgramInvocation(words, variables, b"" if takes_prompt(command) else prompt.encode())


def fill_placeholders(word: str, values: Mapping[str, str]) -> str:
    return IN_A_WORD.sub(lambda found: values.get(found[1], found[0]), word)


def takes_prompt(command: str | list[str]) -> bool:
    text = command if isinstance(command, str) else " ".join(command)
    return "{prompt}" in text or "{prompt_file}" in text
