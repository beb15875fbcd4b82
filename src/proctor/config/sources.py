"""Merge settings from several sources into one EvalConfig that records where each value came from.

What was given (flags, or an entry of a suite) wins over the environment package's defaults, and those over
the built-in ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

import msgspec

from proctor.cluster.address import parse_address
from proctor.cluster.options import parse_options
from proctor.config import headers
from proctor.config.providers import NAMES, is_variable_name
from proctor.config.schema import AUTO, DEFAULT_STATE_HEADERS, HERE, UNLIMITED, EvalConfig, meta_of
from proctor.errors import ConfigError, did_you_mean

FLAG = "flag"
REQUEST, SERVER = "the request", "the server"
"""Where settings of a hosted run come from, besides its package."""
MINIMUMS: dict[str, float] = {
    "rollouts_per_example": 1,
    "max_steps": 1,
    "max_concurrent": -1,
    "max_concurrent_generation": -1,
    "max_concurrent_scoring": -1,
    "max_retries": 0,
    "max_tokens": 1,
    "temperature": 0,
}
CONCURRENCY_SETTINGS = ("max_concurrent", "max_concurrent_generation", "max_concurrent_scoring")
"""0 or -1 means no limit."""
STOPPING_SETTINGS = ("until_halfwidth", "until_decided")
POSITIVE_SETTINGS = ("start_timeout", "timeout", "scoring_timeout", "request_timeout")


def resolve(
    given: Mapping[str, Any],
    package_defaults: Mapping[str, Any],
    package: str = "the environment package",
    origins: Mapping[str, str] | None = None,
) -> tuple[EvalConfig, dict[str, str]]:
    """The configuration, and for each setting that is not built in, who set it.

    `origins` says where given settings stand; those it does not know are flags.
    """
    merged = {**package_defaults, **given}
    if isinstance(merged.get("headers_from_state"), Mapping):
        merged["headers_from_state"] = headers.merge_headers(
            DEFAULT_STATE_HEADERS, merged["headers_from_state"]
        )
    known = origins or {}
    sources = {name: known.get(name, FLAG) if name in given else package for name in merged}
    for name in merged:
        if name not in EvalConfig.__struct_fields__:
            where = "" if sources[name] == FLAG else f" (from {sources[name]})"
            hint = did_you_mean(name, EvalConfig.__struct_fields__)
            raise ConfigError(f"There is no setting {name!r}{where}{hint}")
    try:
        config = msgspec.convert(merged, EvalConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{_origin_of_error(str(error), sources)}: {error}") from error
    check_values(config, sources)
    find_stopping_rule(config)
    if config.on == HERE and config.on_args:
        raise ConfigError("--on-args are settings of workers on a cluster, but none is named; pass --on.")
    return lift_limits(config), sources


def find_stopping_rule(config: EvalConfig) -> str | None:
    """The flag that lets the run stop before its last task; refuses what it cannot work with."""
    rules = [long_flag(name) for name in STOPPING_SETTINGS if getattr(config, name) is not None]
    if len(rules) > 1:
        raise ConfigError(f"{' and '.join(rules)} are two rules to stop by; give one of them.")
    limits = rules if config.max_cost is None else [*rules, long_flag("max_cost")]
    if limits and config.no_interleave_scoring:
        raise ConfigError(
            f"-N scores nothing before every rollout has been played, so {limits[0]} could stop nothing; "
            f"give one of them."
        )
    return next(iter(rules), None)


def lift_limits(config: EvalConfig) -> EvalConfig:
    """The configuration where 0 and -1 rollouts at once became no limit."""
    given = {name: getattr(config, name) for name in CONCURRENCY_SETTINGS}
    lifted = {name: UNLIMITED for name, value in given.items() if value is not None and value < 1}
    return msgspec.structs.replace(config, **lifted)


def check_values(config: EvalConfig, origins: Mapping[str, str]) -> None:
    """Refuse values that are well-typed and still mean nothing."""
    settings = {name: getattr(config, name) for name in config.__struct_fields__}
    problems = [
        f"{long_flag(name)} {text}"
        if origins.get(name) in (None, FLAG)
        else f"{name} (from {origins[name]}) {text}"
        for name, text in find_value_problems(settings)
    ]
    if problems:
        raise ConfigError(" ".join(problems))


def find_value_problems(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """For every setting whose value means nothing: its name, and the rest of a sentence about it."""
    for name, value in settings.items():
        text = None if value is None else describe_value_problem(name, value)
        if text is not None:
            yield name, text


def describe_value_problem(name: str, value: Any) -> str | None:
    least = MINIMUMS.get(name)
    if is_infinite(value):
        return f"is {value}, and must be a finite number."
    if least is not None and value < least:
        return f"is {value}, and must be at least {least:g}."
    if name in POSITIVE_SETTINGS and value <= 0:
        return f"is {value:g}, and must be more than 0 seconds."
    if name == "until_halfwidth" and value <= 0:
        return f"is {value:g}; give half the width of the interval that you want, such as 0.02."
    if name == "max_cost" and value <= 0:
        return f"is {value:g}; give an amount of dollars above 0."
    if name == "num_examples" and (value == 0 or value < -1):
        return f"is {value}; give a number of tasks, or -1 for all."
    if name == "min_coverage" and not 0 <= value <= 1:
        return f"is {value:g}, and must lie between 0 and 1."
    if name == "num_workers" and value != AUTO and (isinstance(value, str) or value < 1):
        return f"is {value!r}; give a number of processes, or {AUTO}."
    if name == "sampling_args" and (unusable := [key for key, each in value.items() if is_infinite(each)]):
        return f"must hold finite numbers, but {unusable[0]!r} is {value[unusable[0]]}."
    if name == "on" and value != HERE:
        return describe_error(parse_address, value)
    if name == "on_args":
        return describe_error(parse_options, value)
    if name == "provider" and value not in NAMES:
        return f"is {value!r}, which is not a known provider{did_you_mean(value, NAMES)}"
    if name == "api_key_var" and value and not is_variable_name(value):
        return "must be the name of an environment variable; the key itself does not belong here."
    if name in ("headers", "headers_from_state"):
        wrong = next(headers.find_problems(value), None)
        return f"cannot be sent: {wrong}" if wrong else None
    return None


def is_infinite(value: Any) -> bool:
    """Infinite, or not a number at all."""
    return isinstance(value, float) and not math.isfinite(value)


def describe_error(parse: Callable[[Any], object], value: Any) -> str | None:
    try:
        parse(value)
    except ConfigError as error:
        return f"cannot be used: {error}"
    return None


def long_flag(name: str) -> str:
    """How a setting is called on the command line."""
    hints = get_type_hints(EvalConfig, include_extras=True)
    flags: tuple[str, ...] = (meta_of(hints[name]).extra or {})["flags"]
    return next((flag for flag in flags if flag.startswith("--")), name)


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
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):  # not repeated, because it may hold a key
        header = headers.parse_header(line)
        if header is None:
            raise ConfigError(f"{flag} must look like 'Name: Value'; number {number} does not.")
        found = headers.merge_headers(found, dict([header]))
    return found


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


def _origin_of_error(message: str, origins: Mapping[str, str]) -> str:
    named = next((name for name in origins if f"$.{name}" in message or f"`{name}`" in message), None)
    return "Invalid settings" if named is None else f"Invalid {named} (from {origins[named]})"
