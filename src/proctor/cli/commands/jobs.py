"""`proctor jobs`: the runs that were made here, and the rollouts of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.cli.commands.shared_options import dir_option, json_option
from proctor.cli.options import complete_parameter
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json, write_stdout
from proctor.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from proctor.store.index import StoredRun

SHOWN_RUNS, SHOWN_ROLLOUTS = 20, 50
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
@dir_option
@json_option
def jobs_command(
    run: str | None, most: int | None, failed: bool, sort: str | None, dirs: tuple[str, ...], as_json: bool
) -> None:
    """List recent runs, or the rollouts of run ID: an id or its beginning, a folder, or 'latest'.

    \b
    proctor jobs
    proctor jobs latest --failed
    proctor jobs 1a2b --sort time -n 10
    """
    if run is None and (failed or sort):
        raise ConfigError("--failed and --sort apply to the rollouts of one run; name it: proctor jobs ID.")
    if run is None:
        list_runs(dirs, resolve_limit(most, SHOWN_RUNS), as_json)
    else:
        list_rollouts(run, dirs, resolve_limit(most, SHOWN_ROLLOUTS), failed, sort, as_json)


def resolve_limit(most: int | None, default: int) -> int | None:
    return default if most is None else None if most < 0 else most


def list_runs(dirs: tuple[str, ...], most: int | None, as_json: bool) -> None:
    from proctor.cli.views import jobs as jobs_view
    from proctor.cli.views import page
    from proctor.store.index import join_with_or, read_run, run_folders, search_folders

    where = search_folders(dirs)
    folders = run_folders(where)
    runs = [read_run(folder) for folder in folders[:most]]
    if as_json:
        print_json({"runs": [run_document(each) for each in runs], "found": len(folders)})
    elif not folders:
        echo(
            f"No runs in {join_with_or(where)}; start one with proctor eval run ENVIRONMENT.",
            err=True,
        )
    else:
        page.print_lines(jobs_view.run_lines(runs, len(folders), page.page_width()))


def list_rollouts(
    word: str, dirs: tuple[str, ...], most: int | None, failed: bool, sort: str | None, as_json: bool
) -> None:
    from proctor.cli.views import jobs as jobs_view
    from proctor.cli.views import page
    from proctor.store.index import find_run, read_run, search_folders
    from proctor.store.traces import RolloutCounts, list_briefs

    run = read_run(find_run(word, search_folders(dirs)))
    counted = RolloutCounts()
    found = list_briefs(run.folder, counted, failed=failed, sort=sort, most=most)
    try:
        if as_json:
            write_stdout(jobs_view.rollouts_json(run_document(run), found, counted))
        else:
            page.print_lines(jobs_view.rollout_lines(run, found, counted, failed, page.page_width()))
    except StoreError as error:
        raise ConfigError(str(error)) from error


def run_document(run: StoredRun) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(run, enc_hook=str)
    return built
