"""Resolve a `--runtime` value to a provider: `local`, `docker://image`, `tcp://host:port`, or a plugin's.

Knows nothing of tasks, or of what a provider starts.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any

from proctor import plugins
from proctor.channel.client import parse_host_and_port
from proctor.errors import ConfigError, UnknownNameError, did_you_mean
from proctor.runtimes.runtime import Provider, Runtime
from proctor.runtimes.serving import TOKEN_VARIABLE

LOCAL = "local"
HUD = "hud"
HUD_ANSWER = (
    "--runtime hud is --runtime hosted here: the environment of each rollout runs on the Proctor server you "
    "are logged in to. Push it there with `proctor env push`."
)
ADDRESSES = ("tcp", "tls", "unix")


def resolve_provider(word: str, settings: Mapping[str, Any], source: str = "") -> Provider:
    """The provider that a word names; `source` is the path of the environment's code on this machine."""
    scheme, _, address = word.partition("://")
    if scheme in ADDRESSES:
        return runtime_at(word, settings)
    if scheme == HUD:
        raise ConfigError(HUD_ANSWER)
    if plugins.find_entry_point(plugins.RUNTIMES, scheme) is None:
        known = [*plugins.list_names(plugins.RUNTIMES), *ADDRESSES]
        raise UnknownNameError(f"No runtime is called {scheme!r}{did_you_mean(scheme, known)}")
    kind = plugins.load(plugins.RUNTIMES, scheme)
    check_settings(kind, word, settings)
    if scheme == LOCAL:
        local: Provider = kind(address or source, **settings)
        return local
    if not address and (wanted := required_parameter(kind)) is not None:
        raise ConfigError(f"--runtime {scheme} needs an address: {scheme}://{wanted.upper()}.")
    made: Provider = kind(address, **settings) if address else kind(**settings)
    return made


def required_parameter(kind: Any) -> str | None:
    """A provider's required positional parameter, if it has one."""
    first = next(iter(inspect.signature(kind).parameters.values()), None)
    return first.name if first is not None and first.default is first.empty else None


def runtime_at(url: str, settings: Mapping[str, Any]) -> Runtime:
    if settings:
        raise ConfigError(f"{url} is served already and takes no settings; leave out --runtime-args.")
    if not url.startswith("unix:"):
        parse_host_and_port(url)
    return Runtime(url, token=os.environ.get(TOKEN_VARIABLE))


def check_settings(kind: Any, word: str, settings: Mapping[str, Any]) -> None:
    known = list(inspect.signature(kind).parameters)[1:]
    for name in settings:
        if name not in known:
            raise ConfigError(f"--runtime {word} has no setting {name!r}{did_you_mean(name, known)}")
