"""Fetch an environment's dependencies: outside the sandbox, with the operator's indexes and credentials.

Nothing that is fetched is executed: `confined_pip` resolves the dependencies, accepts wheels only, and cannot
start processes. Every file is compared with the hashes of the resolution and of the lock. Only the host and
pip write to these folders. Knows nothing of how wheels are installed.

    FOLDER/own/       the environment's wheel, under its own name
    FOLDER/wheels/    its dependencies
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import InstallError
from proctor.isolation.command_line import MEGABYTE
from proctor.isolation.untrusted_tree import occupied_bytes
from proctor.runner import confined_pip
from proctor.runner.excerpt import Excerpt
from proctor.runner.installer import fetch_variables, pip_path
from proctor.runner.lockfile import Pin, pin_of, read_line, read_lock
from proctor.runner.output_lines import OutputLines

WHEELS_ONLY = ("--only-binary", ":all:")
WATCH_SECONDS = 0.5
LAST_LINES_SECONDS = 5.0
SHOWN_LINES = 100
LARGEST_REPORT = 64 * MEGABYTE
CREDENTIALS = re.compile(r"//[^/@\s]+@")
NOT_FOUND = re.compile(r"No matching distribution found for (?P<what>.+)")
UNINTERESTING = ("Requirement already satisfied", "Looking in ", "Would install", "Saved ")


class FetchRules(msgspec.Struct, frozen=True, kw_only=True):
    """What fetching may use on this host."""

    seconds: float = 900.0
    disk_mb: int = 16_384
    memory_mb: int = 4_096
    direct_hosts: tuple[str, ...] = ()
    """Hosts from which wheels may be fetched by direct reference."""


class ResolvedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """One package of the resolution."""

    requirement: str
    hashes: dict[str, str]


class Fetcher:
    """Fetches the wheels of one virtual environment."""

    def __init__(
        self, python: Path, folder: Path, downloads: Path, rules: FetchRules, log_line: Callable[[str], None]
    ) -> None:
        self.python = python
        self.folder = folder
        self.downloads = downloads
        """pip's cache of answers from indexes; only fetches use it."""
        self.rules = rules
        self._log_line = log_line

    async def fetch(self, wheel: Path, wheel_name: str, lock: str | None) -> list[Pin]:
        """Fetch everything the wheel needs beyond what the host has; raises InstallError."""
        try:
            async with asyncio.timeout(self.rules.seconds):
                return await self._fetch(wheel, wheel_name, lock)
        except TimeoutError as error:
            raise InstallError(
                f"Fetching its dependencies took longer than {self.rules.seconds:.0f} seconds; does the "
                f"index answer, and does it need all of them?"
            ) from error

    async def _fetch(self, wheel: Path, wheel_name: str, lock: str | None) -> list[Pin]:
        locked = read_lock(lock or "")
        await asyncio.to_thread(self._prepare, wheel, wheel_name, locked)
        variables = await fetch_variables(self.folder / "tmp", self.downloads)
        command = ["install", "--dry-run", "--no-warn-conflicts", "--report", "report.json", *WHEELS_ONLY]
        if locked:
            command += ["--requirement", "locked.txt", "--constraint", "locked.txt"]
        await self._pip([*command, f"./own/{wheel_name}"], variables)
        resolved = await asyncio.to_thread(read_report, self.folder / "report.json", wheel_name)
        if not resolved:
            return []
        exact = "".join(f"{each.requirement}\n" for each in resolved)
        (self.folder / "exact.txt").write_text(exact)
        command = ["download", "--no-deps", "--dest", "wheels", *WHEELS_ONLY, "--requirement", "exact.txt"]
        await self._pip(command, variables)
        return await asyncio.to_thread(check_wheels, self.folder / "wheels", resolved, locked)

    def _prepare(self, wheel: Path, wheel_name: str, locked: Sequence[Pin]) -> None:
        for name in ("own", "wheels", "tmp"):
            (self.folder / name).mkdir(parents=True)
        self.downloads.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(wheel, self.folder / "own" / wheel_name)
        (self.folder / "locked.txt").write_text("".join(f"{pin.requirement}\n" for pin in locked))

    async def _pip(self, command: Sequence[str], variables: dict[str, str]) -> None:
        """Run it until it ends or exceeds a limit."""
        lines, output = OutputLines(), Excerpt()
        printing = await lines.open()
        try:
            process = await asyncio.create_subprocess_exec(
                *(str(self.python), "-I", str(confined_pip.__file__), self._settings(), *command),
                cwd=self.folder,
                env=variables,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=printing,
                stderr=printing,
                start_new_session=True,
            )
        finally:
            os.close(printing)
        watching = asyncio.create_task(self._watch(process))
        try:
            async for line in lines:
                shown = CREDENTIALS.sub("//****@", line)
                output.add(shown)
                if not shown.strip().startswith(UNINTERESTING):
                    self._log_line(shown)
            code = await process.wait()
        finally:
            watching.cancel()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            await lines.end(LAST_LINES_SECONDS)
        if watching.done() and not watching.cancelled():
            raise InstallError(
                f"Its dependencies take more than {self.rules.disk_mb} MB; depend on less.",
                output.lines[-SHOWN_LINES:],
            )
        if code != 0:
            raise InstallError(why_not_fetched(output.lines, code), output.lines[-SHOWN_LINES:])

    def _settings(self) -> str:
        rules = self.rules
        settings = {
            "parent": os.getpid(),
            "path": pip_path(),
            "direct_hosts": rules.direct_hosts,
            "memory_bytes": rules.memory_mb * MEGABYTE,
            "file_bytes": rules.disk_mb * MEGABYTE,
            "cpu_seconds": round(rules.seconds),
        }
        return msgspec.json.encode(settings).decode()

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Returns only when the limit is exceeded, which kills the process."""
        room = self.rules.disk_mb * MEGABYTE
        while await asyncio.to_thread(occupied_bytes, [self.folder], room) <= room:
            await asyncio.sleep(WATCH_SECONDS)
        with suppress(ProcessLookupError):
            process.kill()


def why_not_fetched(lines: Sequence[str], code: int) -> str:
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    reason = errors[-1] if errors else next(reversed(lines), f"pip ended with exit code {code}")
    missing = NOT_FOUND.fullmatch(reason)
    if missing:
        reason = (
            f"the host's indexes have no wheel of {missing['what']} for this Python. Source distributions "
            f"are not built here: publish a wheel of it."
        )
    return f"The environment could not be installed: {reason}"


def read_report(file: Path, wheel_name: str) -> list[ResolvedPackage]:
    """What pip would install beside the wheel itself. Blocks."""
    if file.stat().st_size > LARGEST_REPORT:
        raise InstallError("It has more dependencies than can be listed; depend on less.")
    entries = msgspec.json.decode(file.read_bytes())["install"]
    return [resolved_of(entry) for entry in entries if not is_own(entry, wheel_name)]


def is_own(entry: dict[str, Any], wheel_name: str) -> bool:
    return bool(entry["is_direct"]) and entry["download_info"]["url"].endswith(f"/own/{wheel_name}")


def resolved_of(entry: dict[str, Any]) -> ResolvedPackage:
    """Names and versions come from the wheels themselves: parse them as strictly as a lock."""
    name, version = str(entry["metadata"]["name"]), str(entry["metadata"]["version"])
    pin = read_line(f"{name}=={version.lower()}")
    info = entry["download_info"].get("archive_info", {})
    kind, _, value = str(info.get("hash", "")).partition("=")
    hashes = info.get("hashes") or {kind: value}
    direct = f"{name} @ {entry['download_info']['url']}" if entry["is_direct"] else ""
    return ResolvedPackage(requirement=direct or pin.requirement, hashes=hashes)


def check_wheels(folder: Path, resolved: Sequence[ResolvedPackage], locked: Sequence[Pin]) -> list[Pin]:
    """The wheels that arrived, each one part of the resolution and as it was locked. Blocks."""
    files = sorted(folder.iterdir())
    expected = {(kind, value) for each in resolved for kind, value in each.hashes.items()}
    kinds = {kind for kind, _ in expected} & hashlib.algorithms_guaranteed
    locked_hashes = {pin.file: pin.sha256 for pin in locked if pin.file}
    pins = []
    for file in files:
        pin = pin_of(file.name, digest_of(file, "sha256"))
        if not any((kind, digest_of(file, kind)) in expected for kind in kinds):
            raise InstallError(f"{file.name} changed on the index during the download; try again.")
        if locked_hashes.get(pin.file, pin.sha256) != pin.sha256:
            raise InstallError(
                f"{file.name} differs from when this version was checked; find out who changed it "
                f"on the index, or push a new version."
            )
        file.chmod(0o644)
        pins.append(pin)
    if len(files) != len(resolved):
        raise InstallError(f"Only {len(files)} of its {len(resolved)} dependencies arrived; try again.")
    return pins


def digest_of(file: Path, kind: str) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, kind).hexdigest()
