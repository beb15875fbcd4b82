"""Which endpoint answers for a model name, and with which key.

Reads environment variables and a registry that it is given. Knows nothing of HTTP or of files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.config import headers as http_headers
from proctor.config.api_addresses import host_of, is_on_this_machine, validate_address
from proctor.config.api_keys import (
    check_key,
    default_key_variable,
    explain_missing_address,
    explain_missing_key,
    resolve_key_variable,
)
from proctor.config.endpoints import (
    EMBEDDED_CLIENTS,
    NO_PREFERENCE,
    NO_REGISTRY,
    Endpoint,
    ModelPreference,
    Registry,
)
from proctor.config.providers import (
    ANTHROPIC,
    CHAT,
    DEFAULT_MODEL,
    PROCTOR,
    Provider,
    find_provider_by_key,
    find_provider_by_url,
    get_provider,
    rank_providers,
)
from proctor.errors import ConfigError, did_you_mean

SERVER_CLIENTS = frozenset({CHAT, "openai_responses", ANTHROPIC.client_type})
"""How a Proctor server can be asked for a model."""


class ServerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the Proctor server you are logged in to says about a model."""

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
    row = registry.find(endpoint_id) if endpoint_id is not None else registry.endpoints.get(model or "")
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
    moved = replace(row, **changes)
    if (words.client_type or moved.client_type) in EMBEDDED_CLIENTS or not is_other_host(moved.url, row):
        return moved
    if provider is None and words.key_var is None and row.key_var:
        moved = replace(moved, key_var=default_key_variable(moved.url, environ))
    return replace(moved, headers=http_headers.drop_secrets(row.headers))


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
    if client_type == "local" and words.url:
        raise ConfigError(
            f"The embedded model has no address, and -b is {words.url!r}; leave -b out, or name the model "
            f"that is served there. If it is called 'local' there too, add --api-client-type {CHAT}."
        )
    return Endpoint(
        model=words.model or client_type,
        client_type=client_type,
        url=words.url or "",
        request_seconds=words.request_seconds,
    )


def resolve_addressed_endpoint(
    words: EndpointSettings, named: Provider | None, environ: Mapping[str, str]
) -> Endpoint:
    """The endpoint at an address, of a provider, or of the provider that uses that key."""
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
    problem = problem or explain_missing_address(environ)
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


def suggest_alias(model: str, registry: Registry) -> str:
    near = did_you_mean(model, registry.endpoints)
    return f" No endpoint is called {model!r} in {registry.path}{near}" if near.startswith("; did") else ""


def explain_provider(provider: Provider, key_var: str) -> str:
    if provider.name == PROCTOR:
        return f"it is the default of {provider.host}, where you are logged in"
    return f"{key_var} is set"
