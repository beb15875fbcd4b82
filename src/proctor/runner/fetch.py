"""Fetch what an environment depends on: outside the walls, with the operator's indexes and credentials.

Nothing of what is fetched is executed: `confined_pip` resolves the dependencies, takes wheels only, and can
start no process. What was fetched is compared with the hashes of the resolution and of the lock. Everything
here is written to by the host and by pip, and by nobody else. Knows nothing of how wheels are installed.

    FOLDER/own/        the environment's wheel, under its own name
    FOLDER/wheels/     what it depends on
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
    """Hosts from which wheels may be taken that a package names by their address."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """One package that the dependencies resolve to."""

    requirement: str
    hashes: dict[str, str]


class Fetcher:
    """Fetches for one virtual environment."""

    def __init__(
        self, python: Path, folder: Path, downloads: Path, rules: FetchRules, log_line: Callable[[str], None]
    ) -> None:
        self.python = python
        self.folder = folder
        self.downloads = downloads
        """pip's cache of what indexes answered; only fetches use it."""
        self.rules = rules
        self._say = log_line

    async def fetch(self, wheel: Path, wheel_name: str, lock: str | None) -> list[Pin]:
        """Everything the wheel needs beside what the host has; raises InstallError."""
        try:
            async with asyncio.timeout(self.rules.seconds):
                return await self._fetch(wheel, wheel_name, lock)
        except TimeoutError as error:
            raise InstallError(
                f"Fetching what it depends on took longer than {self.rules.seconds:.0f} seconds; does the "
                f"index answer, and does it need all its dependencies?"
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
        """Run it to its end, or to the end of what it may use."""
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
                    self._say(shown)
            code = await process.wait()
        finally:
            watching.cancel()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            await lines.end(LAST_LINES_SECONDS)
        if watching.done() and not watching.cancelled():
            raise InstallError(
                f"What it depends on takes more than {self.rules.disk_mb} MB; let it need less.",
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
        """Returns only when there is too much, which ends the process."""
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


def read_report(file: Path, wheel_name: str) -> list[Resolved]:
    """What pip would install beside the wheel itself. Blocks."""
    if file.stat().st_size > LARGEST_REPORT:
        raise InstallError("It depends on more packages than can be listed; let it need less.")
    entries = msgspec.json.decode(file.read_bytes())["install"]
    return [resolved_of(entry) for entry in entries if not is_own(entry, wheel_name)]


def is_own(entry: dict[str, Any], wheel_name: str) -> bool:
    return bool(entry["is_direct"]) and entry["download_info"]["url"].endswith(f"/own/{wheel_name}")


def resolved_of(entry: dict[str, Any]) -> Resolved:
    """Names and versions are what wheels say of themselves: they are read as strictly as a lock."""
    name, version = str(entry["metadata"]["name"]), str(entry["metadata"]["version"])
    pin = read_line(f"{name}=={version.lower()}")
    info = entry["download_info"].get("archive_info", {})
    kind, _, value = str(info.get("hash", "")).partition("=")
    hashes = info.get("hashes") or {kind: value}
    direct = f"{name} @ {entry['download_info']['url']}" if entry["is_direct"] else ""
    return Resolved(requirement=direct or pin.requirement, hashes=hashes)


def check_wheels(folder: Path, resolved: Sequence[Resolved], locked: Sequence[Pin]) -> list[Pin]:
    """The wheels that arrived, each of them one that was resolved to, and as it was locked. Blocks."""
    files = sorted(folder.iterdir())
    expected = {(kind, value) for each in resolved for kind, value in each.hashes.items()}
    kinds = {kind for kind, _ in expected} & hashlib.algorithms_guaranteed
    locked_hashes = {pin.file: pin.sha256 for pin in locked if pin.file}
    pins = []
    for file in files:
        pin = pin_of(file.name, digest_of(file, "sha256"))
        if not any((kind, digest_of(file, kind)) in expected for kind in kinds):
            raise InstallError(f"{file.name} changed on the index while it was fetched; try again.")
        if locked_hashes.get(pin.file, pin.sha256) != pin.sha256:
            raise InstallError(
                f"{file.name} is not the file it was when this version was checked; find out who changed it "
                f"on the index, or push a new version."
            )
        file.chmod(0o644)
        pins.append(pin)
    if len(files) != len(resolved):
        raise InstallError(
            f"Of {len(resolved)} packages it depends on, {len(files)} were fetched; try again."
        )
    return pins


def digest_of(file: Path, kind: str) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, kind).hexdigest()
