"""Submissions over HTTP: see what a recipe would play, play it."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from litestar import Router, post
from litestar.params import JSONBody
from msgspec.structs import replace
from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from proctor.api.runs import RunInfo
from proctor.api.sources import NewSubmission, RowsRequest, SelectedRows, SubmissionPreview
from proctor.config.experiment import Recipe
from proctor.projects.settings import RowChoice
from proctor.runner.repository.request import FetchRequest
from proctor.server.audit.changes import AuditDependency
from proctor.server.datasets.records import save_count
from proctor.server.gateway.models import ModelRoute
from proctor.server.hub.access import find_environment
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ConflictError, InvalidError, NotFoundError
from proctor.server.quotas import check_pending, check_storage
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    check_tables,
    run_idempotent,
)
from proctor.server.runs import queue
from proctor.server.runs.checking import need_valid
from proctor.server.runs.records import build_run_info
from proctor.server.runs.routes import describe_start
from proctor.server.runs.streams import name_reader
from proctor.server.secrets import resolution
from proctor.server.sources import builds, records, submission, submitted_rows
from proctor.server.sources.routes import need_full_commit, need_person
from proctor.server.storage.records import refer_to_files


class ResolvedSubmission(NamedTuple):
    """A submission, with everything it names found."""

    recipe: Recipe
    source: Row[Any]
    build: Row[Any]
    branch: str
    environment: str
    route: ModelRoute


@post("/submissions/preview", summary="What a recipe would play, and what it may cost", status_code=200)
async def preview_submission(
    data: JSONBody[NewSubmission], caller: CallerDependency, platform: PlatformDependency
) -> SubmissionPreview:
    found = await resolve_submission(platform, caller, data)
    run = submission.build_run_request(data, found.recipe, found.environment, caller, found.source)

    def work(connection: Connection) -> SubmissionPreview:
        available = resolution.list_available_names(connection, found.build.environment_id, may_write=True)
        return SubmissionPreview(
            commit_sha=found.build.commit_sha,
            branch=found.branch,
            author=found.build.author,
            subject=found.build.subject,
            environment=found.environment.partition("@")[0],
            version=found.build.version,
            model=found.route.name,
            estimate=submission.estimate_submission(connection, caller, run, data, found.route),
            missing_secrets=submission.find_missing_secrets(data, found.recipe, available),
        )

    return await platform.database.read(work)


@post("/submissions/rows", summary="Which rows of which dataset a recipe would play", status_code=200)
async def select_submitted_rows(
    data: JSONBody[RowsRequest], caller: CallerDependency, platform: PlatformDependency
) -> SelectedRows:
    need_person(caller, "runs:write")
    check_tables(data)
    recipe = submission.read_recipe_table(data.recipe, RowChoice(data.rows, data.offset))
    word = data.dataset or recipe.experiment.dataset
    version = await platform.database.read(submitted_rows.find_dataset, caller, word)
    if version.rows is None:
        version = await count_version(platform, caller, version)
    async with platform.reads.turn(name_reader(caller)):
        return await asyncio.to_thread(submitted_rows.select_for_recipe, recipe, version, data)


async def count_version(
    platform: Platform, caller: Caller, version: submitted_rows.FoundVersion
) -> submitted_rows.FoundVersion:
    """Count the rows of a version that was pushed without their number."""
    reader = name_reader(caller)
    with platform.previews.taking(reader):
        try:
            async with platform.blobs.local(version.sha256) as file:
                scan = await platform.inspector.count(reader, file, version.format)
        except FileNotFoundError as error:
            raise NotFoundError("This version was just deleted.") from error
    if scan.problem or not scan.total:
        raise InvalidError(
            scan.problem or "The dataset has no rows.", code="unreadable_rows", field="dataset"
        )
    await platform.database.write(save_count, version.id, scan.total, scan.columns)
    return replace(version, rows=scan.total)


@post("/submissions", summary="Play a recipe with the code of a commit")
async def add_submission(
    request: HttpRequest,
    data: JSONBody[NewSubmission],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> RunInfo:
    found = await resolve_submission(platform, caller, data)
    run = submission.build_run_request(data, found.recipe, found.environment, caller, found.source)
    await need_valid(platform, run)
    origin = submission.build_origin(data, found.recipe, found.source, found.build, found.branch)

    def work(connection: Connection) -> RunInfo:
        check_pending(connection, caller.user, platform.settings.quotas)
        check_storage(connection, caller.user, platform.settings.quotas)
        available = resolution.list_available_names(connection, found.build.environment_id, may_write=True)
        submission.refuse_missing_secrets(data, found.recipe, available)
        run_id = submission.start_submission(
            connection, caller, platform.vault, run, origin, data.name, found.route
        )
        return build_run_info(connection, queue.find_run(connection, run_id))

    started = audit.of(caller, "run.start", lambda made: made.id, work, describe_start(run))
    return await run_idempotent(request, platform, caller, started, RunInfo)


async def resolve_submission(platform: Platform, caller: Caller, new: NewSubmission) -> ResolvedSubmission:
    """Check the recipe, and have its rollout built at its commit, if that was not done before."""
    need_person(caller, "runs:write")
    check_tables(new)
    recipe = submission.read_submitted_recipe(new)
    route = platform.models.resolve(recipe.experiment.model_path)
    source = await platform.database.read(records.need_source, caller, new.source)
    commit = need_full_commit(new.commit_sha) if new.commit_sha else ""
    branch, rollout = new.branch, recipe.experiment.rollout
    build = None
    if commit:
        build = await platform.database.read(records.find_build, source.id, commit, rollout)
    if build is None:
        build, fetched_branch = await build_rollout(platform, caller, source, rollout, commit, branch)
        branch = branch or fetched_branch
    submission.check_files(build, recipe)
    slug = await platform.database.read(builds.environment_slug, build.environment_id)
    return ResolvedSubmission(recipe, source, build, branch, f"{slug}@{build.version}", route)


async def build_rollout(
    platform: Platform, caller: Caller, source: Row[Any], rollout: str, commit: str, branch: str
) -> tuple[Row[Any], str]:
    """Fetch a commit, and publish its rollout; returns the build and the branch it was found on."""
    name = builds.environment_name(source.name, rollout)
    if await platform.database.read(find_environment, source.owner, name) is None:
        await platform.main_index.check(name)
    wanted = FetchRequest(url=source.url, commit=commit, branch=branch, rollout=rollout, package=name)
    result = await platform.fetcher.fetch(source, wanted)
    push = await builds.read_package(result, source.owner, platform.blobs)

    def work(connection: Connection) -> Row[Any]:
        refer_to_files(connection, [push.wheel_blob.sha256, push.source_blob.sha256])
        size = push.wheel_blob.size + push.source_blob.size
        check_storage(connection, caller.user, platform.settings.quotas, size)
        builds.publish_build(connection, caller.user, source, rollout, push, result)
        made = records.find_build(connection, source.id, result.commit.commit, rollout)
        assert made is not None
        return made

    try:
        made = await platform.database.write(work)
    except IntegrityError as error:
        raise ConflictError("Another request built it at the same moment; submit again.") from error
    return made, result.commit.branch


router = Router(
    "", route_handlers=[preview_submission, select_submitted_rows, add_submission], tags=["sources"]
)
