"""Environments and tasks of a hub, brought here: the source of a version once, its tasks as rows.

    package = fetch_package("ada/letters", os.environ)
    package.found                                   # load it, evaluate it

A version never changes, so its source is kept in the user's cache under its hash. Nothing is installed and no
code runs until the environment is loaded. Knows nothing of terminals.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs

from proctor.api.hub import TaskInfo, Version
from proctor.api.people import Whoami
from proctor.client import hub
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import need_context
from proctor.client.hub import EnvironmentReference, parse_reference
from proctor.errors import ConfigError
from proctor.packages import loading as packages
from proctor.packages.archive import ArchiveError, unpack
from proctor.packages.catalog import canonical_name, installed_versions
from proctor.packages.task_files import Batch
from proctor.task import Task

T = TypeVar("T")

TASKS_UNKNOWN = "tasks_unknown"
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class FetchedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a hub whose source is here."""

    reference: str
    """`owner/name@version`."""
    version: Version
    found: packages.EnvironmentLocation


def fetch_package(name: str, environ: Mapping[str, str]) -> FetchedPackage:
    """Fetch the source of `owner/name` or `owner/name@version`, unless it is here already."""

    async def work(server: ServerConnection) -> FetchedPackage:
        wanted = await resolve_reference(server, name)
        version = await hub.read_version(server, wanted)
        reference = f"{wanted.slug}@{version.version}"
        check_dependencies(reference, version)
        module = packages.module_name(wanted.slug)
        folder = cache_folder(version) / module
        if not folder.is_dir():
            await unpack_source(server, wanted, version, folder)
        found = packages.EnvironmentLocation(env_id=reference, module=module, path=folder)
        return FetchedPackage(reference=reference, version=version, found=found)

    return call_hub(work, environ)


def fetch_tasks(name: str, environ: Mapping[str, str]) -> Batch:
    """The tasks of a version: as the server lists them or, where it cannot list all, read from the source."""

    async def work(server: ServerConnection) -> tuple[str, list[TaskInfo] | None]:
        wanted = await resolve_reference(server, name)
        version = await hub.read_version(server, wanted)
        exact = EnvironmentReference(wanted.slug, version.version)
        try:
            listed = await hub.list_tasks(server, exact)
        except ServerError as error:
            if error.code != TASKS_UNKNOWN:
                raise
            listed = []
        is_whole = bool(listed) and len(listed) == version.check.tasks
        return f"{exact.slug}@{exact.version}", listed if is_whole else None

    reference, listed = call_hub(work, environ)
    if listed is None:
        return read_fetched_tasks(reference, environ)
    if not all(row.template for row in listed):
        raise not_a_taskset(reference)
    return Batch(name=reference, tasks=[build_task(row) for row in listed], package=reference)


def build_task(row: TaskInfo) -> Task:
    return Task(
        id=row.slug,
        env=row.env,
        template=row.template,
        args=dict(row.args),
        columns=dict(row.columns),
    )


def read_fetched_tasks(reference: str, environ: Mapping[str, str]) -> Batch:
    """The tasks and environments of a version, from its source."""
    batch = packages.load_tasks(fetch_package(reference, environ).found)
    if batch is None:
        raise not_a_taskset(reference)
    return msgspec.structs.replace(batch, name=reference, package=reference)


def not_a_taskset(reference: str) -> ConfigError:
    return ConfigError(
        f"{reference} has a load_environment() and no tasks made from templates, so it is not a taskset; "
        f"evaluate it with `proctor eval run {reference}`."
    )


async def resolve_reference(server: ServerConnection, name: str) -> EnvironmentReference:
    """`owner/name[@version]`; a name without an owner is yours."""
    if "/" in name:
        return parse_reference(name)
    return parse_reference(f"{(await server.get('/whoami', Whoami)).user.name}/{name}")


def call_hub(work: Callable[[ServerConnection], Coroutine[Any, Any, T]], environ: Mapping[str, str]) -> T:
    """Call the server you are logged in to; waits for it, also where an event loop is running."""
    context = need_context(environ)

    async def main() -> T:
        async with ServerConnection(context) as server:
            return await work(server)

    with ThreadPoolExecutor(1) as thread:  # a loop that runs here cannot run another
        return thread.submit(lambda: asyncio.run(main())).result()


def cache_folder(version: Version) -> Path:
    return platformdirs.user_cache_path("proctor") / "environments" / version.source_sha256


async def unpack_source(
    server: ServerConnection, wanted: EnvironmentReference, version: Version, folder: Path
) -> list[str]:
    """Unpack the source of a version beside the folder, and give it the name once it is whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".proctor-pull-", dir=folder.parent))
    try:
        source = scratch / "source.tar.gz"
        await hub.download_source(server, wanted, version, source)
        try:
            files = unpack(source, scratch / "files")
        except ArchiveError as error:
            raise ConfigError(f"{wanted.slug} {version.version} is not unpacked: {error}") from error
        names = [path.relative_to(scratch / "files").as_posix() for path in files]
        move_into_place(scratch / "files", folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return names


def move_into_place(files: Path, folder: Path) -> None:
    try:
        files.rename(folder)
    except OSError as error:
        if not folder.is_dir():
            raise ConfigError(f"Cannot write {folder}: {error.strerror}.") from error
        # Another process fetched the same at the same moment.


def check_dependencies(reference: str, version: Version) -> None:
    """Refuse before any code runs if a dependency is not installed."""
    missing = list_missing(version.dependencies, installed_versions())
    if missing:
        raise ConfigError(
            f"{reference} needs {', '.join(missing)}, which this Python lacks; install it with `proctor env "
            f"install {reference}`, or run it on the server with --hosted."
        )


def list_missing(requirements: Iterable[str], installed: Mapping[str, str]) -> list[str]:
    """The packages of unconditional requirements that are not installed."""
    plain = (line for line in requirements if ";" not in line)
    names = (found[0] for line in plain if (found := REQUIREMENT_NAME.match(line.strip())))
    return [name for name in names if canonical_name(name) not in installed]
