"""The endpoint registry: what a row may say, what is refused, and what a name then means."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import plugins
from proctor.config.endpoint_choice import choose_endpoint
from proctor.config.endpoints import Endpoint, Registry
from proctor.config.prices import Price, find_price
from proctor.config.registry import open_registry, read_registry
from proctor.config.schema import DEFAULT_REGISTRY, EvalConfig
from proctor.errors import ConfigError, FileError
from proctor.evaluation.prepare import resolve_endpoint

Written = Callable[[str, str], Path]

GUIDE = Path(__file__).parent / "guide"
ROW = 'endpoint_id = "fast"\nmodel = "m"\nurl = "http://localhost:1/v1"\n'
CLIENTS = plugins.list_names(plugins.MODELS)


def row(**fields: str) -> str:
    """A row as TOML, from fields that are TOML already; a field set to '' is left out."""
    usual = {"endpoint_id": '"fast"', "model": '"m"', "url": '"http://localhost:1/v1"'}
    said = {name: text for name, text in {**usual, **fields}.items() if text}
    return "[[endpoint]]\n" + "".join(f"{name} = {text}\n" for name, text in said.items())


def chosen(registry: Registry, environ: dict[str, str] | None = None, **words: Any) -> Endpoint:
    usual = {"model": None, "url": None, "key_var": None, "client_type": None}
    return choose_endpoint(
        **{**usual, "headers": {}, "request_seconds": 60.0, **words},
        environ=environ or {},
        registry=registry,
    )


# Reading


def test_the_registry_of_the_guide_is_read_as_it_stands() -> None:
    registry = read_registry(GUIDE / "endpoints.toml", CLIENTS)

    assert list(registry.endpoints) == ["gpt-4.1-mini", "qwen3-235b-i", "claude-sonnet"]
    assert registry.endpoints["claude-sonnet"] == Endpoint(
        alias="claude-sonnet",
        model="claude-sonnet-4-5-20250929",
        url="https://api.anthropic.com",
        key_var="ANTHROPIC_API_KEY",
        client_type="anthropic_messages",
    )
    assert registry.endpoints["qwen3-235b-i"].client_type == "openai_chat_completions"


def test_the_headers_of_the_guide_are_read_as_they_stand() -> None:
    registry = read_registry(GUIDE / "endpoints_headers.toml", CLIENTS)

    assert registry.endpoints["my-proxy"].headers == {"X-Custom-Header": "value"}


def test_a_row_may_say_all_there_is_to_say(written: Written) -> None:
    path = written(
        "e.toml",
        row(
            url='"https://llm.example.com/v1/"',
            api_key_var='"MY_KEY"',
            api_client_type='"openai_completions"',
            extra_headers='{ "X-A" = "1" }',
            price="{ input = 1, output = 2.5, cached = 0 }",
            max_concurrent="8",
            requests_per_minute="60",
            tokens_per_minute="1e5",
        ),
    )

    assert read_registry(path, CLIENTS).endpoints["fast"] == Endpoint(
        alias="fast",
        model="m",
        url="https://llm.example.com/v1",
        key_var="MY_KEY",
        client_type="openai_completions",
        headers={"X-A": "1"},
        price=Price(1, 2.5, 0),
        max_concurrent=8,
        requests_per_minute=60,
        tokens_per_minute=1e5,
    )


def test_synonyms_that_agree_are_one_value(written: Written) -> None:
    path = written("e.toml", row(api_base_url='"http://localhost:1/v1"', key='"K"', api_key_var='"K"'))

    assert read_registry(path).endpoints["fast"].key_var == "K"


def test_without_a_key_a_known_host_has_its_usual_one_and_any_other_none(written: Written) -> None:
    path = written(
        "e.toml",
        row(endpoint_id='"a"', url='"https://api.openai.com/v1"')
        + row(endpoint_id='"b"', url='"http://10.0.0.7:8000/v1"'),
    )

    endpoints = read_registry(path).endpoints

    assert (endpoints["a"].key_var, endpoints["b"].key_var) == ("OPENAI_API_KEY", None)
    assert chosen(read_registry(path), model="b").url == "http://10.0.0.7:8000/v1"


MISTAKES: list[tuple[dict[str, str], int, str]] = [
    ({"api_base_url": '"http://localhost:2/v1"'}, 5, "'url' and 'api_base_url' mean the same, but have diff"),
    ({"key": '"A"', "api_key_var": '"B"'}, 6, "'key' and 'api_key_var' mean the same, but have different"),
    (
        {"type": '"local"', "api_client_type": '"scripted"'},
        6,
        "'type' and 'api_client_type' mean the same, but",
    ),
    ({"headers": "{}", "extra_headers": "{}"}, 6, "'headers' and 'extra_headers' mean the same; keep one"),
    ({"client_type": '"local"'}, 5, "'client_type' is called 'api_client_type'"),
    ({"modle": '"x"'}, 5, "unknown field 'modle'; did you mean 'model'?"),
    ({"zzz": "1"}, 5, "unknown field 'zzz'; known: endpoint_id, model, url"),
    (
        {"type": '"openai_chat_completion"'},
        5,
        "no client type is called .*did you mean 'openai_chat_completions'",
    ),
    ({"endpoint_id": ""}, 1, "this endpoint has no 'endpoint_id'"),
    ({"model": ""}, 1, "this endpoint has no 'model'"),
    ({"url": ""}, 1, "this endpoint has no 'url'"),
    ({"endpoint_id": "7"}, 2, "'endpoint_id' must be a text, not 7"),
    ({"endpoint_id": '" "'}, 2, "'endpoint_id' is empty"),
    ({"model": "true"}, 3, "'model' must be a text, not true"),
    ({"url": '"localhost:8000"'}, 4, "'localhost:8000' is not an API address"),
    ({"url": '"http://[::1"'}, 4, ".* is not an API address"),
    ({"key": '""'}, 5, "'key' is empty; leave it out for an endpoint without a key"),
    ({"key": "[1]"}, 5, "'key' must be a text, not a list"),
    ({"api_key_var": '"sk-abc123"'}, 5, "'api_key_var' must be the name of an environment variable"),
    ({"key": '"hf_0123456789abcdefABCD"'}, 5, "'key' must be the name of an environment variable"),
    ({"headers": '"X: 1"'}, 5, "'headers' must be a table of texts, such as"),
    ({"headers": "{ X = 1 }"}, 5, "'X' in 'headers' must be a text, not 1"),
    ({"headers": '{ "X Y" = "1" }'}, 5, "'X Y' is not a valid HTTP header name"),
    ({"headers": '{ X = "a\\nb" }'}, 5, "the value of header X holds a line break"),
    ({"price": "3"}, 5, "'price' must be a table such as"),
    ({"price": "{ input = 1 }"}, 5, "the price has no 'output'"),
    (
        {"price": "{ input = -1, output = 1 }"},
        5,
        "'input' must be dollars per million tokens, 0 or more, not -1",
    ),
    ({"price": "{ input = nan, output = 1 }"}, 5, "'input' must be dollars per million tokens"),
    (
        {"price": "{ input = 1, outputs = 1, output = 1 }"},
        5,
        "unknown field 'outputs' of a price; did you mean",
    ),
    ({"max_concurrent": "0"}, 5, "'max_concurrent' must be a whole number of 1 or more, not 0"),
    ({"max_concurrent": "1.5"}, 5, "'max_concurrent' must be a whole number"),
    ({"max_concurrent": "true"}, 5, "'max_concurrent' must be a whole number of 1 or more, not true"),
    ({"requests_per_minute": "0"}, 5, "'requests_per_minute' must be a number above 0, not 0"),
    ({"tokens_per_minute": '"many"'}, 5, "'tokens_per_minute' must be a number above 0, not 'many'"),
]


@pytest.mark.parametrize(
    ("fields", "line", "sentence"), MISTAKES, ids=[str(fields) for fields, _, _ in MISTAKES]
)
def test_a_mistake_in_a_row_is_told_with_its_line(
    written: Written, fields: dict[str, str], line: int, sentence: str
) -> None:
    path = written("e.toml", row(**fields))

    with pytest.raises(FileError) as raised:
        read_registry(path, CLIENTS)

    (problem,) = raised.value.problems
    assert re.match(rf"e\.toml:{line}: {sentence}".replace("?", r"\?"), problem), problem
    assert "sk-abc123" not in problem


def test_all_mistakes_are_told_together_by_line(written: Written) -> None:
    path = written("e.toml", row(url='"nowhere"', key='""') + row(modle='"x"', model="") + "[other]\n")

    with pytest.raises(FileError) as raised:
        read_registry(path, CLIENTS)

    assert [problem.split(" ")[0] for problem in raised.value.problems] == [
        "e.toml:4:",
        "e.toml:5:",
        "e.toml:6:",
        "e.toml:9:",
        "e.toml:10:",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"[endpoint]\n{ROW}", r"e.toml:1: \[endpoint\] is one table; write \[\[endpoint\]\]"),
        ("endpoint = 3\n", r"e.toml:1: endpoint must be a table"),
        ("endpoint = [3]\n", r"e.toml:1: endpoint must be a table"),
        ("\n[[eval]]\n", r"e.toml:2: \[\[eval\]\] belongs in a suite"),
        ("[[endpoint]\n", r"e.toml:1: this is not valid TOML"),
    ],
)
def test_a_file_that_is_no_registry_says_why(written: Written, text: str, sentence: str) -> None:
    with pytest.raises(FileError, match=sentence):
        read_registry(written("e.toml", text))


# Replicas


def test_rows_with_one_name_are_replicas(written: Written) -> None:
    path = written(
        "e.toml",
        row(url='"http://localhost:1/v1"', headers='{ A = "1", B = "1" }', max_concurrent="4")
        + row(
            url='"http://localhost:2/v1"', headers='{ A = "1", B = "2" }', price="{ input = 1, output = 1 }"
        ),
    )

    both = read_registry(path).endpoints["fast"]

    assert [each.url for each in both.replicas] == ["http://localhost:1/v1", "http://localhost:2/v1"]
    assert [each.max_concurrent for each in both.replicas] == [4, None]
    assert (both.url, both.model, both.alias) == ("http://localhost:1/v1", "m", "fast")
    assert (both.headers, both.price, both.max_concurrent) == ({"A": "1"}, None, None)
    assert both.address == "http://localhost:1/v1, http://localhost:2/v1"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"model": '"other"'},
            "has the model 'other', and the one in line 1 has 'm'; replicas must share it",
        ),
        ({"type": '"openai_completions"'}, "has the client type 'openai_completions', and the one in line 1"),
    ],
)
def test_replicas_must_share_model_and_client_type(
    written: Written, fields: dict[str, str], sentence: str
) -> None:
    with pytest.raises(FileError, match=f"e.toml:5: this replica of 'fast' {sentence}"):
        read_registry(written("e.toml", row() + row(**fields)), CLIENTS)


# Where it lies


def test_no_registry_at_the_usual_place_is_fine_and_elsewhere_a_mistake(written: Written) -> None:
    written("x", "")

    assert open_registry(DEFAULT_REGISTRY) == Registry()
    with pytest.raises(ConfigError, match=r"No endpoint registry other.toml; check -e"):
        open_registry("other.toml")


def test_a_folder_means_the_registry_in_it(written: Written) -> None:
    written("mine/endpoints.toml", row())

    assert "fast" in open_registry("mine").endpoints


def test_a_registry_in_python_is_refused(written: Written) -> None:
    written("mine/endpoints.py", "ENDPOINTS = {}")

    with pytest.raises(ConfigError, match=r"endpoints.py is a Python file, .*into mine/endpoints.toml"):
        open_registry("mine/endpoints.py")


def test_a_broken_registry_is_never_passed_over(written: Written) -> None:
    written("configs/endpoints.toml", row(url='"nowhere"'))

    with pytest.raises(FileError, match=r"configs/endpoints.toml:4: 'nowhere' is not an API address"):
        resolve_endpoint(EvalConfig(env_id="echo", model="scripted"), {})


# What a name means


@pytest.fixture
def registry(written: Written) -> Registry:
    rows = (
        row(headers='{ X-A = "row", X-B = "row" }', price="{ input = 1, output = 1 }")
        + row(endpoint_id='"far"', url='"https://far.example/v1"', key='"FAR_KEY"')
        + row(endpoint_id='"two"', url='"https://one.example/v1"', key='"ONE_KEY"')
        + row(endpoint_id='"two"', url='"https://two.example/v1"', key='"TWO_KEY"')
        + row(endpoint_id='"script"', url='"steps.jsonl"', type='"scripted"')
    )
    return read_registry(written("e.toml", rows), CLIENTS)


def test_an_alias_means_what_its_row_says(registry: Registry) -> None:
    endpoint = chosen(registry, model="fast")

    assert endpoint == chosen(registry, endpoint_id="fast")
    assert (endpoint.alias, endpoint.model, endpoint.url) == ("fast", "m", "http://localhost:1/v1")
    assert endpoint.price == Price(1, 1)
    assert endpoint.request_seconds == 60


def test_a_name_that_is_not_in_the_registry_is_a_model(registry: Registry) -> None:
    assert chosen(registry, {"PRIME_API_KEY": "1"}, model="fastest").model == "fastest"
    assert chosen(registry, model="scripted").client_type == "scripted"


def test_flags_win_over_a_row_and_its_model_stays(registry: Registry) -> None:
    endpoint = chosen(
        registry,
        {"MINE": "1"},
        model="far",
        url="https://mine.example/v1/",
        key_var="MINE",
        client_type="openai_completions",
    )

    assert (endpoint.model, endpoint.alias) == ("m", "far")
    assert (endpoint.url, endpoint.key_var) == ("https://mine.example/v1", "MINE")
    assert endpoint.client_type == "openai_completions"


def test_an_address_by_hand_leaves_one_of_the_replicas(registry: Registry) -> None:
    keys = {"ONE_KEY": "1", "TWO_KEY": "2", "MINE": "3"}

    both = chosen(registry, keys, model="two", key_var="MINE", headers={"X": "1"})
    one = chosen(registry, keys, model="two", url="http://localhost:9/v1")

    assert [(each.key_var, each.headers) for each in both.replicas] == [("MINE", {"X": "1"})] * 2
    assert one.replicas == ()
    assert one.address == "http://localhost:9/v1"


def test_the_secrets_of_a_row_do_not_follow_it_to_another_host(written: Written) -> None:
    fields = {
        "url": '"https://llm.example.com/v1"',
        "key": '"ROW_KEY"',
        "headers": '{ X-Team = "blue", X-Api-Token = "hunter2" }',
    }
    registry = read_registry(written("e.toml", row(**fields)), CLIENTS)
    keys = {"ROW_KEY": "1", "OPENAI_API_KEY": "2", "MINE": "3"}

    with pytest.raises(ConfigError, match=r"No key is known for https://other.example/v1; name the variable"):
        chosen(registry, keys, model="fast", url="https://other.example/v1")
    there = chosen(registry, keys, model="fast", url="https://other.example/v1", key_var="MINE")
    known = chosen(registry, keys, model="fast", url="https://api.openai.com/v1")
    here = chosen(registry, keys, model="fast", url="http://localhost:9/v1")
    same = chosen(registry, keys, model="fast", url="https://llm.example.com/v2")

    assert (there.key_var, there.headers) == ("MINE", {"X-Team": "blue"})
    assert (known.key_var, known.headers) == ("OPENAI_API_KEY", {"X-Team": "blue"})
    assert here.key_var == same.key_var == "ROW_KEY"
    assert same.headers["X-Api-Token"] == "hunter2"


def test_replicas_of_different_prices_have_no_list_price_either(written: Written) -> None:
    priced = {"model": '"gpt-4.1-mini"', "price": "{ input = 9, output = 9 }"}
    one, other = row(**priced), row(model='"gpt-4.1-mini"')

    def tariff(rows: str) -> Price | None:
        return chosen(read_registry(written("e.toml", rows), CLIENTS), model="fast").tariff

    assert tariff(one + one) == Price(9, 9)
    assert tariff(other + other) == find_price("gpt-4.1-mini")
    assert tariff(one + other) is None


def test_answers_from_a_file_cost_nothing_whatever_the_model_is_called(registry: Registry) -> None:
    assert chosen(registry, model="gpt-4.1-mini", client_type="scripted").tariff == Price(0, 0)


def test_a_price_in_the_registry_counts_for_answers_from_a_file_too(written: Written) -> None:
    priced = row(api_client_type='"scripted"', price="{ input = 9, output = 9 }")

    registry = read_registry(written("e.toml", priced), (*CLIENTS, "scripted"))

    assert chosen(registry, model="fast").tariff == Price(9, 9)


def test_without_a_model_the_usual_one_is_looked_for_in_the_registry_too(written: Written) -> None:
    usual = row(endpoint_id='"openai/gpt-4.1-mini"', key='"MINE"')
    registry = read_registry(written("e.toml", usual), CLIENTS)

    endpoint = chosen(registry, {"OPENAI_API_KEY": "1", "MINE": "1"}, model=None)

    assert chosen(registry, {"OPENAI_API_KEY": "1"}, model=None).url == "https://api.openai.com/v1"

    assert (endpoint.url, endpoint.model) == ("http://localhost:1/v1", "m")
    assert endpoint.why == "no model was named and openai/gpt-4.1-mini is in e.toml"


def test_a_mistyped_alias_is_corrected_where_no_key_makes_it_a_model(registry: Registry) -> None:
    with pytest.raises(ConfigError, match=r"No endpoint is called 'fats' in e.toml; did you mean 'fast'\?"):
        chosen(registry, model="fats")
    with pytest.raises(ConfigError, match="No API key for model 'gpt-9'"):
        chosen(registry, model="gpt-9")


def test_a_scripted_row_reads_the_file_that_is_named_instead(registry: Registry) -> None:
    assert chosen(registry, model="script", url="other.jsonl").url == "other.jsonl"


def test_a_provider_by_hand_moves_the_row_there(registry: Registry) -> None:
    endpoint = chosen(registry, {"ANTHROPIC_API_KEY": "1"}, model="two", provider="anthropic")

    assert (endpoint.model, endpoint.url) == ("m", "https://api.anthropic.com")
    assert (endpoint.client_type, endpoint.replicas) == ("anthropic_messages", ())


@pytest.mark.parametrize(("environ", "missing"), [({}, "ONE_KEY"), ({"ONE_KEY": "1"}, "TWO_KEY")])
def test_every_replica_needs_its_key(registry: Registry, environ: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigError, match=f"{missing} is not set, and https://"):
        chosen(registry, environ, model="two")


def test_no_key_means_none_is_sent(registry: Registry) -> None:
    assert chosen(registry, model="far", key_var="").key_var is None


def test_a_key_for_this_machine_may_be_missing(written: Written) -> None:
    registry = read_registry(written("e.toml", row(key='"LOCAL_KEY"')))

    assert chosen(registry, model="fast").key({}) is None
    assert chosen(registry, {"LOCAL_KEY": "1"}, model="fast").key({"LOCAL_KEY": "1"}) == "1"


def test_headers_by_hand_win_over_those_of_the_row_whatever_their_case(registry: Registry) -> None:
    endpoint = chosen(registry, model="fast", headers={"x-b": "flag"})

    assert endpoint.headers == {"X-A": "row", "x-b": "flag"}


def test_a_scripted_row_needs_no_address(registry: Registry) -> None:
    endpoint = chosen(registry, model="script")

    assert (endpoint.client_type, endpoint.url) == ("scripted", "steps.jsonl")
    assert chosen(registry, model="far", client_type="scripted").url == ""


def test_an_endpoint_that_nobody_registered_is_a_mistake(registry: Registry) -> None:
    with pytest.raises(ConfigError, match=r"No endpoint is called 'fats' in e.toml; did you mean 'fast'\?"):
        chosen(registry, endpoint_id="fats")
    with pytest.raises(ConfigError, match=r"Endpoint 'fast' is in no registry, because there is none"):
        chosen(Registry(), endpoint_id="fast")
    with pytest.raises(ConfigError, match="endpoint_id is 'fast' and model is 'm'; give one"):
        chosen(registry, endpoint_id="fast", model="m")


# On the command line


def test_an_alias_works_from_the_command_line(
    written: Written, proctor: Callable[..., Any], provider: Callable[..., Any]
) -> None:
    server = provider("hello")
    written("configs/endpoints.toml", row(url=f'"{server.url}"', headers='{ X-Team = "blue" }'))

    ran = proctor("eval", "run", "echo", "-m", "fast", "-n", "1", "-r", "1", "--json")

    assert ran.code == 0, ran.stderr
    assert [(each.body["model"], each.headers["x-team"]) for each in server.requests] == [("m", "blue")]


def test_every_problem_of_a_registry_has_a_line_of_its_own_on_the_terminal(
    written: Written, proctor: Callable[..., Any]
) -> None:
    written("mine.toml", row(modle='"x"', key='""'))

    ran = proctor("eval", "run", "echo", "-m", "fast", "-e", "mine.toml")

    assert ran.code == 2
    assert ran.stderr.splitlines() == [
        "Error: mine.toml:5: unknown field 'modle'; did you mean 'model'?",
        "Error: mine.toml:6: 'key' is empty; leave it out for an endpoint without a key.",
    ]
