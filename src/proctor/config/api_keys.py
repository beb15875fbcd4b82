"""Which environment variable holds the key of an address, and what to say where it is not set.

Reads the environment variables that it is given. Knows nothing of registries or HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.config.api_addresses import is_on_this_machine
from proctor.config.providers import PROCTOR, Provider, find_provider_by_host
from proctor.errors import ConfigError


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
    """The key variable of the provider known at an address; no other address is sent a key unasked."""
    provider = find_provider_by_host(url)
    if provider is None:
        raise ConfigError(
            f"No key is known for {url}; name the variable that holds it with -k (api_key_var in a suite), "
            f"or give -k '' for an endpoint without a key."
        )
    key_var = provider.key_var(environ)
    check_key(key_var, url, environ)
    return key_var


def check_key(key_var: str, url: str, environ: Mapping[str, str]) -> None:
    if not environ.get(key_var):
        raise ConfigError(
            f"{key_var} is not set, and {url} needs the API key in it; set it, name another variable with "
            f"-k, or give -k '' for an endpoint without a key."
        )


def explain_missing_key(model: str, known: list[Provider], problem: str) -> str:
    others = [each for each in known if each.name != PROCTOR]
    at_server = f" ({problem})" if problem else ""
    return (
        f"No API key for model {model!r}{at_server}: set {any_of(others)}, "
        f"name another endpoint with -b and the variable of its key with -k, or use -m local."
    )


def explain_missing_address(environ: Mapping[str, str]) -> str:
    is_half = environ.get("PROCTOR_API_KEY") and not environ.get("PROCTOR_API_URL")
    return "PROCTOR_API_KEY is not used without PROCTOR_API_URL, the address of its server" if is_half else ""


def any_of(providers: list[Provider]) -> str:
    *others, last = [provider.key_vars[0] for provider in providers]
    return f"{', '.join(others)} or {last}" if others else last
