"""What is said of the address of a database that cannot be used."""

from __future__ import annotations

import pytest

from proctor.errors import ConfigError
from proctor.server.db.database import Database


@pytest.mark.parametrize(
    "address",
    [
        "postgresql//proctor:hunter2@db/proctor",
        "postgresql://proctor:p@ss:hunter2@db/proctor",
        "unknown://proctor:hunter2@db/proctor",
        "hunter2",
    ],
)
def test_the_password_in_an_address_that_cannot_be_read_is_not_shown(address: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Database(address)

    assert "postgresql://" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None
