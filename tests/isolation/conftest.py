"""A folder, somebody who works in it, and a file beside it that must stay as it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.isolation.users import folder_of


class Ground(NamedTuple):
    """Where something hostile is planted."""

    user: str
    folder: Path
    """What foreign code could write."""
    treasure: Path
    """What it wants to have read, changed or removed."""

    def check(self) -> None:
        """The treasure is as it was."""
        status = self.treasure.lstat()
        assert self.treasure.read_text() == "treasure"
        assert stat.S_IMODE(status.st_mode) == 0o640
        assert status.st_uid == self.treasure.parent.stat().st_uid


@pytest.fixture(params=["root", "ordinary"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("only root can try what root does")
    with folder_of(request.param) as top:
        keep = top / "keep"
        for folder in (keep, top / "folder"):
            folder.mkdir()
            os.chown(folder, top.stat().st_uid, top.stat().st_gid)
        treasure = keep / "treasure"
        treasure.write_text("treasure")
        os.chown(treasure, top.stat().st_uid, top.stat().st_gid)
        treasure.chmod(0o640)
        made = Ground(request.param, top / "folder", treasure)
        yield made
        made.check()
