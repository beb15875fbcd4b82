"""Write down a new migration when it lands: `python -m tests.server.db.write_schemas`.

For every numbered schema that has none yet, writes a database of that schema with rows to `schemas/`, as SQL,
and adds the migration's hash to `schemas/SHA256SUMS`. What is written there is never written again: it stands
for the databases that servers out there have.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from pathlib import Path

from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, LargeBinary, MetaData, create_engine, insert, select

from proctor.server.db.database import sqlite_url
from proctor.server.db.migrate import MIGRATIONS_FOLDER, build_alembic_config
from proctor.server.db.tables import (
    announcements,
    attempt_secrets,
    browser_sessions,
    commit_marks,
    dataset_uploads,
    dataset_versions,
    datasets,
    event_segments,
    leases,
    login_codes,
    reservations,
    run_comments,
    run_datasets,
    run_labels,
    run_links,
    run_origins,
    run_segments,
    sandboxes,
    servers,
    source_builds,
    source_commits,
    source_syncs,
    sources,
    tokens,
    version_tasks,
    versions,
)
from tests.server.db.filling import REGISTRY, fill
from tests.server.serving import serving, settings_in

SCHEMAS = Path(__file__).parent / "schemas"
SUMS = SCHEMAS / "SHA256SUMS"
VERSIONS = MIGRATIONS_FOLDER / "versions"


def migration_files() -> dict[str, Path]:
    """The file of each revision, the oldest first."""
    scripts = ScriptDirectory(str(MIGRATIONS_FOLDER)).walk_revisions()
    return {script.revision: Path(script.path) for script in reversed(list(scripts))}


def read_sums() -> dict[str, str]:
    """The hash of each migration that has landed, by its file's name."""
    lines = SUMS.read_text().splitlines() if SUMS.exists() else []
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def upgrade_to(connection: Connection, revision: str) -> None:
    command.upgrade(build_alembic_config(connection), revision)


def copy_rows(source: Connection, target: Connection) -> None:
    """The rows of one schema in the tables of another, as far as that one has them."""
    old, new = MetaData(), MetaData()
    old.reflect(source)
    new.reflect(target)
    for table in new.sorted_tables:
        if table.name == "alembic_version" or table.name not in old.tables:
            continue
        for row in source.execute(select(old.tables[table.name])).mappings():
            given = {name: value for name, value in row.items() if value is not None}
            values = {column.name: given[column.name] for column in table.c if column.name in given}
            lost = [column for column in table.c if column.name not in row and not column.nullable]
            values |= {column.name: b"" for column in lost if isinstance(column.type, LargeBinary)}
            target.execute(insert(table).values(values))


def add_internal_rows(connection: Connection, run_id: str) -> None:
    """What only the server itself and its hosts write."""
    version = connection.execute(select(versions.c.id)).scalars().first()
    connection.execute(insert(version_tasks).values(version_id=version, place=0, slug="sum", task=b"{}"))
    connection.execute(
        insert(run_links).values(run_id=run_id, link_hash=b"hash", sealed=b"sealed", created_at=1.0)
    )
    add_dataset(connection, run_id)
    connection.execute(insert(commit_marks).values(id="connection-1", number=1, at=1.0))
    connection.execute(insert(attempt_secrets).values(run_id=run_id, attempt=1, sealed=b"sealed"))
    connection.execute(
        insert(reservations).values(
            id="res-1", owner="ada", run_id=run_id, amount=7, holder="server-1", expires_at=1.0
        )
    )
    connection.execute(
        insert(sandboxes).values(
            id="box-1",
            kind="sandbox",
            owner="ada",
            run_id=run_id,
            server="server-1",
            backend="bubblewrap",
            status="ended",
            message="It was deleted.",
            spec={},
            created_at=1.0,
            expires_at=2.0,
            ended_at=1.5,
        )
    )
    add_repository_rows(connection, run_id)
    add_browser_rows(connection)
    add_server_rows(connection)
    label = {"task": "0", "number": 0, "person": "ada", "score": 1.0, "note": "right", "at": 1.0}
    connection.execute(insert(run_labels).values(run_id=run_id, **label))
    connection.execute(insert(run_segments).values(run_id=run_id, number=1, sha256="d" * 64, size=9))
    segment = {"first_seq": 1_000_001, "last_seq": 1_000_009, "sha256": "e" * 64, "size": 9}
    connection.execute(insert(event_segments).values(run_id=run_id, **segment))
    comment = {"id": "comment-1", "author": "ada", "text": "why?", "created_at": 1.0}
    connection.execute(insert(run_comments).values(run_id=run_id, task_key="0" * 16, number=0, **comment))


def add_server_rows(connection: Connection) -> None:
    times = {"started_at": 1.0, "seen_at": 2.0}
    named = {"id": "process-1", "server": "server-1", "url": "http://a", "version": "0.1.0"}
    connection.execute(insert(servers).values(**named, **times))
    lease = {"holder": "server-1", "term": 1, "until": 1.0, "is_wanted": False}
    connection.execute(insert(leases).values(name="sweep", **lease))
    told = {"kind": "source", "subject": "src-1", "audience": {}}
    connection.execute(insert(announcements).values(id="news-1", at=1.0, **told))


def add_browser_rows(connection: Connection) -> None:
    token = connection.execute(select(tokens.c.id)).scalars().first()
    times = {"token_id": token, "created_at": 1.0, "expires_at": 2.0}
    connection.execute(insert(browser_sessions).values(id="session-1", secret_hash=b"hash", **times))
    connection.execute(insert(login_codes).values(code_hash=b"hash", **times))


def add_repository_rows(connection: Connection, run_id: str) -> None:
    version = connection.execute(select(versions.c.id)).scalars().first()
    fetched = {"branch": "main", "commit_sha": "c0ffee", "author": "Ada", "subject": "Begin"}
    where = {"owner": "ada", "name": "agents", "url": "file:///srv/agents", "repository": "/srv/agents"}
    more = {
        "rollouts": ["math"],
        "problem": "",
        "known_hosts": "",
        "has_credentials": False,
        "created_at": 1.0,
    }
    connection.execute(insert(sources).values(id="src-1", sealed=b"sealed", **where, **fetched, **more))
    held = {"author": "Ada", "subject": "Begin", "committed_at": 1.0, "rollouts": ["math"], "recipes": []}
    connection.execute(
        insert(source_commits).values(source_id="src-1", commit_sha="c0ffee", fetched_at=1.0, **held)
    )
    sync = {"cause": "ada", "branch": "main", "status": "done", "log": [], "commit_sha": "c0ffee"}
    connection.execute(
        insert(source_syncs).values(id="sync-1", source_id="src-1", started_at=1.0, ended_at=2.0, **sync)
    )
    built = {"commit_sha": "c0ffee", "author": "Ada", "subject": "Begin", "files": ["main.py"]}
    connection.execute(
        insert(source_builds).values(source_id="src-1", rollout="math", version_id=version, **built)
    )
    origin = {"source": "ada/agents", "repository": "/srv/agents", "rollout": "math", "entrypoint": "main.py"}
    values = {"commit_sha": "c0ffee", "branch": "main", "config_hash": "abc", "recipe": {}}
    dataset = {"owner": "ada", "name": "sums", "format": "jsonl", "sha256": "0" * 64, "selected_rows": 4}
    connection.execute(insert(run_origins).values(run_id=run_id, dataset=dataset, **origin, **values))


def add_dataset(connection: Connection, run_id: str) -> None:
    named = {"owner": "ada", "name": "sums", "visibility": "private", "description": ""}
    times = {"created_at": 1.0, "updated_at": 1.0}
    connection.execute(insert(datasets).values(id="data-1", **named, **times))
    connection.execute(
        insert(dataset_versions).values(
            id="content-1",
            dataset_id="data-1",
            number=1,
            sha256="0" * 64,
            size=1,
            format="jsonl",
            rows=1,
            columns=["user_prompt"],
            pushed_by="ada",
            created_at=1.0,
            pushed_at=1.0,
        )
    )
    connection.execute(insert(run_datasets).values(run_id=run_id, version_id="content-1"))
    upload = {"person": "ada", "owner": "ada", "name": "more", "format": "jsonl", "size": 9}
    connection.execute(
        insert(dataset_uploads).values(id="upload-1", created_at=1.0, touched_at=1.0, **upload)
    )


def write_schema(revision: str, filled: Path, folder: Path) -> None:
    file = folder / f"{revision}.db"
    source, target = create_engine(sqlite_url(filled)), create_engine(sqlite_url(file))
    with source.connect() as old, target.begin() as new:
        upgrade_to(new, revision)
        copy_rows(old, new)
    database = sqlite3.connect(file)
    (SCHEMAS / f"{revision}.sql").write_text("\n".join(database.iterdump()) + "\n")
    database.close()


def main() -> None:
    SCHEMAS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "endpoints.toml").write_text(REGISTRY)
        settings = settings_in(folder, endpoints=folder / "endpoints.toml", default_balance_usd=1.0)
        with serving(settings) as server:
            filled = fill(server.root, folder / "package")
            server.platform.database.write_now(add_internal_rows, filled.hosted)
        sums = read_sums()
        for revision, path in migration_files().items():
            if not (SCHEMAS / f"{revision}.sql").exists():
                write_schema(revision, settings.data / "proctor.db", folder)
            sums.setdefault(path.name, hash_file(path))
    SUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))


if __name__ == "__main__":
    main()
