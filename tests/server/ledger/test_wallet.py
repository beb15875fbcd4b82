"""`proctor wallet`, against a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from proctor.cli.commands.wallet import wallet_group
from proctor.client.connection import ServerError
from tests.server.serving import Api, Served, serving, settings_in

PRICED = """
[[endpoint]]
endpoint_id = "qwen"
model = "qwen/qwen3-8b"
url = "http://127.0.0.1:9/v1"
price = { input = 0.1, output = 0.4 }
"""


def wallet(api: Api, *words: str) -> str:
    variables = {"PROCTOR_API_URL": api.url, "PROCTOR_API_KEY": api.token}
    return CliRunner().invoke(wallet_group, list(words), env=variables, catch_exceptions=False).output


def test_one_sees_what_one_has_after_a_grant(served: Served) -> None:
    ada = served.user("ada")

    assert wallet(ada) == "ada: no limit, $0.00 spent so far.\n"
    assert wallet(served.root, "grant", "ada", "12.5", "--note", "welcome").startswith(
        "ada: $12.50 available"
    )
    assert wallet(served.root, "grant", "ada", "-2.5").startswith("ada: $10.00 available")
    assert json.loads(wallet(ada, "--json"))["available_usd"] == 10.0
    with pytest.raises(ServerError, match="admin"):
        wallet(ada, "grant", "ada", "5")


def test_use_and_prices_are_told(served: Served) -> None:
    assert wallet(served.root, "usage") == "No requests.\n"
    assert json.loads(wallet(served.root, "usage", "--days", "1", "--json")) == []
    assert "big/one costs 1 / 5 dollars" in wallet(served.root, "price", "big/one", "1", "5")
    assert isinstance(json.loads(wallet(served.root, "prices", "--json")), list)


def test_an_admin_learns_that_the_registrys_price_stays_above_the_one_they_set(tmp_path: Path) -> None:
    (tmp_path / "endpoints.toml").write_text(PRICED)
    with serving(settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml")) as served:
        said = wallet(served.root, "price", "qwen", "1", "5")

        assert "Saved, but without effect: qwen costs 0.1 / 0.4 dollars per million tokens." in said
        assert "the server's endpoint registry has a price for qwen, which takes precedence" in said
        [price] = served.root.get("/prices")["items"]
        assert price["overridden_by"]["input_usd_per_million"] == 0.1
        assert "without effect" in wallet(served.root, "price", "qwen/qwen3-8b", "1", "5")
