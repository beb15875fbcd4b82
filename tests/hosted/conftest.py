from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proctor.cli.app import run as run_proctor
from tests.conftest import Ran
from tests.hosted.double import Double, doubled


@pytest.fixture
def server() -> Iterator[Double]:
    """A server of runs that does as it is told."""
    with doubled() as double:
        yield double


@pytest.fixture
def evals(
    server: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """`proctor eval …`, logged in; in this process, because most of these commands only ask and show."""
    for name, value in server.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "")
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Ran:
        with pytest.raises(SystemExit) as left:
            run_proctor(["eval", *words])
        told = capsys.readouterr()
        return Ran(int(left.value.code or 0), told.out, told.err, tmp_path)

    return run
