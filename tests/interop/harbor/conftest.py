"""A small image for Harbor's tasks: a shell and a few programs of this machine."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.conftest import loaded, said

IMAGE = "proctor-interop:harbor"
TASKS = Path(__file__).with_name("tasks")
PROGRAMS = (
    *("bash", "sh", "cat", "chmod", "chown", "cp", "dirname", "env", "find", "grep", "head", "id", "ls"),
    *("mkdir", "rm", "sleep", "tail", "tar", "touch", "tr", "wc", "base64", "awk", "test"),
)


@pytest.fixture(scope="session")
def base_image(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    archive = tmp_path_factory.mktemp("image") / "root.tar"
    build_root(archive)
    said("import", "--change=ENV PATH=/usr/bin:/bin", str(archive), IMAGE)
    archive.unlink()
    yield IMAGE
    said("image", "rm", "--force", IMAGE)


def build_root(archive: Path) -> None:
    with tarfile.open(archive, "w") as tar:
        image = loaded("image").Image(tar)
        for name in PROGRAMS:
            program = shutil.which(name, path="/usr/bin:/bin")
            if program is not None:
                image.add(Path(program), f"usr/bin/{name}")
        image.link("bin", "usr/bin")
        for name in ("proc", "dev", "sys", "run", "etc", "root"):
            image.folder(name)
        image.folder("tmp", 0o1777)
        image.write("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
