"""Every store keeps the same promises: obstore's store in memory stands in for an S3-compatible server here,
which tests/server/storage/test_s3.py has."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from proctor.errors import ConfigError
from proctor.server.datasets import upload_parts
from proctor.server.datasets.upload_parts import PartObjects
from proctor.server.problems import ConflictError, InvalidError
from proctor.server.storage.contract import BlobStore
from proctor.server.storage.folder import FolderStore
from proctor.server.storage.local_copies import LocalCopies
from proctor.server.storage.object_store import PART_BYTES, ObjectStore, describe_failure, parse_address
from tests.server.storage.looped import in_loop


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "blobs")
    return ObjectStore(MemoryStore(), "s3://memory")


async def read_all(store: BlobStore, key: str, start: int = 0, length: int | None = None) -> bytes:
    return b"".join([block async for block in store.read(key, start, length)])


@in_loop
async def test_what_is_put_is_read_whole_in_part_and_never_after_its_removal(
    store: BlobStore, tmp_path: Path
) -> None:
    content = os.urandom(PART_BYTES + 1000)  # in two parts
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_bytes(content)
    small.write_bytes(b"later")

    await store.put("ab/abc-1", large)
    await store.put("cd/cde-1", small)

    assert await read_all(store, "ab/abc-1") == content
    assert await read_all(store, "cd/cde-1", 1, 3) == b"ate"
    assert await read_all(store, "cd/cde-1", 2) == b"ter"
    assert await store.find_size("cd/cde-1") == 5
    listed = sorted(each.key for page in [page async for page in store.list_objects()] for each in page)
    assert listed == ["ab/abc-1", "cd/cde-1"]
    await store.remove(["ab/abc-1", "ab/none"])
    assert await store.find_size("ab/abc-1") is None
    with pytest.raises(FileNotFoundError):
        await read_all(store, "ab/abc-1")
    assert await store.sign("cd/cde-1", 60) is None


@in_loop
async def test_copies_are_fetched_once_verified_and_removed_when_there_is_no_room(tmp_path: Path) -> None:
    copies = LocalCopies(tmp_path, most_bytes=10)
    fetched: list[str] = []

    async def fetch(name: str) -> AsyncIterator[bytes]:
        fetched.append(name)
        yield name.encode() * 6

    async def use(name: str) -> bytes:
        async with copies.hold(name, lambda: fetch(name)) as path:
            await asyncio.sleep(0)
            return path.read_bytes()

    assert {*await asyncio.gather(use("a"), use("a"))} == {b"aaaaaa"}
    async with copies.hold("a", lambda: fetch("a")):
        await use("b")
        assert (tmp_path / "a").exists()
    await use("c")
    assert fetched == ["a", "b", "c"]
    assert not (tmp_path / "a").exists()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10


@in_loop
async def test_the_parts_of_an_upload_may_arrive_at_different_servers(tmp_path: Path) -> None:
    store = ObjectStore(MemoryStore(), "s3://memory")
    one, two = PartObjects(store, tmp_path / "one"), PartObjects(store, tmp_path / "two")

    async def send(*chunks: bytes, breaks: bool = False) -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
        if breaks:
            raise ConnectionResetError

    await one.append("upload-1", 0, 12, send(b"first "))
    with pytest.raises(ConnectionResetError):
        await two.append("upload-1", 6, 12, send(b"sec", breaks=True))
    with pytest.raises(ConflictError, match="9 bytes have arrived"):
        await one.append("upload-1", 6, 12, send(b"second"))
    with pytest.raises(InvalidError, match="and this is more"):
        await one.append("upload-1", 9, 12, send(b"ond and more"))
    await one.append("upload-1", 9, 12, send(b"ond"))

    assert await two.received("upload-1") == 12
    async with two.whole("upload-1") as file:
        assert file.read_bytes() == b"first second"
    await two.remove("upload-1")
    assert await one.received("upload-1") == 0
    assert [*(tmp_path / "one").iterdir(), *(tmp_path / "two").iterdir()] == []


@in_loop
async def test_an_upload_has_a_bounded_number_of_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_parts, "MOST_PARTS", 3)
    parts = PartObjects(ObjectStore(MemoryStore(), "s3://memory"), tmp_path)

    async def send() -> AsyncIterator[bytes]:
        yield b"x"

    for offset in range(3):
        await parts.append("upload-1", offset, 10, send())
    with pytest.raises(ConflictError, match="send larger ones"):
        await parts.append("upload-1", 3, 10, send())


@pytest.mark.parametrize("address", ["s3:/bucket", "gs://bucket", "s3://", "/srv/files", "s3://bucket?x=1"])
def test_an_address_that_names_no_bucket_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"--storage takes `folder` or s3://BUCKET/PREFIX"):
        parse_address(address)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("404 <Code>NoSuchBucket</Code>", "no bucket 'results'"),
        ("<Code>SignatureDoesNotMatch</Code>", "check AWS_ACCESS_KEY_ID"),
        ("507 Insufficient Storage", "is full"),
        ("non-2xx status code: 500 Internal Server Error", "fails with an error of its own"),
        ("error sending request", "does not answer"),
    ],
)
def test_a_store_that_fails_is_explained_in_one_sentence(said: str, told: str) -> None:
    sentence = describe_failure("s3://results/proctor", said)
    assert told in sentence
    assert sentence.count(". ") == 0
