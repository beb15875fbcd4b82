"""Which models this server offers, at which endpoints, and at what price.

These are the models of the operator's registry under their aliases, every model of a well-known provider
whose key is in the server's environment, and, where it is installed, `local`, a small model that runs in this
process: it is the default only if there is no other. Knows nothing of HTTP.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from proctor import plugins
from proctor.agents.resolve import find_preferred_model, is_agent, is_import_path
from proctor.agents.tool_loop import TOOL_LOOP
from proctor.api.ledger import ModelInfo
from proctor.api.runs import NewRun
from proctor.client.contexts import KEY_VARIABLE, URL_VARIABLE
from proctor.config.api_addresses import host_of
from proctor.config.endpoint_choice import choose_endpoint
from proctor.config.endpoints import EMBEDDED_CLIENTS, NO_REGISTRY, Endpoint, Registry
from proctor.config.prices import FREE, PRICES, Price
from proctor.config.providers import ANTHROPIC, DEFAULT_MODEL, GEMINI, OPENAI, OPENROUTER, PRIME, PROVIDERS
from proctor.config.registry import open_registry
from proctor.errors import ConfigError, did_you_mean
from proctor.models.local import CONTEXT_TOKENS
from proctor.server.problems import ApiError, InvalidError, NotFoundError

REQUEST_SECONDS = 600.0
LONGEST_NAME = 300
MOST_ROUTES = 1024
"""How many names are cached: clients can make up any number of names for a provider's models."""
LOCAL = "local"
LISTED_MODELS = {
    PRIME: (DEFAULT_MODEL,),
    OPENAI: ("gpt-", "o3", "o4"),
    OPENROUTER: (DEFAULT_MODEL,),
    ANTHROPIC: ("claude-",),
    GEMINI: ("gemini-",),
}
"""Prefixes of the models that are listed for a provider; its other models can be used as well."""


class NoModelError(ApiError):
    """The server has no models."""

    status, code = 404, "no_model"

    def __init__(self) -> None:
        super().__init__(
            "This server has no models; its operator must set OPENAI_API_KEY or another provider's key "
            "in its environment, or start it with --endpoints FILE."
        )


class ModelRoute(msgspec.Struct, frozen=True, kw_only=True):
    """Where to send requests for a model."""

    name: str
    """The name that clients use."""
    endpoint: Endpoint
    provider: str
    price: Price | None
    """None if it is not known."""


class Models:
    """The models of one server."""

    def __init__(self, endpoints: Path | None, environ: Mapping[str, str], *, local: bool = False) -> None:
        self.environ = environ
        registry = load_registry(endpoints)
        self.registry = add_local_model(registry) if local else registry
        self.prices: Mapping[str, Price] = {}
        """The prices that an admin set, by model."""
        self._routes: dict[str | None, ModelRoute] = {}

    def reprice(self, prices: Mapping[str, Price]) -> None:
        if prices != self.prices:
            self.prices = prices
            self._routes.clear()

    def resolve(self, name: str | None) -> ModelRoute:
        """The model of this name, or the default model for None; raises ApiError if there is none."""
        route = self._routes.get(name)
        if route is None:
            endpoint = self._default() if name is None else self._find_endpoint(name)
            if len(self._routes) >= MOST_ROUTES:
                self._routes.clear()
            route = self._routes[name] = self.route_to(endpoint, name)
        return route

    def resolve_for_agent(self, new: NewRun) -> tuple[NewRun, ModelRoute]:
        """The model of a run by the rule of docs/models.md: the one named, the agent's, the default. An
        agent that is not one but a model of this server becomes the model."""
        agent = new.settings.get("agent")
        if new.model is not None or not isinstance(agent, str):
            return new, self.resolve(new.model)
        if not (is_agent(agent) or is_import_path(agent)) and self.offers(agent):
            new = replace(new, model=agent, settings={**new.settings, "agent": TOOL_LOOP})
            return new, self.resolve(agent)
        return new, self.resolve(find_preferred_model(agent))

    def offers(self, name: str) -> bool:
        try:
            return bool(self.resolve(name))
        except ApiError:
            return False

    def route_to(self, endpoint: Endpoint, name: str | None = None) -> ModelRoute:
        name = name or endpoint.alias or endpoint.model
        return ModelRoute(
            name=name, endpoint=endpoint, provider=provider_of(endpoint), price=self._price(name, endpoint)
        )

    def list_models(self) -> list[ModelInfo]:
        names = list(dict.fromkeys(self._names()))
        default = self.resolve(None).name if names else None
        return [replace(describe_model(self.resolve(name)), is_default=name == default) for name in names]

    def _names(self) -> Iterator[str]:
        for alias, endpoint in self.registry.endpoints.items():
            if endpoint.has_keys(self.environ):
                yield alias
        for provider, beginnings in LISTED_MODELS.items():
            if provider.has_key(self.environ):
                yield from (each for each in (*PRICES, DEFAULT_MODEL) if each.startswith(beginnings))

    def _find_endpoint(self, name: str) -> Endpoint:
        if len(name) > LONGEST_NAME:
            raise InvalidError(f"A model's name may have at most {LONGEST_NAME} characters.", field="model")
        try:
            endpoint = self._choose(name)
        except ConfigError:
            endpoint = None
        if endpoint is None or (endpoint.client_type in EMBEDDED_CLIENTS and not endpoint.alias):
            known = list(self._names())
            if not known:
                raise NoModelError
            near = did_you_mean(name, known)
            raise NotFoundError(
                f"This server has no model {name!r}{near} `proctor wallet prices` shows all.",
                code="model_not_found",
            )
        return endpoint

    def _default(self) -> Endpoint:
        chosen = self._choose(None)
        if chosen.client_type not in EMBEDDED_CLIENTS or chosen.alias:
            return chosen
        for alias, endpoint in self.registry.endpoints.items():
            if endpoint.has_keys(self.environ):
                return self._choose(alias)
        raise NoModelError

    def _choose(self, name: str | None) -> Endpoint:
        return choose_endpoint(
            model=name,
            url=None,
            key_var=None,
            client_type=None,
            headers={},
            request_seconds=REQUEST_SECONDS,
            environ=drop_login(self.environ),
            registry=self.registry,
        )

    def registry_price(self, model: str) -> Price | None:
        """The registry's own price of a model, which no other price changes."""
        rows = self.registry.endpoints.items()
        return next((row.price for alias, row in rows if row.price and model in (alias, row.model)), None)

    def _price(self, name: str, endpoint: Endpoint) -> Price | None:
        """The registry's price, else the one that an admin set, else the list price."""
        set_by_admin = self.prices.get(name) or self.prices.get(endpoint.model)
        listed = FREE if endpoint.client_type in EMBEDDED_CLIENTS else endpoint.tariff
        return endpoint.price or set_by_admin or listed


def drop_login(environ: Mapping[str, str]) -> dict[str, str]:
    """The server's variables without its operator's own login, by which it might ask itself."""
    return {name: value for name, value in environ.items() if name not in (URL_VARIABLE, KEY_VARIABLE)}


def load_registry(path: Path | None) -> Registry:
    if path is None:
        return NO_REGISTRY
    return open_registry(str(path), plugins.list_names(plugins.MODELS))


def add_local_model(registry: Registry) -> Registry:
    """The registry with the embedded model as its last row, unless it has a model of that name."""
    local = Endpoint(model=LOCAL, client_type=LOCAL, alias=LOCAL)
    return replace(registry, endpoints={**registry.endpoints, LOCAL: registry.endpoints.get(LOCAL, local)})


def has_local() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None


def provider_of(endpoint: Endpoint) -> str:
    """The provider of an endpoint, judging by its address."""
    host = host_of(endpoint.replicas[0].url if endpoint.replicas else endpoint.url)
    known = next((each.name for each in PROVIDERS.values() if each.needs_key and each.host == host), None)
    return known or host or endpoint.client_type


def describe_model(route: ModelRoute) -> ModelInfo:
    is_local = route.endpoint.client_type == LOCAL
    context = CONTEXT_TOKENS if is_local else route.endpoint.context_tokens
    info = ModelInfo(id=route.name, provider=route.provider, context_tokens=context)
    if route.price is None:
        return info
    return replace(
        info,
        input_usd_per_million=route.price.input,
        output_usd_per_million=route.price.output,
        cached_usd_per_million=route.price.cached,
    )
