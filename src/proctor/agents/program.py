"""The settings of a command-line agent program: its command, its variables, and where its answer is found.

They come from a TOML file, shipped or your own, and from arguments that override it. Knows nothing of where
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

ENDPOINT_VARIABLES = {
    "OPENAI_BASE_URL": "{url}/v1",
    "OPENAI_API_BASE": "{url}/v1",
    "OPENAI_API_KEY": "{key}",
    "OPENAI_MODEL": "{model}",
    "ANTHROPIC_BASE_URL": "{url}",
    "ANTHROPIC_API_KEY": "{key}",
    "ANTHROPIC_MODEL": "{model}",
}
"""Set for every program, so that common clients find the model."""


class AgentProgram(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a command-line agent is run."""

    command: str | list[str]
    """A text is run by `sh`, a list as it is. {prompt}, {prompt_file}, {url}, {key}, {model} and {script} are
    filled in; without one of the first two, the prompt is on standard input."""
    name: str = "command"
    env: dict[str, str] = {}
    """Variables, which may use {url}, {key} and {model}."""
    answer: str = STDOUT
    """`stdout`, `last_message`, or a file, by its path in the folder where the program works."""
    max_steps: int | None = None
    """How often it may call the model."""
    path: tuple[str, ...] = ()
    """Folders to search for programs before those in PATH."""
    mounts: tuple[str, ...] = ()
    """Paths of this machine that it must be able to read inside its sandbox."""
    success_codes: tuple[int, ...] = (0,)
    script: str | None = None
    """A file whose text is {script}, beside the TOML."""
    model: str | None = None
    provider: str | None = None
    client_type: str | None = None
    """The default model."""


class ProgramResult(msgspec.Struct, frozen=True):
    """What is left of a program that has exited."""

    code: int
    stdout: str
    stderr: str
    file: str | None = None
    """Contents of the file that was to hold its answer, if it exists."""


def resolve_program(word: str | None, settings: Mapping[str, Any]) -> AgentProgram:
    """The program by name or TOML file, or from the settings alone; None means not set."""
    own = {name: value for name, value in settings.items() if value is not None}
    from_file = {} if word is None else read_program_file(word)
    if "env" in own and isinstance(own["env"], Mapping):
        own["env"] = {**from_file.get("env", {}), **own["env"]}
    merged = {**from_file, **own}
    if "command" not in merged:
        raise ConfigError(
            "Agent 'command' needs a command, or a program: --agent-args '{\"program\": \"mini\"}'"
            f" ({', '.join(list_shipped_programs())}, or your own TOML)."
        )
    try:
        program = msgspec.convert(merged, AgentProgram)
    except msgspec.ValidationError as error:
        raise ConfigError(f"Agent 'command' cannot be created: {error}.") from error
    if not program.command:
        raise ConfigError("Agent 'command' has an empty command.")
    if program.max_steps is not None and program.max_steps < 1:
        raise ConfigError(f"max_steps of {program.name} is {program.max_steps}; it must be at least 1.")
    return program


def list_shipped_programs() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def read_program_file(word: str) -> dict[str, Any]:
    """The settings in a program's TOML; every problem is reported with its line."""
    path = Path(word).expanduser() if word.endswith(".toml") else SHIPPED / f"{word}.toml"
    if not path.is_file():
        if word.endswith(".toml"):
            raise ConfigError(f"There is no program at {word!r}.")
        near = did_you_mean(word, list_shipped_programs())
        raise UnknownNameError(f"No program is called {word!r}{near} Name your own by its .toml file.")
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
    settings = {"name": path.stem, **file.data}
    if "script" in settings:
        settings["script"] = read_text(path.parent / settings["script"])
    return settings


class ProgramInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """A program, ready to run for one prompt."""

    words: list[str]
    variables: dict[str, str]
    prompt: str
    stdin: bytes
    """Empty if the prompt is passed otherwise."""
    answer_file: str | None
    """The file that will hold its answer, if it writes one."""


def build_invocation(
    program: AgentProgram, prompt: str, prompt_file: str, endpoint: HttpEndpoint
) -> ProgramInvocation:
    """Fill in the placeholders for one rollout, in a single pass."""
    at_endpoint = {"url": endpoint.url, "key": endpoint.key, "model": endpoint.model}
    values = {**at_endpoint, "prompt": prompt, "prompt_file": prompt_file, "script": program.script or ""}
    command = program.command
    if isinstance(command, str):
        words = ["sh", "-c", PLACEHOLDER.sub(lambda found: shlex.quote(values[found["name"]]), command)]
    else:
        words = [fill_placeholders(word, values) for word in command]
    given = {**ENDPOINT_VARIABLES, **program.env}
    variables = {name: fill_placeholders(value, at_endpoint) for name, value in given.items()}
    return ProgramInvocation(
        words=words,
        variables=variables,
        prompt=prompt,
        stdin=b"" if takes_prompt(command) else prompt.encode(),
        answer_file=None if program.answer in (STDOUT, LAST_MESSAGE) else program.answer,
    )


def fill_placeholders(word: str, values: Mapping[str, str]) -> str:
    return IN_A_WORD.sub(lambda found: values.get(found[1], found[0]), word)


def takes_prompt(command: str | list[str]) -> bool:
    text = command if isinstance(command, str) else " ".join(command)
    return "{prompt}" in text or "{prompt_file}" in text
