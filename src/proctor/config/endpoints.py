"""Where models are served: endpoints, the registry that names them, an agent's preference."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from proctor.config.prices import FREE, Price, find_price
from proctor.config.providers import (
    CHAT,
    MAKERS,
    Provider,
    get_provider,
)
from proctor.errors import ConfigError, UnknownNameError, did_you_mean

CUSTOM_CLIENT = "given"
"""The client type of a model that was made in Python."""
EMBEDDED_CLIENTS = frozenset({"local", "scripted"})
"""Models that live in this process: they need neither address nor key."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model is served, and how to call it."""

    model: str
    client_type: str = CHAT
    url: str = ""
    key_var: str | None = None
    headers: Mapping[str, str] = {}
    request_seconds: float = 600.0
    why: str = ""
    """Why it was chosen, when you did not name it."""
    alias: str = ""
    """Its alias in the registry, if it came from there."""
    price: Price | None = None
    """Instead of the list price."""
    max_concurrent: int | None = None
    """Rollouts it may serve at once, of all evaluations together."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_output_tokens: int | None = None
    """The longest answer that a server requests for a user with a spending limit who names none."""
    context_tokens: int | None = None
    """How much prompt and answer may have together, for people to read."""
    replicas: tuple[Endpoint, ...] = ()
    """Equal endpoints that share the work; this one says what they have in common."""

    @property
    def address(self) -> str:
        """Where it is, for people to read."""
        return ", ".join(each.url for each in self.replicas) or self.url

    @property
    def tariff(self) -> Price | None:
        """What it costs: as its row says, else by the list; unknown where replicas differ."""
        if self.price is not None:
            return self.price
        if self.client_type in EMBEDDED_CLIENTS:
            return FREE
        if self.replicas:
            each, *others = (replica.tariff for replica in self.replicas)
            return each if all(other == each for other in others) else None
        return find_price(self.model)

    @property
    def is_metered(self) -> bool:
        """Its owner named a rate, so no number of processes makes it faster."""
        return any(each.requests_per_minute or each.tokens_per_minute for each in (self.replicas or (self,)))

    def key(self, environ: Mapping[str, str]) -> str | None:
        return environ.get(self.key_var) if self.key_var else None

    def has_keys(self, environ: Mapping[str, str]) -> bool:
        """Whether every key that it needs is there."""
        return all(each.key(environ) or not each.key_var for each in self.replicas or (self,))


class Registry(msgspec.Struct, frozen=True):
    """Endpoints by their alias, and the file that names them."""

    endpoints: Mapping[str, Endpoint] = {}
    path: str = ""

    def find(self, alias: str) -> Endpoint:
        if alias in self.endpoints:
            return self.endpoints[alias]
        if not self.path:
            raise ConfigError(
                f"Endpoint {alias!r} is in no registry, because there is none; write "
                f"./configs/endpoints.toml or name another file with endpoints_path."
            )
        raise UnknownNameError(
            f"No endpoint is called {alias!r} in {self.path}{did_you_mean(alias, self.endpoints)}"
        )


NO_REGISTRY = Registry()


class ModelPreference(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's preferred model and endpoint, used unless you name another."""

    model: str | None = None
    provider: str | None = None
    client_type: str | None = None

    def provider_for(self, model: str | None, environ: Mapping[str, str]) -> Provider | None:
        """Where to ask for a model: at the preferred provider, if it has the model."""
        if self.provider is None or model is None or model in EMBEDDED_CLIENTS:
            return None
        provider = get_provider(self.provider, environ)
        is_theirs = provider.owns(model) or not (provider.own or any(maker.owns(model) for maker in MAKERS))
        return provider if is_theirs else None


NO_PREFERENCE = ModelPreference()
