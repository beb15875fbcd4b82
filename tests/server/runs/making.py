"""Runs for tests, put into a database without a hub or a host."""

from __future__ import annotations

import json
import time
from typing import Any

from sqlalchemy import Connection

from proctor.api.people import NewUser
from proctor.api.runs import Permissions
from proctor.server.db.tables import environments, versions
from proctor.server.people.records import add_user
from proctor.server.runs import records
from proctor.server.runs.records import Submission


def user(connection: Connection, name: str = "ada") -> str:
    return add_user(connection, NewUser(name=name)).name


def environment(connection: Connection, owner: str = "ada", name: str = "sums") -> tuple[str, str]:
    """An environment with one version; their ids."""
    now = time.time()
    env_id, version_id = f"env-{owner}-{name}", f"ver-{owner}-{name}"
    connection.execute(
        environments.insert().values(
            id=env_id,
            owner=owner,
            name=name,
            visibility="private",
            description="",
            tags=[],
            created_at=now,
            updated_at=now,
        )
    )
    connection.execute(
        versions.insert().values(
            id=version_id,
            environment_id=env_id,
            version="1.0",
            number=1,
            content_hash="c" * 64,
            wheel_name=f"{name}-1.0-py3-none-any.whl",
            wheel_sha256="a" * 64,
            wheel_size=1,
            source_sha256="b" * 64,
            source_size=1,
            requires_python="",
            dependencies=[],
            secrets=[],
            files=[],
            metadata_text="",
            pushed_by=owner,
            created_at=now,
            check_status="passed",
            check_message="",
            check_log="",
            check_facts={},
        )
    )
    return env_id, version_id


def run(connection: Connection, /, owner: str = "ada", *, now: float | None = None, **changes: Any) -> str:
    """A pending run of an environment that is there already."""
    asked = {
        "name": "",
        "owner": owner,
        "team": None,
        "environment_id": "env-ada-sums",
        "version_id": "ver-ada-sums",
        "environment": "ada/sums",
        "version": "1.0",
        "content_hash": "c" * 64,
        "model": "scripted",
        "settings": {},
        "permissions": Permissions(),
        "timeout_minutes": 60,
        "max_cost": None,
        **changes,
    }
    return records.add_run(connection, Submission(**asked), time.time() if now is None else now)


def row(
    task: Any, number: int = 0, *, reward: float | None = 1.0, outcome: str = "scored", **more: Any
) -> bytes:
    told = {"example_id": task, "rollout": number, "outcome": outcome, "reward": reward, **more}
    if outcome not in ("scored", "excluded") and "error" not in told:
        told["error"] = {"error": "ModelError", "message": "503"}
    return json.dumps(told).encode()
