"""An environment on a server, without the push that usually makes it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from proctor.server.db.tables import environments
from tests.server.serving import Served

AddEnvironment = Callable[..., str]


@pytest.fixture
def add_environment(served: Served) -> AddEnvironment:
    def add(owner: str, name: str, visibility: str = "private") -> str:
        row = {
            "id": f"env-{owner}-{name}",
            "owner": owner,
            "name": name,
            "visibility": visibility,
            "description": "",
            "tags": [],
            "created_at": time.time(),
            "updated_at": time.time(),
        }
        served.platform.database.write_now(
            lambda connection: connection.execute(environments.insert().values(row))
        )
        return f"/environments/{owner}/{name}"

    return add
