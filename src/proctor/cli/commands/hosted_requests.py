"""Build the requests for hosted runs: one NewRun per evaluation, with only the settings that were given.

What makes sense only on this machine, or only on a server, is refused by name, all of it at once, before
anything is sent. Knows nothing of HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.runs import DEFAULT_TIMEOUT_MINUTES, LONGEST_TIMEOUT_MINUTES, NewRun, Permissions
from proctor.cli.options import flag_of
from proctor.config.hosted import HOSTED_SETTINGS
from proctor.config.schema import EvalConfig, HostedOptions, Presentation
from proctor.config.sources import resolve
from proctor.config.suite import SuiteEntry
from proctor.errors import ConfigError, FileError

REQUEST_FIELDS = ("env_id", "model", "max_cost")
"""Settings that are fields of the request itself."""
LOCAL_SETTINGS = [
    name
    for name in EvalConfig.__struct_fields__
    if name not in HOSTED_SETTINGS and name not in REQUEST_FIELDS
]
LOCAL_PRESENTATION = ("resume", "accept_changed", "reuse", "heartbeat_url", "listener", "upload")
SUITE_DEFAULT = "default of the suite"
PUBLISHED_NAME = re.compile(r"([^/@\s.][^/@\s]*/)?[^/@\s.][^/@\s]*(@[^/@\s]+)?")
"""owner/name, or a name of your own, with or without a version."""


RUN_ID = re.compile(r"run-[0-9a-f]{6,}")


class HostedRunRequest(msgspec.Struct, frozen=True):
    """One requested run, and what decides the exit code."""

    new: NewRun
    min_coverage: float = 1.0


def refuse_hosted_flags(given: Mapping[str, Any]) -> None:
    """Refuse flags for a server where --hosted is missing."""
    names = [flag_of(HostedOptions, name, value) for name, value in given.items() if name != "hosted"]
    if names:
        raise ConfigError(f"{join_with_and(names)} {is_or_are(names)} for runs on a server; add --hosted.")


def refuse_hosted_fields(entries: Sequence[SuiteEntry], file: Path) -> None:
    problems = [
        (entry.line, f"{name!r} is for runs on a server; add --hosted, or remove it.")
        for entry in entries
        for name in entry.hosted
    ]
    if problems:
        raise FileError(str(file), problems)


def refuse_local_flags(settings: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    """Refuse flags for this machine together with --hosted."""
    names = [flag_of(EvalConfig, name) for name in LOCAL_SETTINGS if name in settings]
    names += [flag_of(Presentation, name) for name in LOCAL_PRESENTATION if name in shown]
    if names:
        other = "; resume a hosted run with `proctor eval resume ID`" if "--resume" in names else ""
        raise ConfigError(
            f"{join_with_and(names)} {is_or_are(names)} for runs on this machine; "
            f"leave {it_or_them(names)} out with "
            f"--hosted{other}."
        )


def build_requests(
    entries: Sequence[SuiteEntry], flags: Mapping[str, Any], team: str | None, file: Path | None
) -> list[HostedRunRequest]:
    """The requests, fully checked; a flag takes precedence over the file."""
    made, problems = [], []
    for entry in entries:
        try:
            made.append(build_request(entry, HostedOptions(**{**entry.hosted, **flags}), team))
        except ConfigError as error:
            if file is None:
                raise
            problems.append((entry.line, str(error)))
    if problems:
        raise FileError(str(file), problems)
    return made


def build_request(entry: SuiteEntry, hosted: HostedOptions, team: str | None) -> HostedRunRequest:
    settings = {
        name: value
        for name, value in entry.given.items()
        if not entry.origins.get(name, "").startswith(SUITE_DEFAULT)
    }
    problems = [*local_field_problems(settings, entry), *hosted_problems(hosted)]
    if problems:
        raise ConfigError(" ".join(problems))
    config, _ = resolve(settings, {})
    check_published(config.env_id)
    check_baseline(config.until_decided)
    check_agent(config.agent)
    new = NewRun(
        environment=f"{team}/{config.env_id}" if team and "/" not in config.env_id else config.env_id,
        model=config.model,
        settings={name: value for name, value in settings.items() if name not in REQUEST_FIELDS},
        name=hosted.eval_name or " ".join(part for part in (config.name, config.label) if part),
        team=hosted.team or team,
        permissions=Permissions(
            sandboxes=hosted.allow_sandbox_access,
            instances=hosted.allow_instances_access,
            network=hosted.allow_network_access,
        ),
        timeout_minutes=hosted.timeout_minutes or DEFAULT_TIMEOUT_MINUTES,
        max_cost_usd=config.max_cost,
        custom_secrets=hosted.custom_secrets,
    )
    return HostedRunRequest(new, config.min_coverage)


def local_field_problems(settings: Mapping[str, Any], entry: SuiteEntry) -> Iterator[str]:
    """Settings of a file that are for this machine; flags were checked before."""
    names = [name for name in LOCAL_SETTINGS if name in settings]
    names += ["resume"] if entry.resume is not None else []
    if names:
        yield (
            f"{join_with_and(map(repr, names))} {is_or_are(names)} for runs on this machine; "
            f"remove {it_or_them(names)} to run on a server."
        )


def hosted_problems(hosted: HostedOptions) -> Iterator[str]:
    minutes = hosted.timeout_minutes
    if minutes is not None and not 1 <= minutes <= LONGEST_TIMEOUT_MINUTES:
        yield f"--timeout-minutes is {minutes}; give 1 to {LONGEST_TIMEOUT_MINUTES} minutes."
    if not 0 < hosted.poll_interval < float("inf"):
        yield f"--poll-interval is {hosted.poll_interval:g}; give seconds above 0."


def check_published(env_id: str) -> None:
    if PUBLISHED_NAME.fullmatch(env_id) is None or env_id.endswith(".py"):
        raise ConfigError(
            f"{env_id!r} names no environment on a server; give owner/name or owner/name@version, or the "
            f"name of one of yours, which you publish with `proctor env push`."
        )


def check_baseline(baseline: str | None) -> None:
    if baseline is not None and RUN_ID.fullmatch(baseline) is None:
        raise ConfigError(
            f"--until-decided {baseline} names a run on this machine, and a server cannot see it; upload it "
            f"with `proctor eval push`, and give the id that it gets there, such as run-0f3a9c2b1d."
        )


def check_agent(agent: str | None) -> None:
    if agent is not None and ".py" in agent:
        raise ConfigError(
            f"The agent {agent!r} is a file on this machine, which a server cannot see; put it into the "
            f"environment's package and name it as package.module:Name."
        )


def join_with_and(names: Iterator[str] | Sequence[str] | map[str]) -> str:
    *before, last = list(names)
    return f"{', '.join(before)} and {last}" if before else last


def is_or_are(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"


def it_or_them(names: Sequence[str]) -> str:
    return "them" if len(names) > 1 else "it"
