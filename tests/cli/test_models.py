"""`proctor models list`: what can be asked by name, and not one key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Ran

    Run = Callable[..., Ran]

SECRET = "sk-swordfish"
REGISTRY = """
[[endpoint]]
endpoint_id = "mini"
model = "gpt-4.1-mini"
url = "https://api.openai.com/v1"
key = "OPENAI_API_KEY"

[[endpoint]]
endpoint_id = "claude"
model = "claude-sonnet-4-5-20250929"
url = "https://api.anthropic.com"
key = "SOME_OTHER_KEY"
type = "anthropic_messages"

[[endpoint]]
endpoint_id = "fast"
model = "qwen3-8b"
url = "http://127.0.0.1:8001/v1"
price = { input = 0.1, output = 0.4 }
max_concurrent = 64
requests_per_minute = 600

[[endpoint]]
endpoint_id = "fast"
model = "qwen3-8b"
url = "http://127.0.0.1:8002/v1"
"""


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    path = tmp_path / "configs" / "endpoints.toml"
    path.write_text(REGISTRY)
    return path


def listed(ran: Ran) -> dict[str, Any]:
    assert ran.code == 0, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def test_every_alias_is_shown_with_its_place_price_and_limits(proctor: Run, registry: Path) -> None:
    listing = listed(proctor("models", "list", "--json", environ={"OPENAI_API_KEY": SECRET}))

    mini, claude, fast = listing["endpoints"]
    assert (mini["alias"], mini["model"]) == ("mini", "gpt-4.1-mini")
    assert mini["replicas"] == [
        {
            "address": "https://api.openai.com/v1",
            "key": {"variable": "OPENAI_API_KEY", "is_set": True, "is_needed": True},
            "price": {"input": 0.4, "output": 1.6, "cached": 0.1, "source": "list"},
            "limits": {},
        }
    ]
    assert claude["client_type"] == "anthropic_messages"
    assert claude["replicas"][0]["key"] == {"variable": "SOME_OTHER_KEY", "is_set": False, "is_needed": True}
    assert claude["replicas"][0]["price"]["input"] == 3.0
    first, second = fast["replicas"]
    assert first["limits"] == {"max_concurrent": 64, "requests_per_minute": 600}
    assert first["price"]["source"] == "registry"
    assert (second["address"], second["price"], second["key"]) == ("http://127.0.0.1:8002/v1", None, None)


def test_the_table_says_the_same_for_people(proctor: Run, registry: Path) -> None:
    ran = proctor("models", "list", environ={"OPENAI_API_KEY": SECRET, "COLUMNS": "200"})

    lines = ran.stdout.splitlines()
    assert lines[0] == "Endpoints of configs/endpoints.toml"
    mini = next(line for line in lines if line.startswith("  mini"))
    assert "0.4 / 1.6*" in mini
    assert mini.endswith("OPENAI_API_KEY is set")
    assert sum(line.startswith("  fast") for line in lines) == 2
    assert "64 at once, 600 requests/min" in ran.stdout
    assert "SOME_OTHER_KEY is missing" in ran.stdout


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_key_is_never_shown(proctor: Run, registry: Path, words: list[str]) -> None:
    ran = proctor("models", "list", *words, environ={"OPENAI_API_KEY": SECRET, "SOME_OTHER_KEY": SECRET})

    assert ran.code == 0
    assert SECRET not in ran.stdout + ran.stderr


def test_without_a_registry_there_are_still_the_providers(proctor: Run) -> None:
    listing = listed(proctor("models", "list", "--json", environ={"ANTHROPIC_API_KEY": SECRET}))

    assert (listing["registry"], listing["endpoints"]) == (None, [])
    providers = {each["name"]: each for each in listing["providers"]}
    assert {"prime", "openai", "anthropic", "gemini", "openrouter", "deepseek", "vllm"} <= providers.keys()
    assert providers["anthropic"]["keys"][0]["is_set"] is True
    assert providers["openai"]["keys"][0]["is_set"] is False
    assert "No endpoint registry" in proctor("models", "list").stdout


@pytest.mark.parametrize(
    ("variable", "model"), [("OPENAI_API_KEY", "gpt-4.1-mini"), ("OPENROUTER_API_KEY", "openai/gpt-4.1-mini")]
)
def test_it_tells_who_answers_when_nobody_is_named(proctor: Run, variable: str, model: str) -> None:
    assert listed(proctor("models", "list", "--json"))["without_a_name"]["model"] == "local"

    nobody = listed(proctor("models", "list", "--json", environ={variable: SECRET}))["without_a_name"]

    assert nobody["model"] == model
    assert variable in nobody["why"]
    assert nobody["price"]["input"] == 0.4


def test_on_a_narrow_screen_every_cell_has_a_line(proctor: Run, registry: Path) -> None:
    lines = proctor("models", "list", environ={"COLUMNS": "80"}).stdout.splitlines()

    assert "  claude" in lines
    assert "    model     claude-sonnet-4-5-20250929" in lines
    assert all(len(line) <= 80 for line in lines if line.startswith("  "))


def test_another_registry_is_named_with_e_and_its_mistakes_with_their_lines(
    proctor: Run, tmp_path: Path
) -> None:
    other = tmp_path / "other.toml"
    other.write_text('[[endpoint]]\nendpoint_id = "a"\nmodle = "b"\n')

    ran = proctor("models", "list", "-e", "other.toml")

    assert ran.code == 2
    assert "other.toml:3" in ran.stderr
    assert "No endpoint registry nowhere.toml" in proctor("models", "list", "-e", "nowhere.toml").stderr
