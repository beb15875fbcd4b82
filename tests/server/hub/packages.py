"""Wheels and sources for tests: honest ones, and such as are made to do harm."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import secrets
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proctor.packages.archive import ArchiveError, hash_archives, pack, tar_files
from tests.server.serving import Answer, Api

MODULE = '"""Says hello."""\n\n\ndef load_environment():\n    return None\n'
Files = Mapping[str, bytes]


class Made(NamedTuple):
    wheel_name: str
    wheel: bytes
    source: bytes
    content_hash: str


def made(
    folder: Path,
    name: str = "greet",
    version: str = "0.1.0",
    *,
    module: str = MODULE,
    project: str = "",
    more: Files | None = None,
    needs: str = "",
    wheel: Callable[[Path], None] | None = None,
    source: Callable[[Path], None] | None = None,
) -> Made:
    """A package; `wheel` and `source` may do something to its files before they are sent."""
    folder.mkdir(parents=True, exist_ok=True)
    under = name.replace("-", "_")
    built = folder / f"{under}-{version}-py3-none-any.whl"
    packed = folder / f"{under}-{version}.tar.gz"
    write_wheel(built, under, version, {f"{under}.py": module.encode()}, needs=needs)
    declared = f'dependencies = ["{needs}"]\n' if needs else ""
    text = f'[project]\nname = "{name}"\nversion = "{version}"\n{declared}{project}'
    files = {"pyproject.toml": text.encode(), f"{under}.py": module.encode(), **(more or {})}
    pack(((path, content, False) for path, content in files.items()), packed)
    for path, harm in ((built, wheel), (packed, source)):
        if harm is not None:
            harm(path)
    return Made(built.name, built.read_bytes(), packed.read_bytes(), hashed(packed, built))


def hashed(source: Path, wheel: Path) -> str:
    try:
        return hash_archives(source, wheel)
    except ArchiveError:
        return "0" * 64


def write_wheel(path: Path, name: str, version: str, files: Files, *, needs: str = "", **words: str) -> None:
    info = f"{name}-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: {words.get('said_name', name)}\n"
        f"Version: {words.get('said_version', version)}\nSummary: Says hello.\n"
        f"Requires-Python: >=3.10\nKeywords: hello,small\n"
    )
    metadata += f"Requires-Dist: {needs}\n" if needs else ""
    metadata += f"\n{words['readme']}\n" if "readme" in words else ""
    content = {
        **files,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{each},sha256={record_hash(data)},{len(data)}" for each, data in content.items()]
    record = "\n".join([*lines, f"{info}/RECORD,,", ""])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for each, data in content.items():
            file.writestr(each, data)
        file.writestr(f"{info}/RECORD", words.get("record", record))


def record_hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def add_to_zip(name: str, data: bytes = b"x", mode: int = 0o100644) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, data)

    return harm


def add_to_tar(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 1
) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        held = {member.path: content.read() for member, content in tar_files(path)}
        with tarfile.open(path, "w:gz") as tar:
            for each, data in held.items():
                entry = tarfile.TarInfo(each)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, link
            entry.size = size if kind == tarfile.REGTYPE else 0
            tar.addfile(entry, Zeros(entry.size))

    return harm


class Zeros(io.RawIOBase):
    """So many zeros, without the memory."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        given = min(self.left, size if size >= 0 else self.left)
        self.left -= given
        return bytes(given)


def push(api: Api, package: Made, *, key: str | None = None, **form: Any) -> Answer:
    """A push as any HTTP client can make it."""
    boundary = secrets.token_hex(8)
    fields = {"content_hash": package.content_hash, **form}
    parts = [
        ("form", "", json.dumps(fields).encode()),
        ("wheel", package.wheel_name, package.wheel),
        ("source", "source.tar.gz", package.source),
    ]
    body = b"".join(part(boundary, *each) for each in parts) + f"--{boundary}--\r\n".encode()
    headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
    return api(
        "POST", "/environments", data=body, headers=headers | ({"Idempotency-Key": key} if key else {})
    )


def part(boundary: str, name: str, file_name: str, content: bytes) -> bytes:
    named = f'; filename="{file_name}"' if file_name else ""
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + content + b"\r\n"
