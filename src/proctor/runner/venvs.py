"""Virtual environments of pushed versions: each built once, from its wheel and its lock, and reused.

One that was built without a lock also serves the lock that resulted from it.

Proctor and its dependencies are not installed but visible from where they are on the host, after the
environment's own packages, which take precedence. Dependencies are fetched outside the sandbox and never
executed there; installing happens in a sandbox without any network. The lock consists of the names and hashes
of the wheels that were fetched, so that code inside cannot influence it. Knows nothing of runs.

    CACHE/KEY/venv/     the virtual environment, at the path it was built for
    CACHE/KEY/lock.txt  the wheels installed in it beside the environment's own; written last
    CACHE/KEY.lock      locked by the process that builds it
    CACHE/downloads/    pip's cache of answers from indexes
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

import proctor
from proctor.errors import InstallError
from proctor.isolation.command_line import MEGABYTE
from proctor.isolation.limits import RunLimits
from proctor.isolation.untrusted_tree import change_owner, discard_tree, occupied_bytes
from proctor.packages.host_venv import host_import_paths, host_paths, make_venv
from proctor.runner.excerpt import Excerpt
from proctor.runner.fetch import Fetcher, FetchRules
from proctor.runner.installer import INSTALL_VARIABLES, find_pip, pip_path
from proctor.runner.launch import ProcessExit, ProcessSpec, launch
from proctor.runner.lockfile import WHEEL, write_lock
from proctor.support.file_lock import hold_file_lock

INSTALL_LIMITS = RunLimits(memory_mb=4096, processes=512, disk_mb=16_384)
CACHE_MB = 20_480
IN_USE_SECONDS = 25 * 3600.0
"""Longer than any run lasts: one that was requested since then may be in use."""
REPORTED_LINES = 100
"""How much of a failed installer's output to report with the error."""
LAYOUT = "2"
"""Of virtual environments built by this code; those of an earlier Proctor are not used."""
DOWNLOADS = "downloads"
DOWNLOADS_MB = 4_096
CHECK_NO_HOST = "--no-warn-conflicts"
"""pip would look for conflicts among all packages of the host, which takes longer than installing."""
PROCESSING = "Processing "
"""pip prints it for each file before it is installed; not worth reading."""


class Venv(msgspec.Struct, frozen=True, kw_only=True):
    """A virtual environment that is ready."""

    python: Path
    paths: tuple[str, ...]
    """What must be visible, read-only, to use it."""
    lock: str
    """What is installed in it beside the environment itself."""

    @property
    def variables(self) -> dict[str, str]:
        """The variables for a process that uses it."""
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

    async def ready(
        self, wheel: Path, wheel_name: str, lock: str | None, log_line: Callable[[str], None]
    ) -> Venv:
        """The virtual environment of a wheel; without a lock, its dependencies are resolved. Raises
        InstallError with the last lines of the installer's output."""
        if WHEEL.fullmatch(wheel_name) is None:
            raise InstallError(f"{wheel_name!r} is not the name of a wheel; push the environment again.")
        content = await asyncio.to_thread(hash_wheel, wheel)
        found = self._find(content, lock)
        if found is not None:
            return found
        folder = self.cache / cache_key(content, lock)
        async with hold_file_lock(folder.with_suffix(".lock")):
            if not is_built(folder):
                log_line(f"Installing {wheel_name}.")
                try:
                    await self._build(folder, wheel, wheel_name, lock, log_line)
                finally:  # a failed installation has fetched files too
                    await asyncio.to_thread(self._prune_downloads)
                await asyncio.to_thread(self._prune, keep=folder)
            return open_venv(folder)

    async def find(self, wheel: Path, lock: str | None) -> Venv | None:
        """The virtual environment of a wheel, if it was built before."""
        return self._find(await asyncio.to_thread(hash_wheel, wheel), lock)

    def _find(self, content: str, lock: str | None) -> Venv | None:
        resolved, folder = self.cache / cache_key(content, None), self.cache / cache_key(content, lock)
        if lock and read_lock(resolved) == lock:
            return open_venv(resolved)
        return open_venv(folder) if is_built(folder) else None

    async def _build(
        self, folder: Path, wheel: Path, wheel_name: str, lock: str | None, log_line: Callable[[str], None]
    ) -> None:
        """Anything unfinished there was left by a builder that was killed."""
        await asyncio.to_thread(discard_tree, folder)
        fetched, given, own = folder / "fetched", folder / "given", folder / "venv"
        await asyncio.to_thread(given.mkdir, parents=True)
        try:
            await asyncio.to_thread(make_venv, own)
            # The only time its interpreter runs outside the sandbox: nothing untrusted is in it yet.
            fetcher = Fetcher(own / "bin/python", fetched, self.cache / DOWNLOADS, self.rules, log_line)
            pins = await fetcher.fetch(wheel, wheel_name, lock)
            files = [fetched / "own" / wheel_name, *(fetched / "wheels" / pin.file for pin in pins)]
            await self._install(files, folder, log_line)
            await asyncio.to_thread(reclaim_ownership, own)
            for temporary in (fetched, given):
                await asyncio.to_thread(discard_tree, temporary)
            await asyncio.to_thread(write_new, folder / "lock.txt", write_lock(pins))
        except BaseException:
            await asyncio.to_thread(discard_tree, folder)
            raise

    async def _install(self, files: Sequence[Path], folder: Path, log_line: Callable[[str], None]) -> None:
        command = ("install", "--no-deps", "--ignore-installed", CHECK_NO_HOST, *map(str, files))
        spec = ProcessSpec(
            run_id=f"install-{folder.name[:16]}",
            command=(str(folder / "venv/bin/python"), "-I", *find_pip(), *command),
            folder=folder / "given",
            variables=INSTALL_VARIABLES,
            paths=(*host_paths(), *pip_path(), *{str(file.parent) for file in files}),
            hidden=self.hidden,
            writable={str(folder / "venv"): str(folder / "venv")},
            limits=self.limits,
        )
        running = await launch(spec, allow_no_sandbox=self.allow_no_sandbox)
        output = Excerpt()
        try:
            async with asyncio.timeout(self.rules.seconds):
                async for line in running.output:
                    output.add(line)
                    if not line.startswith(PROCESSING):
                        log_line(line)
                ended = await running.wait()
        except TimeoutError as error:
            raise InstallError(
                f"Installing took longer than {self.rules.seconds:.0f} seconds; does it need all of its "
                f"dependencies?",
                output.lines[-REPORTED_LINES:],
            ) from error
        finally:
            await running.end(0)
        if ended.code != 0:
            raise InstallError(describe_failure(ended, output.lines), output.lines[-REPORTED_LINES:])

    def _prune(self, keep: Path) -> None:
        """Remove those that were not requested for the longest, until the rest fits. Blocks."""
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
        return f"The environment could not be installed: it exceeded the {ended.reason} limit."
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    reason = errors[-1] if errors else next(reversed(lines), f"pip ended with exit code {ended.code}")
    return f"The environment could not be installed: {reason}"


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


def read_lock(folder: Path) -> str | None:
    """What is installed there; None if it is missing or unfinished."""
    try:
        return (folder / "lock.txt").read_text()
    except FileNotFoundError:
        return None


def open_venv(folder: Path) -> Venv:
    os.utime(folder)
    return Venv(
        python=folder / "venv/bin/python",
        paths=(str(folder / "venv"), *host_paths()),
        lock=(folder / "lock.txt").read_text(),
    )


def reclaim_ownership(folder: Path) -> None:
    """Take over what the installer's user created."""
    if os.geteuid() == 0:
        change_owner(folder, 0, 0)
        os.chown(folder, 0, 0)


def write_new(file: Path, text: str) -> None:
    """Write a new file, without following any link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(file, flags, 0o644), "w") as opened:
        opened.write(text)


def is_built(path: Path) -> bool:
    return (path / "lock.txt").exists()


def last_used_at(path: Path) -> float:
    return path.stat().st_mtime
