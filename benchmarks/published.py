"""An environment in a server's database, as a push leaves it, without its files."""

from __future__ import annotations

import time

from sqlalchemy import Connection

from proctor.server.db.tables import environments, versions


def publish(connection: Connection, owner: str) -> tuple[str, str]:
    now = time.time()
    connection.execute(
        environments.insert().values(
            id="env-bench",
            owner=owner,
            name="sums",
            visibility="private",
            description="",
            tags=[],
            created_at=now,
            updated_at=now,
        )
    )
    connection.execute(
        versions.insert().values(
            id="ver-bench",
            environment_id="env-bench",
            version="1.0",
            number=1,
            content_hash="0" * 64,
            wheel_name="sums-1.0-py3-none-any.whl",
            wheel_sha256="0" * 64,
            wheel_size=0,
            source_sha256="0" * 64,
            source_size=0,
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
    return "env-bench", "ver-bench"
