"""Well-known providers: by name, by the model's name, by the key that is there."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import plugins
from proctor.config.endpoint_choice import ServerAnswer, choose_endpoint
from proctor.config.endpoints import Endpoint, ModelPreference, Registry
from proctor.config.providers import PROVIDERS
from proctor.errors import ConfigError

EVERY_KEY = {name: "1" for provider in PROVIDERS.values() for name in provider.key_vars}


def chosen(environ: dict[str, str] | None = None, **words: Any) -> Endpoint:
    usual = {"model": None, "url": None, "key_var": None, "client_type": None}
    return choose_endpoint(
        **{**usual, "headers": {}, "request_seconds": 60.0, **words}, environ=environ or {}
    )


def test_every_provider_has_a_client_and_an_address() -> None:
    assert list(PROVIDERS) == ["prime", "openai", "anthropic", "gemini", "openrouter", "deepseek", "vllm"]
    for provider in PROVIDERS.values():
        assert provider.client_type in plugins.list_names(plugins.MODELS)
        assert provider.host


@pytest.mark.parametrize(
    ("provider", "model", "asked", "url", "key_var", "client_type"),
    [
        (
            "prime",
            "a/b",
            "a/b",
            "https://api.pinference.ai/api/v1",
            "PRIME_API_KEY",
            "openai_chat_completions",
        ),
        ("openai", "openai/x", "x", "https://api.openai.com/v1", "OPENAI_API_KEY", "openai_chat_completions"),
        (
            "anthropic",
            "claude-x",
            "claude-x",
            "https://api.anthropic.com",
            "ANTHROPIC_API_KEY",
            "anthropic_messages",
        ),
        (
            *("gemini", "google/gemini-x", "gemini-x", "https://generativelanguage.googleapis.com/v1beta"),
            *("GEMINI_API_KEY", "gemini"),
        ),
        (
            *("openrouter", "anthropic/x", "anthropic/x", "https://openrouter.ai/api/v1"),
            *("OPENROUTER_API_KEY", "openai_chat_completions"),
        ),
        (
            "deepseek",
            "deepseek/x",
            "x",
            "https://api.deepseek.com",
            "DEEPSEEK_API_KEY",
            "openai_chat_completions",
        ),
        ("vllm", "q/x", "q/x", "http://localhost:8000/v1", "VLLM_API_KEY", "openai_chat_completions"),
    ],
)
def test_a_provider_decides_address_key_and_client(
    provider: str, model: str, asked: str, url: str, key_var: str, client_type: str
) -> None:
    endpoint = chosen(EVERY_KEY, provider=provider, model=model)

    assert (endpoint.model, endpoint.url) == (asked, url)
    assert (endpoint.key_var, endpoint.client_type) == (key_var, client_type)


def test_flags_win_over_the_provider() -> None:
    endpoint = chosen(
        {"MINE": "1"}, provider="anthropic", model="m", url="https://mine.example/v1", key_var="MINE"
    )

    assert (endpoint.url, endpoint.key_var) == ("https://mine.example/v1", "MINE")
    assert endpoint.client_type == "anthropic_messages"


def test_a_server_of_ones_own_needs_no_key() -> None:
    assert chosen(provider="vllm", model="m").key_var is None
    assert chosen(provider="vllm", model="m", url="http://10.0.0.7:8000/v1").key_var is None


def test_a_provider_without_its_key_names_it() -> None:
    with pytest.raises(ConfigError, match=r"DEEPSEEK_API_KEY is not set, and https://api.deepseek.com needs"):
        chosen(provider="deepseek", model="m")


def test_a_provider_that_serves_no_usual_model_wants_one_named() -> None:
    assert chosen(EVERY_KEY, provider="openai").model == "gpt-4.1-mini"
    with pytest.raises(ConfigError, match="Provider anthropic needs the name of a model; give one with -m"):
        chosen(EVERY_KEY, provider="anthropic")


def test_an_unknown_provider_is_corrected() -> None:
    with pytest.raises(ConfigError, match=r"No provider is called 'antropic'; did you mean 'anthropic'\?"):
        chosen(provider="antropic", model="m")


@pytest.mark.parametrize(
    ("model", "keys", "name", "asked"),
    [
        ("claude-sonnet-4-5", EVERY_KEY, "anthropic", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5", EVERY_KEY, "anthropic", "claude-sonnet-4-5"),
        ("anthropic/claude-x", {"OPENROUTER_API_KEY": "1"}, "openrouter", "anthropic/claude-x"),
        ("anthropic/claude-x", {"PRIME_API_KEY": "1"}, "prime", "anthropic/claude-x"),
        ("gemini-2.5-pro", {"GEMINI_API_KEY": "1", "PRIME_API_KEY": "1"}, "gemini", "gemini-2.5-pro"),
        ("google/gemini-2.5-pro", {"GOOGLE_API_KEY": "1"}, "gemini", "gemini-2.5-pro"),
        ("google/gemma-3", EVERY_KEY, "prime", "google/gemma-3"),
        ("gpt-9", {"OPENAI_API_KEY": "1", "ANTHROPIC_API_KEY": "1"}, "openai", "gpt-9"),
        ("deepseek/x", EVERY_KEY, "prime", "deepseek/x"),
    ],
)
def test_the_maker_of_a_model_is_asked_first_if_its_key_is_there(
    model: str, keys: dict[str, str], name: str, asked: str
) -> None:
    endpoint = chosen(keys, model=model)

    assert (endpoint.url, endpoint.model) == (PROVIDERS[name].url, asked)
    assert endpoint.client_type == PROVIDERS[name].client_type
    assert keys[endpoint.key_var or ""] == "1"


def test_a_model_is_not_looked_for_where_it_cannot_be() -> None:
    with pytest.raises(
        ConfigError, match="'claude-x': set ANTHROPIC_API_KEY, PRIME_API_KEY or OPENROUTER_API_KEY"
    ):
        chosen({"OPENAI_API_KEY": "1"}, model="claude-x")


def test_a_key_alone_names_its_provider() -> None:
    endpoint = chosen({"ANTHROPIC_API_KEY": "1"}, model="claude-x", key_var="ANTHROPIC_API_KEY")

    assert (endpoint.url, endpoint.client_type) == ("https://api.anthropic.com", "anthropic_messages")


def test_a_model_called_like_an_embedded_one_may_be_asked_elsewhere() -> None:
    assert chosen(EVERY_KEY, provider="openai", model="local").url == "https://api.openai.com/v1"


def test_an_address_for_the_embedded_model_is_refused_rather_than_ignored() -> None:
    address = "http://localhost:8000/v1"
    with pytest.raises(ConfigError, match=r"leave -b out, or name the model that is served there"):
        chosen({}, model="local", url=address)
    assert chosen({}, model="local", url=address, client_type="openai_chat_completions").url == address


# Whose key goes where


@pytest.mark.parametrize(
    "url", ["https://api.unknown.example/v1", "http://10.0.0.7:8000/v1", "http://api.openai.com/v1"]
)
def test_a_strange_host_is_sent_no_key_unasked(url: str) -> None:
    with pytest.raises(ConfigError, match=rf"No key is known for {url}; name the variable .* with -k"):
        chosen(EVERY_KEY, model="m", url=url)
    assert chosen(EVERY_KEY, model="m", url=url, key_var="").key_var is None
    assert chosen(EVERY_KEY, model="m", url=url, key_var="OPENAI_API_KEY").key_var == "OPENAI_API_KEY"


def test_this_machine_is_sent_no_key_and_asked_for_none() -> None:
    assert chosen(EVERY_KEY, model="m", url="http://127.0.0.1:9/v1").key_var is None


@pytest.mark.parametrize(
    ("url", "key_var", "client_type", "asked"),
    [
        ("https://api.openai.com/v1/", "OPENAI_API_KEY", "openai_chat_completions", "x"),
        ("https://api.anthropic.com", "ANTHROPIC_API_KEY", "anthropic_messages", "openai/x"),
        ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "openai_chat_completions", "openai/x"),
    ],
)
def test_a_well_known_address_is_asked_with_its_own_key_and_in_its_own_language(
    url: str, key_var: str, client_type: str, asked: str
) -> None:
    endpoint = chosen(EVERY_KEY, model="openai/x", url=url)

    assert (endpoint.key_var, endpoint.client_type, endpoint.model) == (key_var, client_type, asked)


def test_a_key_of_ones_own_goes_to_the_maker_of_the_model() -> None:
    endpoint = chosen({"MY_CLAUDE_KEY": "1"}, model="claude-x", key_var="MY_CLAUDE_KEY")

    assert (endpoint.url, endpoint.key_var) == ("https://api.anthropic.com", "MY_CLAUDE_KEY")


@pytest.mark.parametrize(
    "url", ["https://me:hunter2@llm.example.com/v1", "https://llm.example.com/v1?api_key=hunter2"]
)
def test_an_address_with_a_password_in_it_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match=r"The address at llm.example.com holds more than") as error:
        chosen(model="m", url=url, key_var="")
    assert "hunter2" not in str(error.value)


# The server one is logged in to

LOGGED_IN = {"PROCTOR_API_URL": "http://127.0.0.1:8700/", "PROCTOR_API_KEY": "proctor_1_2"}


def test_who_is_logged_in_to_a_server_asks_there_unless_the_maker_can_be_asked() -> None:
    endpoint = chosen({**EVERY_KEY, **LOGGED_IN})

    assert (endpoint.model, endpoint.url) == ("openai/gpt-4.1-mini", "http://127.0.0.1:8700/v1")
    assert endpoint.key_var == "PROCTOR_API_KEY"
    assert endpoint.why == "no model was named and it is the default of 127.0.0.1, where you are logged in"
    assert chosen({**EVERY_KEY, **LOGGED_IN}, model="a/b").url == "http://127.0.0.1:8700/v1"
    assert chosen({**EVERY_KEY, **LOGGED_IN}, model="claude-x").url == "https://api.anthropic.com"
    assert chosen(LOGGED_IN, model="claude-x").url == "http://127.0.0.1:8700/v1"


CLAUDE = ModelPreference(model="claude-sonnet-4-5", provider="anthropic")
OPENAI = ModelPreference(model="gpt-5", provider="openai", client_type="openai_responses")
GEMINI = ModelPreference(model="gemini-2.5-flash", provider="gemini")


@pytest.mark.parametrize(
    ("preferred", "environ", "url", "client_type"),
    [
        (CLAUDE, {}, "http://127.0.0.1:8700", "anthropic_messages"),
        (OPENAI, {}, "http://127.0.0.1:8700/v1", "openai_responses"),
        (GEMINI, {}, "http://127.0.0.1:8700/v1", "openai_chat_completions"),
        (CLAUDE, {"ANTHROPIC_API_KEY": "1"}, "https://api.anthropic.com", "anthropic_messages"),
        (OPENAI, {"OPENAI_API_KEY": "1"}, "https://api.openai.com/v1", "openai_responses"),
    ],
)
def test_a_preset_without_its_key_is_asked_for_at_the_server(
    preferred: ModelPreference, environ: dict[str, str], url: str, client_type: str
) -> None:
    endpoint = chosen({**LOGGED_IN, **environ}, preferred=preferred)

    assert (endpoint.model, endpoint.url, endpoint.client_type) == (preferred.model, url, client_type)


def test_a_server_that_lacks_a_model_leaves_it_to_the_next_provider() -> None:
    def ask_server(model: str | None) -> ServerAnswer:
        return ServerAnswer(problem=f"has no model {model!r}")

    keys = {**LOGGED_IN, "OPENAI_API_KEY": "1"}
    endpoint = chosen(keys, model="gpt-5", ask_server=ask_server)
    assert endpoint.url == "https://api.openai.com/v1"
    assert endpoint.why == "127.0.0.1 has no model 'gpt-5', and OPENAI_API_KEY is set"
    with pytest.raises(ConfigError, match=r"'gpt-5' \(127.0.0.1 has no model 'gpt-5'\): set PRIME_API_KEY"):
        chosen(LOGGED_IN, model="gpt-5", ask_server=ask_server)
    with pytest.raises(ConfigError, match="has no model None; name a model with -m"):
        chosen(LOGGED_IN, provider="proctor", ask_server=ask_server)


def test_a_model_near_an_alias_but_without_a_key_says_that_the_key_is_missing() -> None:
    registry = Registry({"gpt-4.1-mini": Endpoint(model="m", url="http://127.0.0.1:9/v1")}, "e.toml")

    with pytest.raises(ConfigError, match=r"No API key for model 'gpt-4.1': set .* did you mean 'gpt-4"):
        chosen({}, model="gpt-4.1", registry=registry)


def test_a_key_of_a_server_without_its_address_is_not_passed_over_in_silence() -> None:
    with pytest.raises(ConfigError, match=r"'gpt-5' \(PROCTOR_API_KEY is not used without PROCTOR_API_URL"):
        chosen({"PROCTOR_API_KEY": "1"}, model="gpt-5")


def test_the_server_can_be_named() -> None:
    endpoint = chosen({**EVERY_KEY, **LOGGED_IN}, provider="proctor", model="claude-x")

    assert (endpoint.url, endpoint.key_var) == ("http://127.0.0.1:8700/v1", "PROCTOR_API_KEY")
    assert chosen(LOGGED_IN, model="m", url="http://127.0.0.1:8700/v1").key_var == "PROCTOR_API_KEY"


def test_who_is_logged_in_nowhere_is_told_how_to() -> None:
    with pytest.raises(ConfigError, match="you are not logged in; run `proctor login URL`"):
        chosen({"PROCTOR_API_URL": "http://127.0.0.1:8700"}, provider="proctor", model="m")


def test_a_key_of_ones_own_is_not_sent_to_the_server() -> None:
    assert "127.0.0.1" not in chosen({"MINE": "1", **LOGGED_IN}, model="m", key_var="MINE").url
