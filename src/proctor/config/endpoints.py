"""Which endpoint answers for a model name, and with which key.

Reads environment variables and a registry that it is given. Knows nothing of HTTP or of files.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from proctor.config import headers as http_headers
from proctor.config.prices import FREE, Price, find_price
from proctor.config.providers import (
    ANTHROPIC,
    CHAT,
    DEFAULT_MODEL,
    MAKERS,
    PROCTOR,
    Provider,
    find_provider_by_host,
    find_provider_by_key,
    find_provider_by_url,
    get_provider,
    rank_providers,
)
from proctor.errors import ConfigError, UnknownNameError, did_you_mean

CUSTOM_CLIENT = "given"
"""The client type of a model that was made in Python."""
EMBEDDED_CLIENTS = frozenset({"local", "scripted"})
"""Models that live in this process: they need neither address nor key."""
SERVER_CLIENTS = frozenset({CHAT, "openai_responses", ANTHROPIC.client_type})
"""How a Proctor server can be asked for a model."""


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
    """The longest answer that a server asks for on behalf of somebody with a limit who names none."""
    replicas: tuple[Endpoint, ...] = ()
    """Equal endpoints that share the work; this one says what they have in common."""

    @property
    def address(self) -> str:
        """Where it is, for people to read."""
        return ", ".join(each.url for each in self.replicas) or self.url

    @property
    def tariff(self) -> Price | None:
        """What it costs: as its row says, else by the list; nobody knows where replicas differ."""
        if self.client_type in EMBEDDED_CLIENTS:
            return FREE
        if self.price is None and self.replicas:
            each, *others = (replica.tariff for replica in self.replicas)
            return each if all(other == each for other in others) else None
        return self.price or find_price(self.model)

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

    def named(self, alias: str) -> Endpoint:
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
        """Where to ask for a model: at the preferred place, unless it is nobody's there."""
        if self.provider is None or model is None or model in EMBEDDED_CLIENTS:
            return None
        provider = get_provider(self.provider, environ)
        is_theirs = provider.owns(model) or not (provider.own or any(maker.owns(model) for maker in MAKERS))
        return provider if is_theirs else None


NO_PREFERENCE = ModelPreference()


class ServerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the Proctor server you are logged in to says of a model."""

    model: str | None = None
    """Its name there; None if the server does not offer it."""
    problem: str = ""
    """Why not, as a clause."""


AskServer = Callable[[str | None], ServerAnswer]
"""Whether the server offers a model; for None, its default model."""


def assume_offered(model: str | None) -> ServerAnswer:
    """For callers that cannot ask: the server answers for itself later."""
    return ServerAnswer(model=model or DEFAULT_MODEL)


class EndpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint options as given; None where not given."""

    model: str | None
    url: str | None
    key_var: str | None
    client_type: str | None
    headers: Mapping[str, str]
    request_seconds: float


def choose_endpoint(
    *,
    model: str | None,
    url: str | None,
    key_var: str | None,
    client_type: str | None,
    headers: Mapping[str, str],
    request_seconds: float,
    environ: Mapping[str, str],
    endpoint_id: str | None = None,
    provider: str | None = None,
    registry: Registry = NO_REGISTRY,
    preferred: ModelPreference = NO_PREFERENCE,
    ask_server: AskServer = assume_offered,
) -> Endpoint:
    """The endpoint that the given words mean, and an agent's preference where they leave it open; raises
    when a key is missing. docs/models.md has the rule as a table."""
    if model is None and endpoint_id is None and preferred.model is not None:
        model = preferred.model
    words = EndpointSettings(
        model=model,
        url=url,
        key_var=key_var,
        client_type=client_type,
        headers=headers,
        request_seconds=request_seconds,
    )
    if endpoint_id is not None and model is not None:
        raise ConfigError(
            f"endpoint_id is {endpoint_id!r} and model is {model!r}; give one: an endpoint has its model."
        )
    named = None if provider is None else get_provider(provider, environ)
    if named is not None and named.name == PROCTOR and model is None and endpoint_id is None:
        words = replace(words, model=need_default_model(named, ask_server(None)))
    row = registry.named(endpoint_id) if endpoint_id is not None else registry.endpoints.get(model or "")
    if row is not None:
        return resolve_from_registry(row, words, named, environ)
    if named is None and (named := preferred_provider(words, preferred, environ)) is not None:
        words = replace(words, client_type=client_type or preferred.client_type)
    if client_type in EMBEDDED_CLIENTS or (
        client_type is None and named is None and model in EMBEDDED_CLIENTS
    ):
        return embedded_endpoint(words)
    if named is not None or url is not None or key_var is not None:
        return resolve_addressed_endpoint(words, named, environ)
    usual = registry.endpoints.get(DEFAULT_MODEL)
    if model is None and usual is not None and usual.has_keys(environ):
        why = f"no model was named and {DEFAULT_MODEL} is in {registry.path}"
        return replace(resolve_from_registry(usual, words, None, environ), why=why)
    return find_endpoint_with_key(words, environ, registry, ask_server, preferred)


def preferred_provider(
    words: EndpointSettings, preferred: ModelPreference, environ: Mapping[str, str]
) -> Provider | None:
    """An agent's own provider, if its key is there or you said where to ask."""
    provider = preferred.provider_for(words.model, environ)
    if provider is None or words.client_type in EMBEDDED_CLIENTS:
        return None
    is_addressed = words.url is not None or words.key_var is not None
    return provider if is_addressed or provider.has_key(environ) else None


def need_default_model(server: Provider, answer: ServerAnswer) -> str:
    if answer.model is None:
        raise ConfigError(f"{server.host} {answer.problem}; name a model with -m.")
    return answer.model


# From the registry


def resolve_from_registry(
    row: Endpoint, words: EndpointSettings, provider: Provider | None, environ: Mapping[str, str]
) -> Endpoint:
    """What the registry says, with whatever was said besides on top."""
    if provider is not None or words.url is not None:
        row = relocate_endpoint(row, words, provider, environ)
    each = [apply_settings(replica, words, environ) for replica in row.replicas]
    return replace(apply_settings(row, words, environ), replicas=tuple(each))


def relocate_endpoint(
    row: Endpoint, words: EndpointSettings, provider: Provider | None, environ: Mapping[str, str]
) -> Endpoint:
    """The same model at one other place, where the secrets of the row do not follow by themselves."""
    changes: dict[str, Any] = {"replicas": ()}
    if provider is not None:
        key_var = provider.key_var(environ)
        is_needed = provider.needs_key or bool(environ.get(key_var))
        changes |= {
            "url": provider.url,
            "key_var": key_var if is_needed else None,
            "client_type": provider.client_type,
        }
    if words.url is not None:
        changes["url"] = words.url
    place = replace(row, **changes)
    if (words.client_type or place.client_type) in EMBEDDED_CLIENTS or not is_other_host(place.url, row):
        return place
    if provider is None and words.key_var is None and row.key_var:
        place = replace(place, key_var=default_key_variable(place.url, environ))
    return replace(place, headers=http_headers.drop_secrets(row.headers))


def is_other_host(url: str, row: Endpoint) -> bool:
    """Whether what is sent to an address leaves for another host than those of the row."""
    url = validate_address(url)
    known = {host_of(each.url) for each in row.replicas or (row,)}
    return not is_on_this_machine(url) and host_of(url) not in known


def apply_settings(row: Endpoint, words: EndpointSettings, environ: Mapping[str, str]) -> Endpoint:
    """One row with the words that leave it where it is; its key must be there."""
    client_type = words.client_type or row.client_type
    key_var = row.key_var if words.key_var is None else words.key_var or None
    url = row.url
    if client_type in EMBEDDED_CLIENTS:
        url = url if row.client_type in EMBEDDED_CLIENTS or words.url is not None else ""
    else:
        url = validate_address(url)
        if key_var and (words.key_var is not None or not is_on_this_machine(url)):
            check_key(key_var, url, environ)
    return replace(
        row,
        client_type=client_type,
        url=url,
        key_var=key_var,
        headers=http_headers.merge_headers(row.headers, words.headers),
        request_seconds=words.request_seconds,
    )


# Without a registry


def embedded_endpoint(words: EndpointSettings) -> Endpoint:
    client_type = words.client_type or words.model
    assert client_type is not None
    return Endpoint(
        model=words.model or client_type,
        client_type=client_type,
        url=words.url or "",
        request_seconds=words.request_seconds,
    )


def resolve_addressed_endpoint(
    words: EndpointSettings, named: Provider | None, environ: Mapping[str, str]
) -> Endpoint:
    """The endpoint at an address, of a provider, or of whoever uses that key."""
    model = resolve_model_name(words, named)
    if words.url is not None:
        url = validate_address(words.url)
        provider = named or find_provider_by_url(url, environ)
    else:
        whose = find_provider_by_key(words.key_var, environ)
        provider = named or whose or rank_providers(model, {})[0]  # your own key is not for the server
        url = provider.url
    return Endpoint(
        model=provider.model_name(model) if provider else model,
        client_type=words.client_type or (provider.client_type if provider else CHAT),
        url=url,
        key_var=resolve_key_variable(url, words.key_var, named or provider, environ),
        headers=words.headers,
        request_seconds=words.request_seconds,
    )


def resolve_model_name(words: EndpointSettings, named: Provider | None) -> str:
    if words.model is not None:
        return words.model
    if named is not None and named.default_model is None:
        raise ConfigError(f"Provider {named.name} needs the name of a model; give one with -m.")
    return DEFAULT_MODEL


def resolve_key_variable(
    url: str, key_var: str | None, provider: Provider | None, environ: Mapping[str, str]
) -> str | None:
    """The variable whose value is sent to an address; one that was named, or is needed, must be set."""
    if key_var is None:
        if provider is None:
            return None if is_on_this_machine(url) else default_key_variable(url, environ)
        key_var = provider.key_var(environ)
        if is_on_this_machine(url) or not provider.needs_key:
            is_its_own = url == provider.url or not provider.needs_key
            return key_var if is_its_own and environ.get(key_var) else None
    if key_var:
        check_key(key_var, url, environ)
    return key_var or None


def default_key_variable(url: str, environ: Mapping[str, str]) -> str:
    """The variable of whoever is known to be at an address; nobody else is sent a key unasked."""
    provider = find_provider_by_host(url)
    if provider is None:
        raise ConfigError(
            f"No key is known for {url}; name the variable that holds it with -k (api_key_var in a suite), "
            f"or give -k '' for an endpoint without a key."
        )
    key_var = provider.key_var(environ)
    check_key(key_var, url, environ)
    return key_var


def find_endpoint_with_key(
    words: EndpointSettings,
    environ: Mapping[str, str],
    registry: Registry,
    ask_server: AskServer,
    preferred: ModelPreference,
) -> Endpoint:
    """The first endpoint that has a key for the model: its maker's, the server's, another provider's."""
    model = words.model or DEFAULT_MODEL
    known = rank_providers(model, environ)
    problem = ""
    for provider in known:
        if not provider.has_key(environ):
            continue
        if provider.name != PROCTOR:
            return endpoint_of_provider(words, provider, model, environ, problem)
        answer = ask_server(words.model)
        if answer.model is not None:
            client_type = words.client_type or server_client_type(preferred, environ)
            at_server = replace(words, client_type=client_type)
            return endpoint_of_provider(at_server, provider, answer.model, environ, problem)
        problem = f"{provider.host} {answer.problem}"
    if words.model is None:
        reason = problem or "no API key is set"
        return Endpoint(
            model="local",
            client_type="local",
            request_seconds=words.request_seconds,
            why=f"no model was named and {reason}, so the small embedded model answers; "
            "name another with -m, and set PRIME_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY",
        )
    raise ConfigError(explain_missing_key(model, known, problem) + suggest_alias(model, registry))


def endpoint_of_provider(
    words: EndpointSettings, provider: Provider, model: str, environ: Mapping[str, str], problem: str
) -> Endpoint:
    key_var = provider.key_var(environ)
    client_type = words.client_type or provider.client_type
    why = ""
    if words.model is None:
        why = f"no model was named and {explain_provider(provider, key_var)}"
    elif problem:
        why = f"{problem}, and {key_var} is set"
    return Endpoint(
        model=provider.model_name(model),
        client_type=client_type,
        url=server_url(provider.url, client_type) if provider.name == PROCTOR else provider.url,
        key_var=key_var,
        headers=words.headers,
        request_seconds=words.request_seconds,
        why=why,
    )


def server_client_type(preferred: ModelPreference, environ: Mapping[str, str]) -> str | None:
    """The API to speak to a Proctor server for an agent: the one it would speak to its own provider, which
    keeps what only that API has."""
    if preferred.provider is None:
        return None
    native = preferred.client_type or get_provider(preferred.provider, environ).client_type
    return native if native in SERVER_CLIENTS else None


def server_url(url: str, client_type: str) -> str:
    """A client of Anthropic's API adds /v1 by itself."""
    return url.removesuffix("/v1") if client_type == ANTHROPIC.client_type else url


def explain_missing_key(model: str, known: list[Provider], problem: str) -> str:
    others = [each for each in known if each.name != PROCTOR]
    at_server = f" ({problem})" if problem else ""
    return (
        f"No API key for model {model!r}{at_server}: set {any_of(others)}, "
        f"name another endpoint with -b and the variable of its key with -k, or use -m local."
    )


def suggest_alias(model: str, registry: Registry) -> str:
    near = did_you_mean(model, registry.endpoints)
    return f" No endpoint is called {model!r} in {registry.path}{near}" if near.startswith("; did") else ""


def explain_provider(provider: Provider, key_var: str) -> str:
    if provider.name == PROCTOR:
        return f"it is the default of {provider.host}, where you are logged in"
    return f"{key_var} is set"


def any_of(providers: list[Provider]) -> str:
    *others, last = [provider.key_vars[0] for provider in providers]
    return f"{', '.join(others)} or {last}" if others else last


# Addresses and keys


def check_key(key_var: str, url: str, environ: Mapping[str, str]) -> None:
    if not environ.get(key_var):
        raise ConfigError(
            f"{key_var} is not set, and {url} needs the API key in it; set it, name another variable with "
            f"-k, or give -k '' for an endpoint without a key."
        )


def validate_address(url: str) -> str:
    problem = address_problem(url)
    if problem is not None:
        raise ConfigError(problem)
    return url.rstrip("/")


def address_problem(url: str) -> str | None:
    """Why an API cannot be asked there, as a sentence that repeats no password."""
    if not is_address(url):
        return f"{url!r} is not an API address; it should look like https://host/v1."
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        return (
            f"The address at {parts.hostname} holds more than https://host/v1, and addresses are shown and "
            f"saved; name the variable of a key with -k, and send anything else as a header."
        )
    return None


def is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that cannot be
        return False
    return is_one and not any(letter.isspace() for letter in url)


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def is_on_this_machine(url: str) -> bool:
    host = host_of(url)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
