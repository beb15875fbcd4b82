"""A root file system with this machine's Python and proctor: an image where there is no registry.

Files of the interpreter, of its libraries and of the packages that proctor depends on, as a tar archive.
"""

from __future__ import annotations

import compileall
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ROOM = Path(__file__).with_name("room")
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
STDLIB = f"usr/local/lib/{VERSION}"
PACKAGES = f"{STDLIB}/site-packages"
LEFT_OUT = ("site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3")
SHELL = ("sh", "bash", "cat", "chmod", "dirname", "grep", "head", "mkdir", "mv", "rm", "sleep", "true", "wc")
PROGRAMS = (*SHELL, "bwrap", "prlimit", "setpriv")
FOLDERS = ("proc", "dev", "sys", "run", "etc", "root")

SCRIPT = b"#!/usr/local/bin/python3\nfrom proctor.cli.main import main\nmain()\n"


class Image:
    """An archive in which every path stands once."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._tar = archive
        self._there: set[str] = set()

    def add(self, source: Path, name: str) -> None:
        if name in self._there:
            return
        self._there.add(name)
        self._tar.add(source.resolve(), arcname=name, recursive=False)
        if source.suffix == ".so" or ".so." in source.name or os.access(source, os.X_OK):
            for library in libraries(source):
                self.add(library, place_of(library))

    def add_tree(self, source: Path, name: str) -> None:
        for folder, folders, files in os.walk(source):
            folders[:] = [each for each in folders if each not in LEFT_OUT and not each.startswith("config-")]
            for file in files:
                path = Path(folder, file)
                self.add(path, f"{name}/{path.relative_to(source)}")

    def write(self, name: str, content: bytes, mode: int = 0o644) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(content), mode
        self._tar.addfile(entry, io.BytesIO(content))

    def folder(self, name: str, mode: int = 0o755) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        self._tar.addfile(entry)

    def link(self, name: str, target: str) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(entry)


def libraries(program: Path) -> list[Path]:
    if program.read_bytes()[:4] != b"\x7fELF":
        return []
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", told)]


def place_of(library: Path) -> str:
    """Where it lies here, unless only the interpreter of this machine looks there."""
    is_of_system = library.is_relative_to("/usr") or library.parts[1].startswith("lib")
    return str(library).lstrip("/") if is_of_system else f"usr/lib/{library.name}"


def needed(name: str, seen: set[str]) -> Iterator[Distribution]:
    """The packages that one depends on, without its extras."""
    for line in distribution(name).requires or ():
        wanted = re.match(r"[\w.-]+", line)
        if wanted is None or "extra ==" in line or wanted.group() in seen:
            continue
        seen.add(wanted.group())
        try:
            yield distribution(wanted.group())
        except PackageNotFoundError:  # for another system
            continue
        yield from needed(wanted.group(), seen)


def build(file: Path) -> None:
    """Write the archive."""
    with tarfile.open(file, "w") as archive:
        image = Image(archive)
        image.add(Path(sys.executable).resolve(), "usr/local/bin/python3")
        image.add_tree(Path(sysconfig.get_path("stdlib")), STDLIB)
        for package in needed("proctor", set()):
            for each in package.files or ():
                if ".." not in each.parts:
                    image.add(Path(str(package.locate_file(each))), f"{PACKAGES}/{each}")
        add_proctor(image)
        add_registration(image)
        image.add_tree(ROOM, "srv")
        for name in PROGRAMS:
            if Path("/usr/bin", name).exists():
                image.add(Path("/usr/bin", name), f"usr/bin/{name}")
        image.link("bin", "usr/bin")
        image.folder("tmp", 0o1777)
        for name in FOLDERS:
            image.folder(name)


def add_proctor(image: Image) -> None:
    """Compiled, as an installation is: in a fresh container nothing that Python compiles is kept."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(ROOT / "src" / "proctor", Path(folder, "proctor"))
        compileall.compile_dir(copy, quiet=1, stripdir=folder, prependdir=f"/{PACKAGES}")
        image.add_tree(copy, f"{PACKAGES}/proctor")


def add_registration(image: Image) -> None:
    """What an installation would have left: the program, and the names of entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    image.write("usr/local/bin/proctor", SCRIPT, 0o755)
    image.write(
        f"{PACKAGES}/proctor-0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: proctor\nVersion: 0\n"
    )
    image.write(f"{PACKAGES}/proctor-0.dist-info/entry_points.txt", "\n".join(lines).encode())
