"""`proctor jobs`: the runs on this machine and on the server, and the rollouts of one of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.cli.commands.server_calls import call_server
from proctor.cli.commands.shared_options import dir_option, json_option
from proctor.cli.options import complete_parameter
from proctor.cli.views.escape import echo
from proctor.cli.views.lines import styled_line
from proctor.cli.views.stdout import print_json, write_stdout
from proctor.client.contexts import current_context
from proctor.errors import ConfigError, ProctorError, StoreError

if TYPE_CHECKING:
    from proctor.api.runs import RunInfo
    from proctor.client.connection import ServerConnection
    from proctor.store.index import StoredRun

SHOWN_RUNS, SHOWN_ROLLOUTS = 20, 50
SERVER_SECONDS = 5.0
"""How long a list waits for the server: what is here can be shown without it."""
SORTS = ("reward", "time", "tokens")


@click.command("jobs")
@click.argument("run", metavar="[ID]", required=False, shell_complete=complete_parameter)
@click.option(
    "-n",
    "most",
    type=click.IntRange(min=-1),
    metavar="N",
    help="Show this many; -1 shows all. [default: 20 runs, 50 rollouts]",
)
@click.option("--failed", is_flag=True, help="With ID: only rollouts that were not settled.")
@click.option("--sort", type=click.Choice(SORTS), help="With ID: worst, slowest or longest first.")
@click.option("--local", is_flag=True, help="Without ID: only runs on this machine; ask no server.")
@dir_option
@json_option
def jobs_command(
    run: str | None,
    most: int | None,
    failed: bool,
    sort: str | None,
    local: bool,
    dirs: tuple[str, ...],
    as_json: bool,
) -> None:
    """List recent runs, or the rollouts of run ID: an id or its beginning, a folder, or 'latest'.

    If you are logged in, the runs on the server are listed too; name one of those by its whole id.

    \b
    proctor jobs
    proctor jobs latest --failed
    proctor jobs 1a2b --sort time -n 10
    proctor jobs run-0f3a9c2b1d
    """
    if run is None and (failed or sort):
        raise ConfigError("--failed and --sort apply to the rollouts of one run; name it: proctor jobs ID.")
    if run is None:
        list_runs(dirs, resolve_limit(most, SHOWN_RUNS), as_json, ask_server=not (local or dirs))
    else:
        list_rollouts(run, dirs, resolve_limit(most, SHOWN_ROLLOUTS), failed, sort, as_json)


def resolve_limit(most: int | None, default: int) -> int | None:
    return default if most is None else None if most < 0 else most


def list_runs(dirs: tuple[str, ...], most: int | None, as_json: bool, *, ask_server: bool) -> None:
    from proctor.cli.views import jobs as jobs_view
    from proctor.cli.views import page
    from proctor.store.index import join_with_or, read_run, run_folders, search_folders

    where = search_folders(dirs)
    folders = run_folders(where)
    runs = [read_run(folder) for folder in folders[:most]]
    here = {folder.name for folder in folders}
    hosted, more = list_server_runs(most, here) if ask_server else ([], False)
    if as_json:
        documents = [run_document(each) for each in runs]
        print_json({"runs": documents, "found": len(folders), "hosted": hosted})
    elif not folders and not hosted:
        echo(
            f"No runs in {join_with_or(where)}; start one with proctor eval run ENVIRONMENT.",
            err=True,
        )
    else:
        width = page.page_width()
        lines = list(jobs_view.run_lines(runs, len(folders), width)) if runs else []
        if hosted:
            from proctor.cli.views.run_list import server_lines

            lines += [*([styled_line()] if lines else []), *server_lines(hosted, more, width)]
        page.print_lines(lines)


def list_server_runs(most: int | None, here: Collection[str]) -> tuple[list[RunInfo], bool]:
    """The newest runs on the server you are logged in to, without those that were uploaded from here; none if
    it does not answer soon."""
    context = current_context(os.environ)
    if context is None or not context.token:
        return [], False
    from proctor.client import runs

    async def ask(server: ServerConnection) -> tuple[list[RunInfo], bool]:
        return await asyncio.wait_for(runs.list_runs(server, runs.RunFilter(), most), SERVER_SECONDS)

    try:
        found, more = call_server(ask, context, tries=1)
    except (ProctorError, TimeoutError) as error:
        why = str(error) or f"it did not answer within {SERVER_SECONDS:g} s"
        echo(f"The runs on {context.url} are not listed: {why}", err=True)
        return [], False
    return [run for run in found if uploaded_from(run) not in here], more


def uploaded_from(run: RunInfo) -> str:
    """The name of the folder that a run was uploaded from; an upload's id adds a hash to it."""
    return (run.client_run_id or "").rpartition("-")[0]


def list_rollouts(
    word: str, dirs: tuple[str, ...], most: int | None, failed: bool, sort: str | None, as_json: bool
) -> None:
    from proctor.cli.commands.hosted_export import open_run
    from proctor.cli.views import jobs as jobs_view
    from proctor.cli.views import page
    from proctor.store.traces import RolloutCounts, list_briefs

    counted = RolloutCounts()
    try:
        with open_run(word, dirs) as run:
            found = list_briefs(run.folder, counted, failed=failed, sort=sort, most=most)
            if as_json:
                write_stdout(jobs_view.rollouts_json(run_document(run), found, counted))
            else:
                page.print_lines(jobs_view.rollout_lines(run, found, counted, failed, page.page_width()))
    except StoreError as error:
        raise ConfigError(str(error)) from error


def run_document(run: StoredRun) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(run, enc_hook=str)
    return {**built, "folder": None} if run.server else built  # it was only downloaded to be shown
