"""`proctor eval history`: the score of an environment or of a recipe over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.commands.server_calls import call_server
from proctor.cli.commands.shared_options import dir_option, json_option, limit_option
from proctor.cli.views.history import hosted_entry, show_history, stored_entry
from proctor.cli.views.stdout import print_json
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.api.runs import RunInfo
    from proctor.client.connection import ServerConnection
    from proctor.store.index import StoredRun

SHOWN_RUNS = 20


@click.command("history", short_help="Show scores over time, with intervals.")
@click.argument("word", metavar="FILE|ENVIRONMENT")
@click.option("-m", "--model", help="For an environment: only runs of this model.")
@dir_option
@limit_option(SHOWN_RUNS)
@json_option
def history_command(word: str, model: str | None, dirs: tuple[str, ...], most: int, as_json: bool) -> None:
    """Show runs over time, the newest first, with intervals drawn on one scale.

    With FILE, a recipe, show its runs on the server, over commits; runs belong together if nothing in the
    recipe differs except the commit or the branch. With ENVIRONMENT, show its runs on this machine.

    \b
    proctor eval history gsm8k -m gpt-4.1-mini
    proctor eval history configs/eval/my-rollout.toml
    """
    limit = None if most < 0 else most
    if word.endswith(".toml"):
        if model is not None or dirs:
            raise ConfigError(
                "-m and --dir are for the runs of an environment on this machine; leave them out."
            )
        show_recipe(Path(word), limit, as_json)
        return
    runs = find_stored_runs(word, model, dirs)
    if not runs:
        raise ConfigError(f"No runs of {word!r} on this machine; `proctor jobs` lists those there are.")
    if as_json:
        print_json({"environment": word, "runs": runs[:limit]})
    else:
        show_history([stored_entry(run) for run in runs[:limit]], len(runs))


def find_stored_runs(word: str, model: str | None, dirs: tuple[str, ...]) -> list[StoredRun]:
    from proctor.store.index import read_run, run_folders, search_folders

    runs = [read_run(folder) for folder in run_folders(search_folders(dirs))]
    named = [run for run in runs if run.env == word and model in (None, run.model)]
    return sorted(named, key=lambda run: -run.started_at)


def show_recipe(config: Path, most: int | None, as_json: bool) -> None:
    from proctor.client import runs
    from proctor.config.experiment import read_recipe
    from proctor.projects.checkout import find_own_repository

    wanted = runs.RunFilter(
        config_hash=read_recipe(config).recipe.hash,
        repository=find_own_repository(config.parent) or None,
    )

    async def read(server: ServerConnection) -> list[RunInfo]:
        found, _ = await runs.list_runs(server, wanted, most)
        return [await runs.read_run(server, run.id) for run in found]

    found = call_server(read)
    if as_json:
        print_json({"config_hash": wanted.config_hash, "runs": found})
        return
    show_history([hosted_entry(run) for run in found], len(found), "submit one with proctor eval submit")
