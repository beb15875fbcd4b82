"""`proctor eval run --hosted`: start evaluations on a server and, with --follow, follow them.

Several runs are started in one request, all or none, and every started run is reported at once.
Knows nothing of how options are parsed or how runs are drawn.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from proctor.api.runs import Estimate, RunInfo
from proctor.cli.commands.hosted_requests import HostedRunRequest
from proctor.cli.commands.hub_fetch import is_here
from proctor.cli.exits import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, hosted_exit_code
from proctor.cli.live.hosted_follow import FollowedRun, FollowInterruptedError, follow_all
from proctor.cli.views.escape import echo, one_line
from proctor.cli.views.hosted_runs import detached_text, estimate_text, show_run, started_text
from proctor.cli.views.stdout import print_json
from proctor.client import runs
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context, need_context
from proctor.client.follow import FollowTimings
from proctor.config.schema import HostedOptions, Presentation
from proctor.support.loop import run_in_loop

ESTIMATE_SECONDS = 10.0
NOT_FOUND = "not_found"


def run_hosted(run_requests: Sequence[HostedRunRequest], hosted: HostedOptions, shown: Presentation) -> int:
    """Start all runs, follow them if requested, show their results; return the exit code."""
    context = need_context(os.environ)
    if shown.dry_run:
        show_requests(run_requests, run_in_loop(fetch_estimates(context, run_requests)), shown)
        return 0
    return run_in_loop(start_and_follow(context, run_requests, hosted, shown))


async def fetch_estimates(
    context: Context, run_requests: Sequence[HostedRunRequest]
) -> list[Estimate | None]:
    async with ServerConnection(context) as server:
        return await estimate_all(server, run_requests, refuse=True)


async def start_and_follow(
    context: Context, run_requests: Sequence[HostedRunRequest], hosted: HostedOptions, shown: Presentation
) -> int:
    async with ServerConnection(context) as server:
        figures = await estimate_all(server, run_requests)
        for text in dict.fromkeys(estimate_text(each) for each in figures if each is not None):
            if text:
                echo(text, err=True)
        started = await start_all(server, run_requests, quiet=hosted.follow or shown.json)
        if not hosted.follow:
            if shown.json:
                print_json(runs_document(context, started, figures))
            return 0
        try:
            ended = await follow_all(server, started, shown, FollowTimings(poll=hosted.poll_interval))
        except FollowInterruptedError:
            echo(detached_text(started), err=True)
            return EXIT_INTERRUPTED
    show_finished_runs(context, ended, run_requests, figures, shown)
    codes = [
        followed_exit_code(each, run_request.min_coverage)
        for each, run_request in zip(ended, run_requests, strict=True)
    ]
    return max(codes)


async def estimate_all(
    server: ServerConnection, run_requests: Sequence[HostedRunRequest], *, refuse: bool = False
) -> list[Estimate | None]:
    """Estimate each cost; a server that cannot answer soon does not delay the start. A run that the server
    would refuse is an error here only if nothing is going to be started, which would report it."""

    async def one(run_request: HostedRunRequest) -> Estimate | None:
        try:
            with suppress(TimeoutError):
                return await asyncio.wait_for(runs.estimate(server, run_request.new), ESTIMATE_SECONDS)
        except ServerError as error:
            if refuse and not error.is_transient:
                raise
        return None

    return list(await asyncio.gather(*map(one, run_requests)))


async def start_all(
    server: ServerConnection, run_requests: Sequence[HostedRunRequest], *, quiet: bool
) -> list[RunInfo]:
    """Start all runs, or none: the server checks every one of them first."""
    key = secrets.token_hex(16)
    try:
        if len(run_requests) == 1:
            started = [await runs.start(server, run_requests[0].new, key=key)]
        else:
            started = await runs.start_all(server, [run_request.new for run_request in run_requests], key=key)
    except ServerError as error:
        raise suggest_pushing(error, run_requests) from error
    for run in started:
        echo(started_text(run, server.context.url), err=quiet)
    return started


def suggest_pushing(error: ServerError, run_requests: Sequence[HostedRunRequest]) -> ServerError:
    """The same error, with the next step where an environment is here and was not found on the server."""
    if error.code != NOT_FOUND:
        return error
    refused = [each["index"] for each in error.problem.details.get("runs", ())] or range(len(run_requests))
    names = dict.fromkeys(run_requests[index].new.environment for index in refused)
    here = [name for name in names if is_here(name, "./environments")]
    if not here:
        return error
    commands = ", ".join(f"`proctor env push {name.rpartition('/')[2]}`" for name in here)
    message = f"{error.problem.message} Publish what is only on this machine with {commands}."
    return ServerError(msgspec.structs.replace(error.problem, message=message), error.status)


def show_finished_runs(
    context: Context,
    ended: Sequence[FollowedRun],
    run_requests: Sequence[HostedRunRequest],
    figures: Sequence[Estimate | None],
    shown: Presentation,
) -> None:
    for each in ended:
        if each.error is not None:
            echo(f"Error: {each.run.id} can no longer be followed: {each.error}", err=True)
    if shown.json:
        print_json(runs_document(context, [each.run for each in ended], figures))
        return
    for each, run_request in zip(ended, run_requests, strict=True):
        if each.error is None:
            show_run(each.run, context.url, run_request.min_coverage)


def followed_exit_code(followed: FollowedRun, min_coverage: float) -> int:
    if followed.error is not None:
        return EXIT_USAGE if followed.error.is_usage else EXIT_FAILED
    return hosted_exit_code(followed.run, min_coverage)


def show_requests(
    run_requests: Sequence[HostedRunRequest], figures: Sequence[Estimate | None], shown: Presentation
) -> None:
    """Show the requests; secrets appear by name only."""
    requests = [
        {**msgspec.to_builtins(run_request.new), "custom_secrets": sorted(run_request.new.custom_secrets)}
        for run_request in run_requests
    ]
    if not shown.json:
        for each in figures:
            echo(describe_estimate(each), err=True)
    print_json({"requests": requests, "estimates": figures})


def describe_estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "The server did not answer, so the request was not checked."
    return estimate_text(estimate) or f"The server cannot estimate the cost. {one_line(estimate.basis)}"


def runs_document(
    context: Context, started: Sequence[RunInfo], figures: Sequence[Estimate | None]
) -> dict[str, Any]:
    return {"server": context.url, "runs": started, "estimates": figures}
