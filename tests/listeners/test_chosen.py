"""Listeners by their names: who is found, who is refused, and who may not hold up the end of a run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import plugins
from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig, Presentation
from proctor.errors import ConfigError, UnknownNameError
from proctor.events import Event
from proctor.listeners.resolve import close_all, listeners_for

if TYPE_CHECKING:
    pass

WATCHER = """
class Watcher:
    def __init__(self, config, endpoint):
        if config.label == "impossible":
            raise ValueError("no such label")
        self.seen, self.about = [], (config.env_id, endpoint.model)

    def __call__(self, event):
        self.seen.append(type(event).__name__)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that registers the listener `watcher`."""
    (tmp_path / "watching_plugin.py").write_text(WATCHER)
    info = tmp_path / "watching_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: watching-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[proctor.listeners]\nwatcher = watching_plugin:Watcher\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def chosen(*names: str, **settings: Any) -> list[Any]:
    config = EvalConfig(env_id="echo", **settings)
    return listeners_for(config, Endpoint(model="m"), Presentation(listener=names))


def test_nobody_watches_unasked() -> None:
    assert chosen() == []


@pytest.mark.usefixtures("plugin")
def test_a_package_that_is_installed_meanwhile_is_found(tmp_path: Path) -> None:
    assert "late" not in plugins.list_names(plugins.LISTENERS)

    info = tmp_path / "late_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: late-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[proctor.listeners]\nlate = watching_plugin:Watcher\n")
    later = tmp_path.stat().st_mtime + 1  # installing takes longer than the clock of a file system needs
    os.utime(tmp_path, (later, later))

    assert "late" in plugins.list_names(plugins.LISTENERS)


@pytest.mark.usefixtures("plugin")
def test_anybodys_listener_is_found_by_its_registered_name_and_told_what_runs() -> None:
    [watcher] = chosen("watcher", "watcher")

    assert watcher.about == ("echo", "m")


@pytest.mark.usefixtures("plugin")
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(UnknownNameError, match="No listener is called 'wacher'; did you mean 'watcher'"):
        chosen("wacher")


@pytest.mark.usefixtures("plugin")
def test_a_listener_that_cannot_be_made_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="listener 'watcher' cannot be made: ValueError: no such label"):
        chosen("watcher", label="impossible")


def test_without_its_extra_a_listener_says_how_to_install_it(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from proctor.cli.main import main\n"
        "from proctor.listeners.resolve import *\n"
        "listeners_for(EvalConfig(env_id='echo'), Endpoint(model='m'), Presentation(listener=('otel',)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert "proctor.errors.ConfigError" in done.stderr
    assert "pip install 'proctor[otel]'" in done.stderr


class Slow:
    def __init__(self, seconds: float = 0, error: Exception | None = None) -> None:
        self.seconds, self.error = seconds, error
        self.is_closed = False

    def __call__(self, event: Event) -> None: ...

    async def close(self) -> None:
        if self.error is not None:
            raise self.error
        await asyncio.sleep(self.seconds)
        self.is_closed = True


def test_one_that_hangs_or_fails_at_the_end_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    hangs, fails, fine = Slow(3600), Slow(error=OSError("disk full")), Slow()
    before = time.monotonic()

    asyncio.run(close_all([hangs, fails, fine, lambda event: None], within_seconds=0.1))

    assert time.monotonic() - before < 60
    assert (hangs.is_closed, fine.is_closed) == (False, True)
    assert sorted(caplog.messages) == [
        "closing listener Slow failed: OSError: disk full",
        "listener Slow was not done 0.1 s after the run and is left.",
    ]
