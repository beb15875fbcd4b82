"""Fetch one commit of a repository in a sandbox, and return what it holds.

    result = await fetch_commit(request, rules)

git runs inside, on a folder that is gone afterwards; the host reads three files from there, without following
links. A hostile repository can waste at most the time and the space that the rules grant. Knows nothing of
databases.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from proctor.errors import ProctorError
from proctor.isolation.command_line import WORKSPACE_PATH
from proctor.isolation.limits import RunLimits
from proctor.isolation.untrusted_tree import UntrustedFileError, discard_tree, read_file
from proctor.runner.internet_proxy import open_internet_proxy
from proctor.runner.launch import INTERNET_PORT, ProcessExit, has_bubblewrap
from proctor.runner.own_module import SandboxRules, run_module
from proctor.runner.repository.git import RepositoryError, scheme_of
from proctor.runner.repository.request import (
    RESULT_FILE,
    SOURCE_FILE,
    WHEEL_FILE,
    FetchedCommit,
    FetchOutcome,
    FetchRequest,
)
from proctor.support.addresses import may_connect
from proctor.support.processes import summarize_output

INSIDE = "proctor.runner.repository.inside"
FETCH_LIMITS = RunLimits(memory_mb=2_048, processes=64, disk_mb=2_048)
LONGEST_RESULT = 8 * 2**20
LARGEST_FILE = 128 * 2**20
CA_FILE = "ca.pem"
PREFIX = "proctor-fetch-"


class FetchLimitError(ProctorError):
    """A fetch exceeded its time or its space, or died."""


class RepositoryRules(SandboxRules, frozen=True, kw_only=True):
    """What fetching may use on this machine."""

    seconds: float = 300.0
    limits: RunLimits = FETCH_LIMITS
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that may be fetched from although they are not on the public internet."""


class FetchResult(msgspec.Struct, frozen=True):
    """A commit and, if a rollout was asked for, its wheel and its source."""

    commit: FetchedCommit
    wheel: bytes = b""
    source: bytes = b""
    log: Sequence[str] = ()


async def fetch_commit(request: FetchRequest, rules: RepositoryRules) -> FetchResult:
    """Raises RepositoryError with what is wrong with the repository or the request, and FetchLimitError."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=rules.work))
    try:
        async with open_way_out(request.url, rules) as outward:
            exit_ = await run_fetch(prepare(request, folder, outward), folder, rules, outward)
        return await asyncio.to_thread(read_result, folder, exit_, bool(request.rollout))
    finally:
        await asyncio.to_thread(discard_tree, folder)


def prepare(request: FetchRequest, folder: Path, outward: Path | None) -> FetchRequest:
    if outward is None:
        return request
    certificates = ssl.get_default_verify_paths().cafile
    if certificates is not None:
        (folder / CA_FILE).write_bytes(Path(certificates).read_bytes())
    inside = WORKSPACE_PATH if has_bubblewrap() else str(folder)
    return replace(
        request,
        proxy=f"http://127.0.0.1:{INTERNET_PORT}",
        ca_file=f"{inside}/{CA_FILE}" if certificates is not None else "",
    )


@asynccontextmanager
async def open_way_out(url: str, rules: RepositoryRules) -> AsyncIterator[Path | None]:
    """A proxy to the repository's server; None for a repository on this machine."""
    if scheme_of(url) == "file":
        yield None
        return
    host = urlsplit(url).hostname or ""
    own = await resolve(host) if host in rules.allowed_hosts else frozenset()
    async with open_internet_proxy(lambda address: address in own or may_connect(address)) as proxy:
        yield proxy


async def resolve(host: str) -> frozenset[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    return frozenset(str(where[0]) for *_, where in found)


async def run_fetch(
    request: FetchRequest, folder: Path, rules: RepositoryRules, outward: Path | None
) -> ProcessExit:
    local = (urlsplit(request.url).path,) if outward is None else ()
    try:
        return await run_module(INSIDE, request, folder, rules, paths=local, outward=outward)
    except TimeoutError as error:
        raise FetchLimitError(
            f"Fetching {request.url} took longer than {rules.seconds:.0f} seconds; is it reachable, and is "
            f"one commit of it that large?"
        ) from error


def read_result(folder: Path, exit_: ProcessExit, with_package: bool) -> FetchResult:
    """Blocks."""
    try:
        outcome = msgspec.json.decode(read_file(folder, RESULT_FILE, LONGEST_RESULT), type=FetchOutcome)
        if outcome.problem is not None:
            raise RepositoryError(outcome.problem.code, outcome.problem.message, outcome.log)
        if outcome.fetched is None:
            raise FetchLimitError("The process that fetched the commit answered nothing; try again.")
        if not with_package:
            return FetchResult(outcome.fetched, log=outcome.log)
        wheel, source = (read_file(folder, name, LARGEST_FILE) for name in (WHEEL_FILE, SOURCE_FILE))
        return FetchResult(outcome.fetched, wheel, source, outcome.log)
    except (FileNotFoundError, UntrustedFileError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FetchLimitError(describe_death(exit_)) from error


def describe_death(exit_: ProcessExit) -> str:
    if exit_.reason:
        return (
            f"Fetching the commit exceeded the {exit_.reason} limit; keep large files out of the repository."
        )
    last = summarize_output(exit_.last_lines)
    return (
        f"The process that fetched the commit ended with exit code {exit_.code}{f': {last}' if last else '.'}"
    )
