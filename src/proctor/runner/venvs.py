"""Virtual environments of pushed versions: each built once, from its wheel and its lock, and used again.

One that was built without a lock is also that of the lock it has led to.

Proctor and what it needs are not installed but seen from where they are on the host, after the environment's
own packages: those win. What an environment depends on is fetched outside the walls and executed nowhere;
installing it happens behind walls without any network. The lock is made of the names and hashes of the wheels
that were fetched, so that nothing inside has a say in it. Knows nothing of runs.

    CACHE/KEY/venv/          the virtual environment, at the path it was built for
    CACHE/KEY/lock.txt       the wheels that are installed in it beside the environment's own; written last
    CACHE/KEY.lock           held by whoever builds it
    CACHE/downloads/         pip's cache of what indexes answered
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import hashlib
import os
import sys
import sysconfig
import time
import venv
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

import proctor
from proctor.errors import InstallError
from proctor.isolation.bubblewrap import MEGABYTE
from proctor.isolation.limits import RunLimits
from proctor.isolation.untrusted_tree import change_owner, discard_tree, occupied_bytes
from proctor.runner.excerpt import Excerpt
from proctor.runner.fetching import Fetcher, FetchRules
from proctor.runner.installer import INSTALL_VARIABLES, find_pip, pip_path
from proctor.runner.launch import ProcessExit, ProcessSpec, launch
from proctor.runner.locks import WHEEL, write_lock

INSTALL_LIMITS = RunLimits(memory_mb=4096, processes=512, disk_mb=16_384)
CACHE_MB = 20_480
IN_USE_SECONDS = 25 * 3600.0
"""Longer than any run lasts: a virtual environment that was asked for since may be in use."""
LOCK_POLL_SECONDS = 0.1
REPORTED_LINES = 100
"""Of an installer that failed, along with why."""
LAYOUT = "2"
"""Of what is built here; what an earlier Proctor built is not used."""
DOWNLOADS = "downloads"
DOWNLOADS_MB = 4_096
CHECK_NO_HOST = "--no-warn-conflicts"
"""pip would look for conflicts among all that the host has installed, for longer than it installs."""
PROCESSING = "Processing "
"""Said of each file before it is installed; worth nobody's time."""
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
        limits: RunLimits = INSTALL_LIMITS,
        rules: FetchRules | None = None,
        allow_no_sandbox: bool = False,
    ) -> None:
        self.cache = cache.resolve()
        self.hidden = hidden
        self.most_mb = most_mb
        self.limits = limits
        self.rules = rules or FetchRules()
        self.allow_no_sandbox = allow_no_sandbox

    async def ready(self, wheel: Path, wheel_name: str, lock: str | None, say: Callable[[str], None]) -> Venv:
        """The virtual environment of a wheel; without a lock its dependencies are resolved. Raises
        InstallError, with the last lines of the installer."""
        if WHEEL.fullmatch(wheel_name) is None:
            raise InstallError(f"{wheel_name!r} is not the name of a wheel; push the environment again.")
        content = await asyncio.to_thread(hash_wheel, wheel)
        found = self._find(content, lock)
        if found is not None:
            return found
        place = self.cache / cache_key(content, lock)
        async with hold_file_lock(place.with_suffix(".lock")):
            if not is_built(place):
                say(f"Installing {wheel_name}.")
                try:
                    await self._build(place, wheel, wheel_name, lock, say)
                finally:  # what could not be installed was fetched all the same
                    await asyncio.to_thread(self._prune_downloads)
                await asyncio.to_thread(self._prune, keep=place)
            return open_venv(place)

    async def find(self, wheel: Path, lock: str | None) -> Venv | None:
        """The virtual environment of a wheel, where it was built before."""
        return self._find(await asyncio.to_thread(hash_wheel, wheel), lock)

    def _find(self, content: str, lock: str | None) -> Venv | None:
        resolved, place = self.cache / cache_key(content, None), self.cache / cache_key(content, lock)
        if lock and read_lock(resolved) == lock:
            return open_venv(resolved)
        return open_venv(place) if is_built(place) else None

    async def _build(
        self, place: Path, wheel: Path, wheel_name: str, lock: str | None, say: Callable[[str], None]
    ) -> None:
        """Where something lies that was not finished, its builder was killed."""
        await asyncio.to_thread(discard_tree, place)
        fetched, given, own = place / "fetched", place / "given", place / "venv"
        await asyncio.to_thread(given.mkdir, parents=True)
        try:
            await asyncio.to_thread(make_venv, own)
            # Its interpreter is run outside the walls only here, before anything foreign is in it.
            fetcher = Fetcher(own / "bin/python", fetched, self.cache / DOWNLOADS, self.rules, say)
            pins = await fetcher.fetch(wheel, wheel_name, lock)
            files = [fetched / "own" / wheel_name, *(fetched / "wheels" / pin.file for pin in pins)]
            await self._install(files, place, say)
            await asyncio.to_thread(reclaim_ownership, own)
            for folder in (fetched, given):
                await asyncio.to_thread(discard_tree, folder)
            await asyncio.to_thread(write_new, place / "lock.txt", write_lock(pins))
        except BaseException:
            await asyncio.to_thread(discard_tree, place)
            raise

    async def _install(self, files: Sequence[Path], place: Path, say: Callable[[str], None]) -> None:
        words = ("install", "--no-deps", "--ignore-installed", CHECK_NO_HOST, *map(str, files))
        spec = ProcessSpec(
            run_id=f"install-{place.name[:16]}",
            words=(str(place / "venv/bin/python"), "-I", *find_pip(), *words),
            folder=place / "given",
            variables=INSTALL_VARIABLES,
            paths=(*host_paths(), *pip_path(), *{str(file.parent) for file in files}),
            hidden=self.hidden,
            writable={str(place / "venv"): str(place / "venv")},
            limits=self.limits,
        )
        running = await launch(spec, allow_no_sandbox=self.allow_no_sandbox)
        said = Excerpt()
        try:
            async with asyncio.timeout(self.rules.seconds):
                async for line in running.output:
                    said.add(line)
                    if not line.startswith(PROCESSING):
                        say(line)
                ended = await running.wait()
        except TimeoutError as error:
            raise InstallError(
                f"Installing took longer than {self.rules.seconds:.0f} seconds; does it need all its "
                f"dependencies?",
                said.lines[-REPORTED_LINES:],
            ) from error
        finally:
            await running.end(0)
        if ended.code != 0:
            raise InstallError(describe_failure(ended, said.lines), said.lines[-REPORTED_LINES:])

    def _prune(self, keep: Path) -> None:
        """Remove those that were not asked for the longest, until the rest fits. Blocks."""
        known = sorted(
            (path for path in self.cache.iterdir() if is_built(path)), key=last_used_at, reverse=True
        )
        room = self.most_mb * MEGABYTE
        for path in known:
            room -= occupied_bytes([path], sys.maxsize)
            if room < 0 and path != keep and time.time() - last_used_at(path) > IN_USE_SECONDS:
                discard_tree(path)
                path.with_suffix(".lock").unlink(missing_ok=True)

    def _prune_downloads(self) -> None:
        """Blocks."""
        room = DOWNLOADS_MB * MEGABYTE
        if occupied_bytes([self.cache / DOWNLOADS], room) > room:
            discard_tree(self.cache / DOWNLOADS)


def describe_failure(ended: ProcessExit, lines: list[str]) -> str:
    if ended.reason:
        return f"The environment could not be installed: beyond the limit of {ended.reason}."
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    said = errors[-1] if errors else next(reversed(lines), f"pip ended with exit code {ended.code}")
    return f"The environment could not be installed: {said}"


def hash_wheel(wheel: Path) -> str:
    with wheel.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_key(content: str, lock: str | None) -> str:
    parts = (
        LAYOUT,
        content,
        sys.version,
        sys.base_prefix,
        proctor.__version__,
        *host_import_paths(),
        lock or "",
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_lock(place: Path) -> str | None:
    """What is installed there; None where nothing is, or not yet."""
    try:
        return (place / "lock.txt").read_text()
    except FileNotFoundError:
        return None


def open_venv(place: Path) -> Venv:
    os.utime(place)
    return Venv(
        python=place / "venv/bin/python",
        paths=(str(place / "venv"), *host_paths()),
        lock=(place / "lock.txt").read_text(),
    )


def make_venv(place: Path) -> None:
    venv.EnvBuilder(symlinks=True, with_pip=False).create(place)
    (site_packages(place) / PTH).write_text("".join(f"{path}\n" for path in host_import_paths()))


def site_packages(place: Path) -> Path:
    return place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def host_paths() -> tuple[str, ...]:
    """What every virtual environment needs of the host: its Python, Proctor, and Proctor's dependencies."""
    return (str(Path(sys.base_prefix).resolve()), *host_import_paths())


@functools.cache
def host_import_paths() -> tuple[str, ...]:
    """Where Proctor and its dependencies are imported from."""
    beside = [Path(module.__file__ or "").parents[1] for module in (proctor, msgspec)]
    named = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    return tuple(dict.fromkeys(str(path.resolve()) for path in (*beside, *named)))


def reclaim_ownership(place: Path) -> None:
    """What the installer's user has made is ours from now on."""
    if os.geteuid() == 0:
        change_owner(place, 0, 0)
        os.chown(place, 0, 0)


def write_new(file: Path, text: str) -> None:
    """Write a file that is not there, at a place that nothing leads away from."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(file, flags, 0o644), "w") as opened:
        opened.write(text)


def is_built(path: Path) -> bool:
    return (path / "lock.txt").exists()


def last_used_at(path: Path) -> float:
    return path.stat().st_mtime


@asynccontextmanager
async def hold_file_lock(file: Path) -> AsyncIterator[None]:
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
