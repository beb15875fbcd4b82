"""Some hundred results of parsers, helpers, messages and modules: the original's, and ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.interop

TABLE = Path(__file__).with_name("table.py")


def results(python: str | Path, package: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(python), str(TABLE), package], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_same_name_gives_the_same_result(verifiers_python: Path) -> None:
    theirs, ours = results(verifiers_python, "verifiers"), results(sys.executable, "proctor")

    assert len(theirs) > 400
    different = {case: (theirs[case], ours.get(case)) for case in theirs if ours.get(case) != theirs[case]}
    assert different == {}
