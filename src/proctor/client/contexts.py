"""Which server you are logged in to: named contexts in a file that only its owner can read.

    {"current": "lab", "contexts": {"lab": {"url": "https://…", "token": "proctor_…", "team": null}}}

PROCTOR_CONTEXT selects another one for a while; PROCTOR_API_URL and PROCTOR_API_KEY override all of them.
Knows nothing of HTTP.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from proctor.config.user_settings import user_config_folder
from proctor.errors import ConfigError, did_you_mean

URL_VARIABLE = "PROCTOR_API_URL"
KEY_VARIABLE = "PROCTOR_API_KEY"
CONTEXT_VARIABLE = "PROCTOR_CONTEXT"
FILE = "contexts.json"
_adopted: dict[str, str] = {}
"""The variables that adopt_context set, which are not the user's own."""
NOT_LOGGED_IN = (
    f"This needs a Proctor server; log in with `proctor login URL`, or set {URL_VARIABLE} and {KEY_VARIABLE}."
)


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """One server, and your login there."""

    url: str
    token: str = ""
    team: str | None = None
    """The team for runs and pushes, unless another is named."""
    is_own_token: bool = False
    """The token was created by this login, so that logging out revokes it."""


class Contexts(msgspec.Struct, frozen=True, kw_only=True):
    """All contexts, and the one in use."""

    current: str | None = None
    contexts: dict[str, Context] = {}

    def find(self, name: str) -> Context:
        if name not in self.contexts:
            raise ConfigError(f"There is no context {name!r}{did_you_mean(name, self.contexts)}")
        return self.contexts[name]

    def with_context(self, name: str, context: Context) -> Contexts:
        return replace(self, current=name, contexts={**self.contexts, name: context})

    def using(self, name: str) -> Contexts:
        self.find(name)
        return replace(self, current=name)

    def without(self, name: str) -> Contexts:
        self.find(name)
        left = {known: context for known, context in self.contexts.items() if known != name}
        return replace(self, current=None if self.current == name else self.current, contexts=left)


def contexts_file(environ: Mapping[str, str]) -> Path:
    return user_config_folder(environ) / FILE


def read_contexts(environ: Mapping[str, str]) -> Contexts:
    file = contexts_file(environ)
    try:
        return msgspec.json.decode(file.read_bytes(), type=Contexts)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {error.strerror}.") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is damaged ({error}); delete it and log in again.") from error


def write_contexts(environ: Mapping[str, str], contexts: Contexts) -> Path:
    """Write the file completely or not at all, and never readable by others."""
    file = contexts_file(environ)
    new = file.with_suffix(f".new-{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            os.fchmod(out.fileno(), 0o600)  # a leftover may be readable by others
            out.write(msgspec.json.format(msgspec.json.encode(contexts)))
        new.replace(file)
    except OSError as error:
        raise ConfigError(f"Cannot write {file}: {error.strerror}.") from error
    return file


def current_context(environ: Mapping[str, str]) -> Context | None:
    """The server in use; None if you are not logged in."""
    contexts = read_contexts(environ)
    name = environ.get(CONTEXT_VARIABLE) or contexts.current
    chosen = contexts.find(name) if name else None
    url, token = environ.get(URL_VARIABLE), environ.get(KEY_VARIABLE)
    if url and chosen is not None and (chosen.url, chosen.token) == (url, token):
        return chosen  # the variables say the same, as they do after adopt_context()
    if url:
        return Context(url=url.rstrip("/"), token=token or "", team=None)
    if chosen is not None and token:
        return replace(chosen, token=token)
    return chosen


def adopt_context(environ: MutableMapping[str, str]) -> None:
    """Make the server in use available as an endpoint, through which the models of all providers can be
    called. May be called again: a login that has changed since takes effect."""
    for name, value in _adopted.items():
        if environ.get(name) == value:
            del environ[name]
    _adopted.clear()
    before = dict(environ)
    context = current_context(environ)
    if context is not None and context.token:
        environ[URL_VARIABLE], environ[KEY_VARIABLE] = context.url, context.token
        variables = (URL_VARIABLE, KEY_VARIABLE)
        _adopted.update({name: environ[name] for name in variables if name not in before})


def need_context(environ: Mapping[str, str]) -> Context:
    context = current_context(environ)
    if context is None:
        raise ConfigError(NOT_LOGGED_IN)
    return context
