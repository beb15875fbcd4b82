"""Built-in model providers: address, key variable, client type, and which model names are theirs.

Knows nothing of HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from proctor.errors import ConfigError, did_you_mean

DEFAULT_MODEL = "openai/gpt-4.1-mini"
CHAT = "openai_chat_completions"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The name of an environment variable."""
PASTED_KEY = re.compile(r"(sk|hf|gsk|ghp|xai|AIza)_?[A-Za-z0-9]{16,}\w*|(?=.*[a-z])(?=.*\d)[A-Za-z0-9]{24,}")
"""What might be a variable's name, and is far more likely a key that was pasted in its place."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in provider."""

    name: str
    url: str
    key_vars: tuple[str, ...]
    """Where its key may be, the usual variable first."""
    client_type: str = CHAT
    prefix: str = ""
    """What model names start with elsewhere, and are written without here."""
    own: tuple[str, ...] = ()
    """How the names of models start that it alone makes."""
    needs_key: bool = True
    default_model: str | None = None

    @property
    def host(self) -> str | None:
        return urlsplit(self.url).hostname

    def model_name(self, model: str) -> str:
        return model.removeprefix(self.prefix)

    def owns(self, model: str) -> bool:
        return model.startswith(self.own) if self.own else False

    def key_var(self, environ: Mapping[str, str]) -> str:
        """The variable that holds its key, or the one that should."""
        return next((name for name in self.key_vars if environ.get(name)), self.key_vars[0])

    def has_key(self, environ: Mapping[str, str]) -> bool:
        return bool(environ.get(self.key_var(environ)))


PRIME = Provider(
    name="prime",
    url="https://api.pinference.ai/api/v1",
    key_vars=("PRIME_API_KEY",),
    default_model=DEFAULT_MODEL,
)
OPENAI = Provider(
    name="openai",
    url="https://api.openai.com/v1",
    key_vars=("OPENAI_API_KEY",),
    prefix="openai/",
    default_model=DEFAULT_MODEL,
)
ANTHROPIC = Provider(
    name="anthropic",
    url="https://api.anthropic.com",
    key_vars=("ANTHROPIC_API_KEY",),
    client_type="anthropic_messages",
    prefix="anthropic/",
    own=("anthropic/", "claude-"),
)
GEMINI = Provider(
    name="gemini",
    url="https://generativelanguage.googleapis.com/v1beta",
    key_vars=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    client_type="gemini",
    prefix="google/",
    own=("google/gemini-", "gemini-"),
)
OPENROUTER = Provider(
    name="openrouter",
    url="https://openrouter.ai/api/v1",
    key_vars=("OPENROUTER_API_KEY",),
    default_model=DEFAULT_MODEL,
)
DEEPSEEK = Provider(
    name="deepseek",
    url="https://api.deepseek.com",
    key_vars=("DEEPSEEK_API_KEY",),
    prefix="deepseek/",
)
VLLM = Provider(
    name="vllm",
    url="http://localhost:8000/v1",
    key_vars=("VLLM_API_KEY",),
    needs_key=False,
)

PROCTOR = "proctor"
"""The provider without a fixed address: the server you are logged in to."""
PROVIDERS = {each.name: each for each in (PRIME, OPENAI, ANTHROPIC, GEMINI, OPENROUTER, DEEPSEEK, VLLM)}
MAKERS = (ANTHROPIC, GEMINI)
"""Asked directly for the models they make."""
FALLBACK_PROVIDERS = (PRIME, OPENAI, OPENROUTER)
"""In this order, for every other model."""
NAMES = (PROCTOR, *PROVIDERS)


def is_variable_name(name: str) -> bool:
    return bool(VARIABLE.fullmatch(name)) and not PASTED_KEY.fullmatch(name)


def find_proctor_server(environ: Mapping[str, str]) -> Provider | None:
    """The Proctor server you are logged in to, which holds the keys of other providers."""
    url = environ.get("PROCTOR_API_URL")
    if not url or not environ.get("PROCTOR_API_KEY"):
        return None
    return Provider(
        name=PROCTOR,
        url=f"{url.rstrip('/')}/v1",
        key_vars=("PROCTOR_API_KEY",),
        default_model=DEFAULT_MODEL,
    )


def list_providers(environ: Mapping[str, str]) -> list[Provider]:
    """Every provider that you can name."""
    platform = find_proctor_server(environ)
    return [*([platform] if platform else []), *PROVIDERS.values()]


def get_provider(name: str, environ: Mapping[str, str]) -> Provider:
    known = {each.name: each for each in list_providers(environ)}
    if name == PROCTOR and name not in known:
        raise ConfigError(
            "Provider proctor is the server you are logged in to, and you are not logged in; "
            "run `proctor login URL`."
        )
    if name not in known:
        raise ConfigError(f"No provider is called {name!r}{did_you_mean(name, NAMES)}")
    return known[name]


def rank_providers(model: str, environ: Mapping[str, str]) -> list[Provider]:
    """Providers of a model by that name, the preferred one first: its maker, the Proctor server you are
    logged in to, everyone else."""
    makers = [provider for provider in MAKERS if provider.owns(model)]
    platform = find_proctor_server(environ)
    is_openais = model.startswith(OPENAI.prefix) or ("/" not in model and not makers)
    rest = [provider for provider in FALLBACK_PROVIDERS if provider is not OPENAI or is_openais]
    return [*makers, *([platform] if platform else []), *rest]


def find_provider_by_url(url: str, environ: Mapping[str, str]) -> Provider | None:
    """Whose address this is, to the letter: another path of the same host may speak another language."""
    return next((each for each in list_providers(environ) if each.needs_key and each.url == url), None)


def find_provider_by_host(url: str) -> Provider | None:
    """The provider that may be sent its usual key there; None over an unencrypted connection."""
    parts = urlsplit(url)
    host = parts.hostname if parts.scheme == "https" else None
    return next((each for each in PROVIDERS.values() if each.needs_key and each.host == host), None)


def find_provider_by_key(key_var: str | None, environ: Mapping[str, str]) -> Provider | None:
    return next((each for each in list_providers(environ) if key_var in each.key_vars), None)
