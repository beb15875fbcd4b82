"""The files in a backup: what the database refers to, and nothing that a server makes anew.

Left out are the folders of runs and their virtual environments, logs and locks. Knows nothing of databases.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from proctor.server.backup.archive import ArchiveWriter, BackupMember
from proctor.server.identity import ID_FILE
from proctor.server.private_files import FOLDER_MODE, create_private

FOLDER = "files"
KEPT_FOLDERS = ("blobs", "uploads")
KEY_MEMBER = "secret.key"
OBJECTS_MEMBER = "objects.jsonl"


class ListedObject(NamedTuple):
    """An object that stays where it is: object stores have backups and versions of their own."""

    key: str
    size: int


def write_files(data: Path, pushed: Path, archive: ArchiveWriter) -> int:
    """Add the files of a data folder and of the folder of pushed files; returns how many. One that is deleted
    meanwhile is left out."""
    count = 0
    for file, name in list_files(data, pushed):
        try:
            opened = file.open("rb")
        except FileNotFoundError:
            continue
        with opened:
            archive.add_file(f"{FOLDER}/{name}", opened, os.fstat(opened.fileno()).st_size)
        count += 1
    return count


def list_files(data: Path, pushed: Path) -> Iterator[tuple[Path, Path]]:
    """Files and their paths in the archive."""
    if (data / ID_FILE).is_file():
        yield data / ID_FILE, Path(ID_FILE)
    for name in KEPT_FOLDERS:
        for folder, folders, files in os.walk(pushed / name):
            folders[:] = sorted(each for each in folders if each != "incoming")
            for each in sorted(files):
                yield Path(folder, each), Path(folder, each).relative_to(pushed)


def write_objects(objects: Iterable[ListedObject], archive: ArchiveWriter) -> None:
    lines = b"".join(msgspec.json.encode(each._asdict()) + b"\n" for each in objects)
    archive.add(OBJECTS_MEMBER, lines)


def read_file(member: BackupMember, target: Path) -> None:
    """Write a member to a file that does not exist yet."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    with create_private(target) as out:
        for block in member.blocks:
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
