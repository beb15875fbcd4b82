"""`proctor wallet`, against a real server."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from proctor.cli.commands.wallet import wallet_group
from proctor.client.connection import ServerError
from tests.server.serving import Api, Served


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
