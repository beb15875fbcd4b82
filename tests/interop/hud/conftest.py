"""The `hud` package itself, unmodified, in a virtual environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import platformdirs
import pytest

PACKAGES = ("hud==0.6.21", "typer<0.21")
"""Its command line does not start with a later typer."""
PYTHONS = ("python3.12", "python3.11")
QUIET = {
    "HUD_CLI_ANALYTICS_ENABLED": "0",
    "HUD_SKIP_VERSION_CHECK": "1",
    "HUD_TELEMETRY_ENABLED": "false",
    "HUD_API_KEY": "",
    **{f"HUD_{name}_URL": "http://127.0.0.1:9" for name in ("API", "TELEMETRY", "GATEWAY", "RUNTIME", "WEB")},
}
"""It tells nobody of what it does."""


@pytest.fixture(scope="session")
def hud() -> Path:
    """The folder of its programs; installed once, and kept in the user's cache."""
    folder = platformdirs.user_cache_path("proctor-interop") / "hud-0.6.21"
    programs = folder / "bin"
    if not (folder / "whole").exists():
        install(folder)
    return programs


def install(folder: Path) -> None:
    others = filter(None, map(shutil.which, PYTHONS))
    python = sys.executable if sys.version_info < (3, 13) else next(others, None)
    if python is None:
        pytest.skip("hud needs Python 3.11 or 3.12, and neither is here")
    shutil.rmtree(folder, ignore_errors=True)
    for words in ([python, "-m", "venv", folder], [folder / "bin" / "pip", "install", "--quiet", *PACKAGES]):
        done = subprocess.run(
            [str(word) for word in words], capture_output=True, text=True, timeout=900, check=False
        )
        if done.returncode:
            pytest.skip(f"hud cannot be installed: {done.stderr.strip()[-300:]}")
    (folder / "whole").touch()


def quiet(home: Path) -> dict[str, str]:
    """The variables of a user of hud who has no account, an empty home and no library of ours."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, **QUIET, "HOME": str(home), "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}


@contextmanager
def hud_serving(hud: Path, source: Path, environ: Mapping[str, str], cwd: Path) -> Iterator[int]:
    """The port of a `hud serve`."""
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(
            [str(hud / "hud"), "serve", str(source), "-p", "0"],
            cwd=cwd,
            env={**environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
        )
        try:
            assert child.stdout is not None
            for line in child.stdout:
                if announced := re.search(r"HUD_SERVE_PORT=(\d+)", line):
                    break
            else:
                said.seek(0)
                raise AssertionError(f"hud serve did not start:\n{said.read()}")
            yield int(announced[1])
        finally:
            os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout is not None:
                child.stdout.close()


@pytest.fixture
def run_hud(hud: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs its command line: `run_hud("task", "list", "-u", url)`."""

    def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(hud / "hud"), *words],
            cwd=tmp_path,
            env={**quiet(tmp_path), **environ},
            capture_output=True,
            text=True,
            timeout=180,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    return run
