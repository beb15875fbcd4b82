"""A real Docker engine, the one that is there or one of our own, and a small image in it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from proctor.errors import ConfigError
from proctor.runtimes.docker import DockerRuntime

START_SECONDS = 60.0
IMAGE = "proctor-interop:room"

COMMAND = ["proctor", "serve", "/srv/env.py", "--host", "0.0.0.0", "-p", "8765"]
"""What the image runs."""

Say = Callable[..., str]
Ours = Callable[[], set[str]]


def loaded(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(environ: dict[str, str]) -> bool:
    asked = ["docker", "version", "--format", "{{.Server.Version}}"]
    done = subprocess.run(asked, env=environ, capture_output=True, timeout=30, check=False)
    return done.returncode == 0


@pytest.fixture(scope="session")
def engine() -> Iterator[None]:
    """An engine that `docker` reaches, as it stands in DOCKER_HOST meanwhile."""
    if shutil.which("docker") is None:
        pytest.skip("there is no docker program")
    if answers(dict(os.environ)):
        yield
        return
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        pytest.skip("no Docker engine answers, and none can be started here")
    with (
        tempfile.TemporaryDirectory(prefix="dockerd-", dir="/tmp") as folder,
        own_engine(Path(folder)) as host,
    ):
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = host
        try:
            yield
        finally:
            del os.environ["DOCKER_HOST"]
            if before is not None:
                os.environ["DOCKER_HOST"] = before


@contextlib.contextmanager
def own_engine(folder: Path) -> Iterator[str]:
    host = f"unix://{folder}/docker.sock"
    places = ("--data-root", folder / "data", "--exec-root", folder / "exec", "--pidfile", folder / "pid")
    with (folder / "log").open("wb") as log:
        engine = subprocess.Popen(["dockerd", "--host", host, *places], stdout=log, stderr=log)
    try:
        wait_for_engine(engine, {**os.environ, "DOCKER_HOST": host}, folder / "log")
        yield host
    finally:
        engine.terminate()
        try:
            engine.wait(30)
        except subprocess.TimeoutExpired:
            engine.kill()
            engine.wait()


def wait_for_engine(engine: subprocess.Popen[bytes], environ: dict[str, str], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not answers(environ):
        if engine.poll() is not None or time.monotonic() > end:
            pytest.skip(f"dockerd does not start here: {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.2)


@pytest.fixture(scope="session")
def image(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    archive = tmp_path_factory.mktemp("image") / "root.tar"
    loaded("image").build(archive)
    changes = (f"CMD {json.dumps(COMMAND)}", "WORKDIR /srv", "ENV PATH=/usr/local/bin:/usr/bin:/bin")
    said("import", *(f"--change={change}" for change in changes), str(archive), IMAGE)
    archive.unlink()
    yield IMAGE
    said("image", "rm", "--force", IMAGE)


@pytest.fixture
def docker(engine: None) -> Say:
    """The words of the real program, for looking at what is there."""
    return said


@pytest.fixture
def ours(docker: Say) -> Ours:
    """Our containers, dead or alive."""
    listing = ("ps", "--all", "--quiet", "--no-trunc", "--filter", "label=proctor=1")
    return lambda: set(docker(*listing).split())


@pytest.fixture
def nothing_left(ours: Ours) -> Iterator[None]:
    """A test ends as it began: with none of our containers."""
    asyncio.run(reaped())
    yield
    asyncio.run(reaped())
    assert ours() == set()


async def reaped() -> None:
    with pytest.raises(ConfigError, match="no image"):
        await DockerRuntime("nobody/has-this", pull="never").check()
