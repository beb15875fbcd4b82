"""Virtual environments of pushed versions: each built once, from its wheel and its lock, and used again.

One that was built without a lock is also that of the lock it has led to.

Proctor and what it needs are not installed but seen from where they are on the host, after the environment's
own packages: those win. Installing runs foreign code, so it happens behind walls too. Knows nothing of runs.

    CACHE/KEY/venv/          the virtual environment, at the path it was built for
    CACHE/KEY/lock.txt       what is installed in it, as `pip freeze` tells it; written last
    CACHE/KEY.lock           held by whoever builds it
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import hashlib
import os
import re
import shutil
import sys
import sysconfig
import time
import venv
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

import proctor
from proctor.env.workspaces.walls import MEGABYTE
from proctor.errors import InstallError
from proctor.hosting.excerpt import Excerpt
from proctor.hosting.installer import Installer, installer
from proctor.hosting.limits import Limits
from proctor.hosting.walls import Ended, RunSpec, launch
from proctor.isolation.untrusted_tree import change_owner, discard_tree, occupied_bytes

INSTALL_SECONDS = 900.0
INSTALL_LIMITS = Limits(memory_mb=4096, processes=512, disk_mb=16_384)
CACHE_MB = 20_480
IN_USE_SECONDS = 25 * 3600.0
"""Longer than any run lasts: a virtual environment that was asked for since may be in use."""
LOCK_POLL_SECONDS = 0.1
TOLD_LINES = 100
"""Of an installer that failed, along with why."""
WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-[A-Za-z0-9_.!+]+(-[A-Za-z0-9_.]+){3,4}\.whl")
LOCK_LINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(==| @ )\S+")
SATISFIED = "Requirement already satisfied"
"""Said of all that Proctor brings; worth nobody's time."""
CHECK_NO_HOST = "--no-warn-conflicts"
"""pip would look for conflicts among all that the host has installed, for longer than it installs."""
PTH = "zz_proctor_host.pth"


class Venv(msgspec.Struct, frozen=True, kw_only=True):
    """A virtual environment that is ready."""

    python: Path
    paths: tuple[str, ...]
    """What must be seen, read-only, to use it."""
    lock: str
    """What is installed in it beside the environment itself."""

    @property
    def variables(self) -> dict[str, str]:
        """What a process that uses it is given."""
        own = str(self.python.parent)
        return {"VIRTUAL_ENV": str(self.python.parents[1]), "PATH": f"{own}:/usr/local/bin:/usr/bin:/bin"}


class Venvs:
    """The virtual environments of one host."""

    def __init__(
        self,
        cache: Path,
        *,
        hidden: tuple[Path, ...] = (),
        most_mb: int = CACHE_MB,
        seconds: float = INSTALL_SECONDS,
        limits: Limits = INSTALL_LIMITS,
        allow_no_sandbox: bool = False,
    ) -> None:
        self.cache = cache.resolve()
        self.hidden = hidden
        self.most_mb = most_mb
        self.seconds = seconds
        self.limits = limits
        self.allow_no_sandbox = allow_no_sandbox

    async def ready(self, wheel: Path, wheel_name: str, lock: str | None, say: Callable[[str], None]) -> Venv:
        """The virtual environment of a wheel; without a lock its dependencies are resolved. Raises
        InstallError, with the last lines of the installer."""
        if WHEEL.fullmatch(wheel_name) is None:
            raise InstallError(f"{wheel_name!r} is not the name of a wheel; push the environment again.")
        content = await asyncio.to_thread(content_of, wheel)
        resolved = self.cache / key_of(content, None)
        if lock and locked_as(resolved) == lock:
            return used(resolved)
        place = self.cache / key_of(content, lock)
        async with held(place.with_suffix(".lock")):
            if not is_built(place):
                say(f"Installing {wheel_name}.")
                await self._build(place, wheel, wheel_name, lock, say)
                await asyncio.to_thread(self._prune, keep=place)
            return used(place)

    async def _build(
        self, place: Path, wheel: Path, wheel_name: str, lock: str | None, say: Callable[[str], None]
    ) -> None:
        """Where something lies that was not finished, its builder was killed."""
        await asyncio.to_thread(discard_tree, place)
        given = place / "given"
        given.mkdir(parents=True)
        try:
            pip, _ = await asyncio.gather(installer(), asyncio.to_thread(make_venv, place / "venv"))
            shutil.copyfile(wheel, given / wheel_name)
            words = ["install", CHECK_NO_HOST, f"./{wheel_name}"]
            if lock:
                (given / "lock.txt").write_text(lock)
                words += ["--requirement", "lock.txt", "--constraint", "lock.txt"]
            await self._pip(words, place, pip, say)
            site, own = site_packages(place / "venv"), wheel_name.partition("-")[0]
            frozen = await self._pip(["freeze", "--path", str(site), "--exclude", own], place, pip)
            if frozen.left_out:  # a lock with a gap would install something else
                raise InstallError(f"{wheel_name} needs more packages than can be listed; let it need less.")
            lines = [f"{line}\n" for line in frozen.lines if LOCK_LINE.fullmatch(line)]
            await asyncio.to_thread(own_again, place / "venv")
            (given / "frozen.txt").write_text("".join(lines))
            (given / "frozen.txt").rename(place / "lock.txt")
        except BaseException:
            discard_tree(place)
            raise
        discard_tree(given)

    async def _pip(
        self,
        words: list[str],
        place: Path,
        pip: Installer,
        say: Callable[[str], None] | None = None,
    ) -> Excerpt:
        """What it said."""
        spec = RunSpec(
            run_id=f"install-{place.name[:16]}",
            words=(str(place / "venv/bin/python"), *pip.words, *words),
            folder=place / "given",
            variables=pip.variables,
            paths=(*host_paths(), *pip.paths),
            hidden=self.hidden,
            writable={str(place / "venv"): str(place / "venv")},
            host_network=True,
            limits=self.limits,
        )
        running = await launch(spec, allow_no_sandbox=self.allow_no_sandbox)
        said = Excerpt()
        try:
            async with asyncio.timeout(self.seconds):
                async for line in running.output:
                    said.add(line)
                    if say is not None and not line.startswith(SATISFIED):
                        say(line)
                ended = await running.wait()
        except TimeoutError as error:
            raise InstallError(
                f"Installing took longer than {self.seconds:.0f} seconds; does it need all its dependencies?",
                said.lines[-TOLD_LINES:],
            ) from error
        finally:
            await running.end(0)
        if ended.code != 0:
            raise InstallError(why(ended, said.lines), said.lines[-TOLD_LINES:])
        return said

    def _prune(self, keep: Path) -> None:
        """Remove those that were not asked for the longest, until the rest fits. Blocks."""
        known = sorted((path for path in self.cache.iterdir() if is_built(path)), key=used_at, reverse=True)
        room = self.most_mb * MEGABYTE
        for path in known:
            room -= occupied_bytes([path], sys.maxsize)
            if room < 0 and path != keep and time.time() - used_at(path) > IN_USE_SECONDS:
                discard_tree(path)
                path.with_suffix(".lock").unlink(missing_ok=True)


def why(ended: Ended, lines: list[str]) -> str:
    if ended.reason:
        return f"The environment could not be installed: beyond the limit of {ended.reason}."
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    said = errors[-1] if errors else next(reversed(lines), f"pip ended with exit code {ended.code}")
    return f"The environment could not be installed: {said}"


def content_of(wheel: Path) -> str:
    with wheel.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def key_of(content: str, lock: str | None) -> str:
    parts = (content, sys.version, sys.base_prefix, proctor.__version__, *host_places(), lock or "")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def locked_as(place: Path) -> str | None:
    """What is installed there; None where nothing is, or not yet."""
    try:
        return (place / "lock.txt").read_text()
    except FileNotFoundError:
        return None


def used(place: Path) -> Venv:
    os.utime(place)
    return Venv(
        python=place / "venv/bin/python",
        paths=(str(place / "venv"), *host_paths()),
        lock=(place / "lock.txt").read_text(),
    )


def make_venv(place: Path) -> None:
    venv.EnvBuilder(symlinks=True, with_pip=False).create(place)
    (site_packages(place) / PTH).write_text("".join(f"{path}\n" for path in host_places()))


def site_packages(place: Path) -> Path:
    return place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def host_paths() -> tuple[str, ...]:
    """What every virtual environment needs of the host: its Python, Proctor, and Proctor's dependencies."""
    return (str(Path(sys.base_prefix).resolve()), *host_places())


@functools.cache
def host_places() -> tuple[str, ...]:
    """Where Proctor and its dependencies are imported from."""
    beside = [Path(module.__file__ or "").parents[1] for module in (proctor, msgspec)]
    named = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    return tuple(dict.fromkeys(str(path.resolve()) for path in (*beside, *named)))


def own_again(place: Path) -> None:
    """What the installer's user has made is ours from now on."""
    if os.geteuid() == 0:
        change_owner(place, 0, 0)
        os.chown(place, 0, 0)


def is_built(path: Path) -> bool:
    return (path / "lock.txt").exists()


def used_at(path: Path) -> float:
    return path.stat().st_mtime


@asynccontextmanager
async def held(file: Path) -> AsyncIterator[None]:
    """Alone with this file among all processes of this machine."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("w") as opened_file:
        while True:
            try:
                fcntl.flock(opened_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(LOCK_POLL_SECONDS)
        yield
