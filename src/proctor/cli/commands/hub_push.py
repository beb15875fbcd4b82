"""Push a folder, and get one back: what happens between the files here and the hub.

Knows nothing of how it is shown.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.api.hub import PushForm, PushResult, Version, Visibility
from proctor.api.people import Whoami
from proctor.client import hub
from proctor.client.connection import ServerConnection
from proctor.client.hub import EnvironmentReference
from proctor.errors import ConfigError
from proctor.evaluation.hub_source import unpack_source
from proctor.packages import versioning
from proctor.packages.archive import digest
from proctor.packages.build import PROJECT_FILE, Package, build_package, pack_source
from proctor.packages.scaffold import FIRST_VERSION
from proctor.packages.task_project import TaskProject, write_task_project


class PushRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to push, and how."""

    folder: Path
    tasks: TaskProject | None = None
    """Tasks without a pyproject.toml, which are packed instead of the folder."""
    visibility: Visibility | None = None
    team: str | None = None
    auto_bump: bool = False
    wait: bool = False


class PushOutcome(msgspec.Struct, frozen=True, kw_only=True):
    pushed: PushResult
    files: int
    raised_from: str | None = None
    """The version that pyproject.toml named before."""


def push_document(outcome: PushOutcome) -> dict[str, Any]:
    pushed: dict[str, Any] = msgspec.to_builtins(outcome.pushed)
    return {**pushed, "raised_from": outcome.raised_from}


async def push(
    server: ServerConnection, request: PushRequest, report_status: Callable[[str], None]
) -> PushOutcome:
    """Pack, build and send; pyproject.toml is changed only when the hub has taken the new version."""
    with tempfile.TemporaryDirectory(prefix="proctor-push-") as scratch:
        report_status(f"Building {request.folder}")
        if request.tasks is not None:
            folder = await stage_tasks(server, request, request.tasks, Path(scratch))
            request = replace(request, folder=folder, auto_bump=False)
        file = request.folder / PROJECT_FILE
        package = build_package(request.folder, make_subfolder(scratch, "first"))
        raised = await next_free_version(server, request, package) if request.auto_bump else None
        content = versioning.with_version(file, raised) if raised else b""
        if raised:
            package = build_package(
                request.folder, make_subfolder(scratch, "raised"), {PROJECT_FILE: content}
            )
        form = PushForm(owner=request.team, visibility=request.visibility, content_hash=package.content_hash)
        report_status(f"Pushing {package.name} {package.version}")
        pushed = await hub.push(server, form, package.wheel, package.source)
    before = versioning.read_version(file) if raised else None
    if raised:
        file.write_bytes(content)
    if request.wait:
        report_status("Waiting for the check")
        version = await hub.wait_for_check(server, pushed.environment.slug, pushed.version.version)
        pushed = replace(pushed, version=version)
    return PushOutcome(pushed=pushed, files=package.files, raised_from=before)


async def stage_tasks(
    server: ServerConnection, request: PushRequest, tasks: TaskProject, scratch: Path
) -> Path:
    """Tasks as a folder with a pyproject.toml: under the newest version if the hub has exactly this, else
    under the next."""
    owner = request.team or (await server.get("/whoami", Whoami)).user.name
    known = await hub.list_known_versions(server, EnvironmentReference(f"{owner}/{tasks.name}"))
    newest = known[0].version if known else FIRST_VERSION
    folder = scratch / "newest" / tasks.name
    folder.parent.mkdir()
    write_task_project(tasks, newest, folder)
    packed = scratch / "newest.tar.gz"
    pack_source(folder, packed, {})
    with packed.open("rb") as content:
        if not known or digest(content) == known[0].source_sha256:
            return folder
    raised = scratch / tasks.name
    write_task_project(tasks, versioning.bump_version(newest, [each.version for each in known]), raised)
    return raised


def make_subfolder(scratch: str, name: str) -> Path:
    folder = Path(scratch) / name
    folder.mkdir()
    return folder


async def next_free_version(server: ServerConnection, request: PushRequest, package: Package) -> str | None:
    """The next version, if the folder's is taken by other content."""
    declared = versioning.read_version(request.folder / PROJECT_FILE)
    owner = request.team or (await server.get("/whoami", Whoami)).user.name
    known = await hub.list_known_versions(server, EnvironmentReference(f"{owner}/{package.name}"))
    same = next((each for each in known if each.version == package.version), None)
    if same is None or same.content_hash == package.content_hash:
        return None
    return versioning.bump_version(declared, [each.version for each in known])


async def pull(
    server: ServerConnection, wanted: EnvironmentReference, folder: Path
) -> tuple[Version, list[str]]:
    """Write the source of a version into a new folder, all of it or none."""
    if folder.exists():
        raise ConfigError(f"{folder} already exists; name another folder with --target.")
    version = await hub.read_version(server, wanted)
    return version, await unpack_source(server, wanted, version, folder)
