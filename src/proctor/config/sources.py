"""Words from several sources → one EvalConfig, and where each value came from.

Flags win over the environment package's defaults, and those over the built-in ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import msgspec

from proctor.config.schema import AUTO, DEFAULT_STATE_HEADERS, EvalConfig, meta_of
from proctor.errors import ConfigError

AT_LEAST: dict[str, float] = {
    "rollouts_per_example": 1,
    "max_concurrent": 1,
    "max_concurrent_generation": 1,
    "max_concurrent_scoring": 1,
    "max_retries": 0,
    "max_tokens": 1,
    "temperature": 0,
}
MORE_THAN_NOTHING = ("timeout", "scoring_timeout", "request_timeout")


def resolve(
    given: Mapping[str, Any], package_defaults: Mapping[str, Any], package: str = "the environment package"
) -> tuple[EvalConfig, dict[str, str]]:
    """The configuration, and for each setting that is not built in, who set it."""
    merged = {**package_defaults, **given}
    if "headers_from_state" in merged:
        merged["headers_from_state"] = {**DEFAULT_STATE_HEADERS, **merged["headers_from_state"]}
    origins = {name: "flag" if name in given else package for name in merged}
    try:
        config = msgspec.convert(merged, EvalConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{_culprit(str(error), origins)}: {error}") from error
    check(config)
    return config, origins


def check(config: EvalConfig) -> None:
    """Refuse values that are well-typed and still mean nothing."""
    for name, least in AT_LEAST.items():
        value = getattr(config, name)
        if value is not None and value < least:
            raise ConfigError(f"{flag_of(name)} is {value}, and must be at least {least:g}.")
    for name in MORE_THAN_NOTHING:
        if getattr(config, name) <= 0:
            raise ConfigError(
                f"{flag_of(name)} is {getattr(config, name):g}, and must be more than 0 seconds."
            )
    if config.num_examples == 0 or config.num_examples < -1:
        raise ConfigError(f"-n is {config.num_examples}; give a number of tasks, or -1 for all.")
    if not 0 <= config.min_coverage <= 1:
        raise ConfigError(f"--min-coverage is {config.min_coverage:g}, and must lie between 0 and 1.")


def flag_of(name: str) -> str:
    """How a setting is called on the command line."""
    hints = get_type_hints(EvalConfig, include_extras=True)
    flags: tuple[str, ...] = (meta_of(hints[name]).extra or {})["flags"]
    return flags[-1] if flags else name


def parse_json_object(text: str, flag: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{flag} is not valid JSON ({error}): {text!r}. Example: {flag} '{{\"key\": 1}}'"
        ) from error
    if not isinstance(value, dict):
        raise ConfigError(f"{flag} must be a JSON object such as '{{\"key\": 1}}', not {text!r}.")
    return value


def parse_headers(lines: tuple[str, ...], flag: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not (colon and name.strip() and value.strip()):
            raise ConfigError(f"{flag} must look like 'Name: Value', not {line!r}.")
        headers[name.strip()] = value.strip()
    return headers


def parse_names(text: str, flag: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ConfigError(f"{flag} names nothing; give names separated by commas.")
    return names


def parse_workers(text: str, flag: str) -> int | str:
    if text == AUTO:
        return text
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"{flag} must be a number of processes, or auto, not {text!r}.")
    return int(text)


PARSERS: dict[str, Callable[[Any, str], Any]] = {
    "json": parse_json_object,
    "header": parse_headers,
    "names": parse_names,
    "workers": parse_workers,
}


def _culprit(message: str, origins: Mapping[str, str]) -> str:
    named = next((name for name in origins if f"$.{name}" in message or f"`{name}`" in message), None)
    return "Invalid settings" if named is None else f"Invalid {named} (from {origins[named]})"
