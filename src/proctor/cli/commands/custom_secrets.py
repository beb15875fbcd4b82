"""The secrets of one hosted run, as `--custom-secrets` names them.

    NAME,OTHER          taken from your own environment variables
    @secrets.env        lines of NAME=VALUE
    @secrets.json       a JSON object
    '{"NAME": "…"}'     the same, typed; others can see it while the command runs

No message repeats a value. Knows nothing of runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proctor.api.secrets import problem_with_name, problem_with_value
from proctor.cli.hidden import read_secret_file
from proctor.cli.views.escape import echo
from proctor.errors import ConfigError, did_you_mean

FLAG = "--custom-secrets"
VISIBLE_VALUES_WARNING = (
    f"The values of {FLAG} are on the command line, where other processes can see them and the shell "
    f"remembers them; name a file with @FILE, or variables with NAME,NAME."
)


def read_custom_secrets(word: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets that the word means; each has a name that a run may be given."""
    word = word.strip()
    if word.startswith("{"):
        echo(f"Warning: {VISIBLE_VALUES_WARNING}", err=True)
        values = parse_secrets_json(word, FLAG)
    elif word.startswith("@"):
        values = parse_secrets_file(word[1:])
    else:
        values = secrets_from_variables(word, environ)
    if not values:
        raise ConfigError(f"{FLAG} names no secret; leave it out, or write NAME,NAME or @FILE.")
    for name, value in values.items():
        if problem := problem_with_name(name) or problem_with_value(name, value):
            raise ConfigError(f"{FLAG}: {problem}")
    return values


def parse_secrets_file(file: str) -> dict[str, str]:
    text = read_secret_file(file)
    is_json = file.endswith(".json") or text.lstrip().startswith("{")
    return parse_secrets_json(text, file) if is_json else parse_secrets_lines(text, file)


def parse_secrets_json(text: str, where: str) -> dict[str, str]:
    try:
        values: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):  # its message might repeat a value
        raise ConfigError(f'{where} is not valid JSON; write {{"NAME": "value"}}.') from None
    if not isinstance(values, dict):
        raise ConfigError(f'{where} is not a JSON object; write {{"NAME": "value"}}.')
    for name, value in values.items():
        if not isinstance(value, str):
            raise ConfigError(f"The value of {name} in {where} is not a string; put it in quotation marks.")
    return values


def parse_secrets_lines(text: str, where: str) -> dict[str, str]:
    """NAME=VALUE lines, as shells and other tools write them; the last of one name wins."""
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip().removeprefix("export ").lstrip()
        if not line or line.startswith("#"):
            continue
        name, sign, value = line.partition("=")
        if not sign:
            raise ConfigError(f"Line {number} of {where} is not NAME=VALUE.")
        values[name.strip()] = strip_quotes(value.strip())
    return values


def strip_quotes(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value


def secrets_from_variables(word: str, environ: Mapping[str, str]) -> dict[str, str]:
    names = [name.strip() for name in word.split(",") if name.strip()]
    for name in names:
        if name not in environ:
            if problem := problem_with_name(name):
                raise ConfigError(f"{FLAG}: {problem}")
            near = did_you_mean(name, environ)
            hint = near if near.startswith("; did") else "; set it, or name a file with @FILE."
            raise ConfigError(f"{FLAG} names {name}, which is not set{hint}")
    return {name: environ[name] for name in names}
