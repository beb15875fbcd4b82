"""Datasets from a client's side: pushed and fetched in blocks, cached by hash, verified."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from proctor.client import datasets
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context
from proctor.client.datasets import DatasetUpload
from proctor.datasets.cache import DatasetCache
from proctor.datasets.references import DatasetReference
from proctor.errors import ConfigError
from tests.server.datasets.pushing import OTHER_ROWS, ROWS, push_rows, sha256_of
from tests.server.serving import Api, Served, kept_file, serving, settings_in

T = TypeVar("T")
SUMS = DatasetReference("ada", "sums")


def call(api: Api, work: Callable[[ServerConnection], Awaitable[T]], team: str | None = None) -> T:
    async def main() -> T:
        context = Context(url=api.url, token=api.token, team=team)
        async with ServerConnection(context, tries=2) as server:
            return await work(server)

    return asyncio.run(main())


def upload_of(path: Path, data: bytes, sha256: str | None = None) -> DatasetUpload:
    path.write_bytes(data)
    return DatasetUpload(path=path, sha256=sha256 or sha256_of(data), format="jsonl", columns=("a", "b\n"))


def test_what_was_pushed_comes_back_and_is_fetched_from_the_cache_the_next_time(
    served: Served, tmp_path: Path
) -> None:
    ada = served.user("ada")
    data = ROWS * 50_000
    upload = upload_of(tmp_path / "sums.jsonl", data)
    cache = DatasetCache(tmp_path / "cache")

    pushed = call(ada, lambda server: datasets.push_dataset(server, "ada", "sums", upload))
    version, path = call(ada, lambda server: datasets.fetch(server, SUMS, cache))

    assert (pushed.created, pushed.version.columns) == (True, ["a"])
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, cache.folder)} == {0o700}
    before = path.stat().st_mtime_ns
    assert call(ada, lambda server: datasets.fetch(server, SUMS, cache)) == (version, path)
    assert path.stat().st_mtime_ns == before


def test_a_cached_file_that_was_changed_is_fetched_again(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    push_rows(ada, "ada", "sums", ROWS)
    cache = DatasetCache(tmp_path / "cache")
    _, path = call(ada, lambda server: datasets.fetch(server, SUMS, cache))
    path.write_bytes(OTHER_ROWS)

    call(ada, lambda server: datasets.fetch(server, SUMS, cache))

    assert path.read_bytes() == ROWS


def test_a_version_that_is_damaged_on_the_server_is_not_kept(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "FIRST_PAUSE_SECONDS", 0.0)
    ada = served.user("ada")
    push_rows(ada, "ada", "sums", ROWS)
    kept_file(served, sha256_of(ROWS)).write_bytes(ROWS.replace(b"4", b"5"))
    cache = DatasetCache(tmp_path / "cache")

    with pytest.raises(ServerError, match=r"The file [0-9a-f]{12}… is damaged in the store"):
        call(ada, lambda server: datasets.fetch(server, SUMS, cache))

    assert [path for path in cache.folder.rglob("*") if path.is_file()] == []


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, largest_dataset=2**20)) as served:
        ada = served.user("ada")
        path = tmp_path / "sums.jsonl"
        with path.open("wb") as file:
            file.truncate(2**30)
        upload = DatasetUpload(path=path, sha256="0" * 64, format="jsonl")
        sent: list[int] = []

        async def count_sent(server: ServerConnection) -> None:
            original = datasets.read_blocks

            async def counting(*args: object) -> object:
                async for block in original(*args):  # type: ignore[arg-type]
                    sent.append(len(block))
                    yield block

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(datasets, "read_blocks", counting)
                await datasets.push_dataset(server, "ada", "sums", upload)

        with pytest.raises(ServerError, match="at most 1 MB"):
            call(ada, count_sent)
        assert sent == []


def test_a_file_that_changes_while_it_is_sent_is_refused(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    upload = upload_of(tmp_path / "sums.jsonl", ROWS, sha256_of(OTHER_ROWS))

    with pytest.raises(ServerError, match="was it changed") as caught:
        call(ada, lambda server: datasets.push_dataset(server, "ada", "sums", upload))

    assert caught.value.code == "content_mismatch"


def test_a_bare_name_is_mine_before_my_teams_and_two_teams_are_ambiguous(served: Served) -> None:
    ada = served.user("ada")
    for team in ("robots", "sailors"):
        ada.post("/teams", {"name": team})
        push_rows(ada, team, "sums", ROWS)

    with pytest.raises(ConfigError, match="robots/sums, sailors/sums"):
        call(ada, lambda server: datasets.find_own(server, "sums"))
    in_use = call(ada, lambda server: datasets.find_own(server, "sums"), team="sailors")
    push_rows(ada, "ada", "sums", ROWS)
    mine = call(ada, lambda server: datasets.find_own(server, "sums"), team="sailors")

    assert (str(in_use), str(mine)) == ("sailors/sums", "ada/sums")
    assert call(ada, lambda server: datasets.find_own(server, "none")) is None
    assert call(served.user("eve"), lambda server: datasets.find_own(server, "sums")) is None
