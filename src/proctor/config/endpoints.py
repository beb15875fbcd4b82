"""Which endpoint answers for a model name, and with which key.

Reads environment variables it is given. Knows nothing of HTTP.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from proctor.config.prices import Price
from proctor.errors import ConfigError

DEFAULT_MODEL = "openai/gpt-4.1-mini"
CHAT = "openai_chat_completions"


class Provider(msgspec.Struct, frozen=True):
    """A well-known place to send requests to."""

    name: str
    url: str
    key_var: str
    prefix: str = ""
    """What model names start with elsewhere, and are written without here."""

    def model_name(self, model: str) -> str:
        return model.removeprefix(self.prefix) if self.prefix else model

    def knows(self, model: str) -> bool:
        return not self.prefix or model.startswith(self.prefix) or "/" not in model


PROVIDERS = (
    Provider("prime", "https://api.pinference.ai/api/v1", "PRIME_API_KEY"),
    Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", prefix="openai/"),
    Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
)

EMBEDDED = frozenset({"local", "scripted"})
"""Models that live in this process: they need neither address nor key."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model is asked, and how."""

    model: str
    client_type: str = CHAT
    url: str = ""
    key_var: str | None = None
    headers: Mapping[str, str] = {}
    request_seconds: float = 600.0
    why: str = ""
    """How it came to be chosen, when nobody named it."""
    alias: str = ""
    """What it is called in the registry, if it came from there."""
    price: Price | None = None
    """Instead of the list price."""
    max_concurrent: int | None = None
    """Rollouts it may serve at once, of all evaluations together."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    replicas: tuple[Endpoint, ...] = ()
    """Equal endpoints that share the work; this one says what they have in common."""

    @property
    def address(self) -> str:
        """Where it is, for people to read."""
        return ", ".join(each.url for each in self.replicas) or self.url

    def key(self, environ: Mapping[str, str]) -> str | None:
        return environ.get(self.key_var) if self.key_var else None


def choose_endpoint(
    *,
    model: str | None,
    url: str | None,
    key_var: str | None,
    client_type: str | None,
    headers: Mapping[str, str],
    request_seconds: float,
    environ: Mapping[str, str],
) -> Endpoint:
    """The endpoint that the given words mean; raises when a key is missing."""
    named = client_type or (model if model in EMBEDDED else None)
    if named in EMBEDDED:
        return Endpoint(
            model=model or named, client_type=named, url=url or "", request_seconds=request_seconds
        )
    settings: dict[str, object] = {
        "client_type": client_type or CHAT,
        "headers": headers,
        "request_seconds": request_seconds,
    }
    if url is not None or key_var is not None:
        return _addressed(model or DEFAULT_MODEL, url, key_var, environ, settings)
    wanted = model or DEFAULT_MODEL
    for provider in PROVIDERS:
        if environ.get(provider.key_var) and provider.knows(wanted):
            why = "" if model else f"no model was named and {provider.key_var} is set"
            return msgspec.convert(
                {
                    **settings,
                    "model": provider.model_name(wanted),
                    "url": provider.url,
                    "key_var": provider.key_var,
                    "why": why,
                },
                Endpoint,
            )
    if model is None:
        return Endpoint(
            model="local",
            client_type="local",
            request_seconds=request_seconds,
            why="no model was named and no API key is set, so the small embedded model answers; "
            "name another with -m, and set PRIME_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY",
        )
    raise ConfigError(
        f"No API key for model {model!r}: set PRIME_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, "
        f"name another endpoint with -b and the variable of its key with -k, or use -m local."
    )


def _addressed(
    model: str,
    url: str | None,
    key_var: str | None,
    environ: Mapping[str, str],
    settings: Mapping[str, object],
) -> Endpoint:
    if url is not None and not is_address(url):
        raise ConfigError(f"{url!r} is no address of an API; it should look like https://host/v1.")
    provider = _provider_for(url, key_var)
    url = (url or provider.url).rstrip("/")
    needs_key = not is_on_this_machine(url)
    if key_var is None:
        key_var = provider.key_var if needs_key else None
    if key_var and not environ.get(key_var):
        raise ConfigError(
            f"{key_var} is not set, and {url} needs the API key in it; set it, name another variable with "
            f"-k, or give -k '' for an endpoint without a key."
        )
    name = provider.model_name(model) if url == provider.url else model
    return msgspec.convert({**settings, "model": name, "url": url, "key_var": key_var or None}, Endpoint)


def _provider_for(url: str | None, key_var: str | None) -> Provider:
    host = urlsplit(url).hostname if url else None
    for provider in PROVIDERS:
        if host is not None and host == urlsplit(provider.url).hostname:
            return provider
        if host is None and key_var == provider.key_var:
            return provider
    return PROVIDERS[0]


def is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that cannot be
        return False


def is_on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
