"""What an archive may hold, what a folder's source is, and how a version is raised."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from proctor.errors import ConfigError
from proctor.packages.archive import ArchiveError, ArchiveLimits, pack, tar_files, unpack, zip_files
from proctor.packages.source_files import source_files
from proctor.packages.versioning import bump_version, with_version
from proctor.server.identity import ID_FILE
from proctor.server.secrets.vault import KEY_FILE
from tests.server.hub.packages import add_to_tar, made


def tree(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    files = [("b", b"2", False), ("a", b"1", True)]
    for name, order in (("one", files), ("two", files[::-1])):
        pack(order, tmp_path / name)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    [first, _] = unpack(tmp_path / "one", tmp_path / "out")
    assert (first.name, first.stat().st_mode & 0o777) == ("a", 0o755)


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside"])
def test_nothing_is_unpacked_outside(tmp_path: Path, name: str) -> None:
    pack([("inside", b"x", False)], tmp_path / "source")
    add_to_tar(name)(tmp_path / "source")

    with pytest.raises(ArchiveError, match="is not a valid path"):
        unpack(tmp_path / "source", tmp_path / "deep" / "out")

    assert [path.name for path in (tmp_path / "deep").rglob("*")] == ["out", "inside"]


def test_links_are_not_followed_because_there_are_none(tmp_path: Path) -> None:
    pack([("inside", b"x", False)], tmp_path / "source")
    add_to_tar("inside/link", tarfile.SYMTYPE, "/etc")(tmp_path / "source")

    with pytest.raises(ArchiveError, match="links and devices are refused"):
        unpack(tmp_path / "source", tmp_path / "out")


def test_a_header_cannot_fill_the_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 30 * 2**20
    (tmp_path / "source").write_bytes(gzip.compress(header.tobuf() + bytes(header.size)))

    with pytest.raises(ArchiveError, match="implausibly large header"):
        list(tar_files(tmp_path / "source"))


def extended_header(record: bytes) -> bytes:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, len(record)
    return header.tobuf() + record.ljust(512, b"\0")


@pytest.mark.parametrize(
    "headers",
    [
        extended_header(b"26 GNU.sparse.map=one,two\n"),
        extended_header(b"22 GNU.sparse.size=one\n"),
        extended_header(b"12 path=abc\n") * 2_000,
    ],
    ids=["a map", "a size", "a chain"],
)
def test_headers_that_cannot_be_read_are_damage(tmp_path: Path, headers: bytes) -> None:
    (tmp_path / "source").write_bytes(gzip.compress(headers + tarfile.TarInfo("a").tobuf() + bytes(1024)))

    with pytest.raises(ArchiveError, match="It is damaged"):
        list(tar_files(tmp_path / "source"))


def test_a_list_of_entries_cannot_fill_the_memory_either(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many", "w") as many:
        for number in range(100):
            many.writestr(f"{number}", b"")
    with zipfile.ZipFile(tmp_path / "honest", "w") as honest:
        honest.writestr("a", b"1")
        honest.comment = b"said about it"

    with pytest.raises(ArchiveError, match="more than 10 entries"):
        list(zip_files(tmp_path / "many", ArchiveLimits(entries=10)))
    with pytest.raises(ArchiveError, match="more than 99 entries"):
        list(zip_files(tmp_path / "many", ArchiveLimits(entries=99)))
    large = (
        (tmp_path / "honest").read_bytes().replace(b"PK\x05\x06", b"PK\x06\x07" + bytes(16) + b"PK\x05\x06")
    )
    (tmp_path / "large").write_bytes(large)
    with pytest.raises(ArchiveError, match="more than 4 GB"):
        list(zip_files(tmp_path / "large"))
    assert [member.path for member, _ in zip_files(tmp_path / "honest")] == ["a"]


def test_limits_hold_for_entries_and_for_what_is_really_unpacked(tmp_path: Path) -> None:
    package = made(tmp_path, more={"a": bytes(10_000), "b": b""})
    (tmp_path / "wheel").write_bytes(package.wheel)
    (tmp_path / "source").write_bytes(package.source)

    with pytest.raises(ArchiveError, match="more than 3 entries"):
        list(tar_files(tmp_path / "source", ArchiveLimits(entries=3)))
    with pytest.raises(ArchiveError, match="unpacks to more"):
        list(tar_files(tmp_path / "source", ArchiveLimits(modest_bytes=0, ratio=2)))
    with pytest.raises(ArchiveError, match="unpacks to more"):
        list(zip_files(tmp_path / "wheel", ArchiveLimits(total_bytes=100)))


def test_a_name_in_no_encoding_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "source", "w:gz", format=tarfile.GNU_FORMAT) as tar:
        entry = tarfile.TarInfo("bad-\udcff")
        tar.addfile(entry, io.BytesIO())

    with pytest.raises(ArchiveError, match="is not a valid path"):
        list(tar_files(tmp_path / "source"))


def test_what_git_ignores_is_no_source(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "a.py",
        "a.log",
        "deep/b.log",
        "deep/keep.log",
        "build/x",
        "deep/build/y",
        "top.txt",
        "deep/top.txt",
        "docs/one/two/z.md",
        "docs/z.md",
        "cache/c.py",
        "sub/cache",
        "n1.dat",
        "nx.dat",
        ".hidden/h.py",
        "pkg/__pycache__/p.pyc",
    )
    rules = ["*.log", "!keep.log", "/top.txt", "docs/**/z.md", "cache/", "# no", "", r"\#no", "n[0-9].dat"]
    (tmp_path / ".gitignore").write_text("\n".join(rules))

    assert source_files(tmp_path) == [
        ".gitignore",
        "a.py",
        "deep/build/y",
        "deep/keep.log",
        "deep/top.txt",
        "nx.dat",
        "sub/cache",
    ]


def test_the_data_of_a_server_beside_the_tasks_is_not_pushed_with_them(tmp_path: Path) -> None:
    kept = (ID_FILE, KEY_FILE, "proctor.db")
    tree(tmp_path, "tasks.py", *(f"proctor-data/{name}" for name in kept))

    assert source_files(tmp_path) == ["tasks.py"]
    with pytest.raises(ConfigError, match="is the data folder of a Proctor server, and may hold its key"):
        source_files(tmp_path / "proctor-data")


@pytest.mark.parametrize(
    ("version", "taken", "next_one"),
    [
        ("0.1.0", [], "0.1.1"),
        ("0.1.0", ["0.1.0", "0.2.0"], "0.2.1"),
        ("1", ["1"], "1.0.1"),
        ("1.0rc1", ["1.0rc1"], "1.0.1"),
    ],
)
def test_a_raised_version_is_after_all_that_are_taken(version: str, taken: list[str], next_one: str) -> None:
    assert bump_version(version, taken) == next_one


@pytest.mark.parametrize(
    "text",
    [
        '[tool.x]\nversion = "1.0"\n[project]\nname = "a"\nversion = "1.0" #\r\n[tool.y]\nversion="1.0"\n',
        "[project]\nname = 'a'\nversion='1.0'\nother-version = '1.0'\n",
        'project = { min-version = "1.0", version = "1.0" }\n',
    ],
)
def test_only_the_projects_version_is_written(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_bytes(text.encode())

    new = with_version(file, "1.0.1").decode()

    changed = [(a, b) for a, b in zip(text.splitlines(True), new.splitlines(True), strict=True) if a != b]
    assert len(changed) == 1
    assert new.count("1.0.1") == 1


def test_a_version_from_elsewhere_is_not_raised(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "a"\ndynamic = ["version"]\n')

    with pytest.raises(ConfigError, match="declares a dynamic version"):
        with_version(file, "1.0.1")
