"""An S3-compatible object store as the store of files, through obstore.

Its errors are translated here, each to a sentence that says what to do. A store that is away for some seconds
delays requests; one that stays away, or is silent, fails them within half a minute. Knows nothing of what the
files are.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from proctor.errors import ConfigError
from proctor.server.storage.contract import StorageAwayError, StoredObject
from proctor.support.byte_blocks import BLOCK_BYTES
from proctor.support.logs import log

if TYPE_CHECKING:
    from obstore.store import LocalStore, MemoryStore, S3Store

    AnyStore = S3Store | MemoryStore | LocalStore

PART_BYTES = 8 * 2**20
PARTS_AT_ONCE = 4
"""Of one upload: so many parts of it are in memory."""
CONNECT_SECONDS = 5
SILENT_SECONDS = 10
"""A request fails that gets no byte for this long; a part must be sent within it."""
RETRY_SECONDS = 20
"""For how long a failed request is sent again."""
LONGEST = timedelta(days=1)
"""Of one download: obstore's own limit is half a minute."""
OCTETS = "application/octet-stream"
SERVER_ERROR = re.compile(r"status code: 5\d\d")
NO_BUCKET = "NoSuchBucket"
FULL_WORDS = ("InsufficientStorage", "StorageFull", "QuotaExceeded", "507 ", "No space", "no free volumes")
REFUSED_WORDS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "403 ", "401 ")


class ObjectStore:
    """Objects in a bucket, below a prefix."""

    def __init__(self, store: AnyStore, address: str, signer: S3Store | None = None) -> None:
        self.address = address
        self._store = store
        self._signer = signer
        """Signs for the address by which clients reach the store; None: they do not."""

    def path(self, key: str) -> Path | None:  # noqa: ARG002
        return None

    async def put(self, key: str, file: Path) -> None:
        with self._boundary():
            await self._store.put_async(
                key,
                file,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE,
                attributes={"Content-Type": OCTETS, "Content-Disposition": "attachment"},
            )
        size = file.stat().st_size
        if (stored := await self.find_size(key)) != size:
            raise StorageAwayError(f"{self.address} kept {stored} of {size:,} bytes; try again.")

    async def read(self, key: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes, None]:
        options: Any = {}
        if length is not None:
            options = {"range": (start, start + length)}
        elif start:
            options = {"range": {"offset": start}}
        with self._boundary():
            found = await self._store.get_async(key, options=options)
            async for block in found.stream(BLOCK_BYTES):
                yield bytes(block)

    async def find_size(self, key: str) -> int | None:
        try:
            with self._boundary():
                return int((await self._store.head_async(key))["size"])
        except FileNotFoundError:
            return None

    async def remove(self, keys: Sequence[str]) -> None:
        if keys:
            with self._boundary():
                await self._store.delete_async(list(keys))

    async def list_objects(self, folder: str = "") -> AsyncIterator[list[StoredObject]]:
        with self._boundary():
            async for found in self._store.list(folder or None):
                yield [
                    StoredObject(each["path"], each["size"], each["last_modified"].timestamp())
                    for each in found
                ]

    async def sign(self, key: str, seconds: float) -> str | None:
        if self._signer is None:
            return None
        import obstore

        with self._boundary():
            return await obstore.sign_async(self._signer, "GET", key, timedelta(seconds=seconds))

    def read_marker(self, name: str) -> bytes | None:
        """A small object, read at the server's start; None if there is none. Blocks."""
        try:
            with self._boundary():
                return bytes(self._store.get(name).bytes())
        except FileNotFoundError:
            return None

    def write_marker(self, name: str, content: bytes) -> None:
        """Blocks."""
        with self._boundary():
            self._store.put(name, content)

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError as error:
            if NO_BUCKET not in str(error):
                raise
            raise StorageAwayError(describe_failure(self.address, NO_BUCKET)) from error
        except BaseError as error:
            log.warning("%s: %s", self.address, str(error).partition("\n")[0])
            raise StorageAwayError(describe_failure(self.address, str(error))) from error


def describe_failure(address: str, said: str) -> str:
    """One sentence: what is wrong with the store, and what to do."""
    bucket = urlsplit(address).netloc
    if any(word in said for word in FULL_WORDS):
        return f"The object store {address} is full; make room there, then try again."
    if NO_BUCKET in said:
        return f"The object store has no bucket {bucket!r}; create it, or name another with --storage."
    if any(word in said for word in REFUSED_WORDS):
        return (
            f"The object store refuses {address}; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and "
            f"that they may list, read, write and delete in the bucket {bucket!r}."
        )
    if SERVER_ERROR.search(said):
        return f"The object store of {address} fails with an error of its own, as full ones do; see its log."
    return (
        f"The object store of {address} does not answer; check AWS_ENDPOINT_URL and AWS_REGION, and try "
        f"again."
    )


def open_object_store(
    address: str,
    environ: Mapping[str, str],
    *,
    public_endpoint: str | None = None,
    signs: bool = False,
    retry_seconds: float = RETRY_SECONDS,
) -> ObjectStore:
    """The store at `s3://bucket/prefix`; its endpoint, region and credentials are in the usual variables."""
    try:
        import obstore.store  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "An object store needs a package that is not installed (obstore); install it with: "
            "pip install 'proctor[s3]'"
        ) from error
    bucket, prefix = parse_address(address)
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    signer = create_s3(bucket, prefix, public_endpoint or endpoint) if signs else None
    return ObjectStore(create_s3(bucket, prefix, endpoint, retry_seconds), address, signer)


def parse_address(address: str) -> tuple[str, str]:
    """The bucket and the prefix."""
    parts = urlsplit(address)
    if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"--storage takes `folder` or s3://BUCKET/PREFIX, not {address!r}; the endpoint and the "
            f"credentials are read from AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    return parts.netloc, parts.path.strip("/")


def create_s3(
    bucket: str, prefix: str, endpoint: str | None, retry_seconds: float = RETRY_SECONDS
) -> S3Store:
    from obstore.store import S3Store

    config: dict[str, Any] = {"checksum_algorithm": "SHA256"}
    if endpoint is not None:
        config["endpoint"] = endpoint.rstrip("/")
    return S3Store(
        bucket,
        prefix=prefix or None,
        config=config,  # type: ignore[arg-type]
        client_options={
            "allow_http": endpoint is not None and endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
            "read_timeout": timedelta(seconds=SILENT_SECONDS),
            "timeout": LONGEST,
        },
        retry_config={
            "max_retries": 1_000,  # the time decides
            "retry_timeout": timedelta(seconds=retry_seconds),
            "backoff": {
                "init_backoff": timedelta(milliseconds=200),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
    )
