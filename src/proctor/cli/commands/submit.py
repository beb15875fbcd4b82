"""`proctor eval submit`: play a recipe on the server, with the code of a commit.

Everything is looked up and shown before anything is started. Knows nothing of how runs are drawn.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.api.people import Whoami
from proctor.api.runs import Permissions
from proctor.cli.commands.remote import call_server
from proctor.cli.commands.shared_options import FiniteRange, confirm, finite_float, json_option, yes_option
from proctor.cli.exits import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, exit_process, hosted_exit_code
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import need_context
from proctor.config.experiment import RecipeFile, read_recipe
from proctor.datasets.references import DatasetReference
from proctor.errors import ConfigError
from proctor.projects.checkout import Checkout, describe_left_out, read_checkout
from proctor.projects.layout import find_project

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")

if TYPE_CHECKING:
    from proctor.api.runs import RunInfo
    from proctor.api.sources import NewSubmission, SourceInfo, SubmissionPreview
    from proctor.client.connection import ServerConnection
    from proctor.projects.submission import SubmittedDataset


@click.command("submit")
@click.argument("config", type=click.Path(path_type=Path), metavar="FILE")
@yes_option
@click.option("--wait", is_flag=True, help="Follow the run until it ends, and show its report.")
@click.option(
    "--fail-under",
    type=finite_float,
    metavar="SCORE",
    help="Wait, and exit with 1 if the mean reward over all attempts, failed ones as 0, is less.",
)
@click.option(
    "--source", help="Where the code comes from; default: the source with this repository's origin."
)
@click.option("--name", "run_name", default="", help="The run's name; default: one that the server makes up.")
@click.option("--rows", default="", help="Rows to play instead of its limit, such as 3,7,10-20, from 0.")
@click.option("--offset", default=0, help="Rows to leave out before its limit counts.")
@click.option("--dataset-file", metavar="FILE", help="A dataset file to use instead of the one in data/.")
@click.option("--secrets-file", metavar="FILE", help="Its secrets, as JSON or NAME=VALUE lines; - for stdin.")
@click.option("--allow-network-access", is_flag=True, help="Let the rollout reach the internet.")
@click.option("--timeout-minutes", type=click.IntRange(1, 1440), default=120, show_default=True)
@click.option("--max-cost", type=FiniteRange(0, min_open=True), help="Stop it at this many dollars.")
@json_option
def submit_command(config: Path, **options: Any) -> None:
    """Play the recipe FILE on the server you are logged in to.

    The code comes from git: the recipe's commit_sha or branch, or else the branch you are on, as
    pushed. The settings come from your local FILE, and a dataset in data/ is pushed as a private dataset of
    yours.

    \b
    proctor eval submit configs/eval/my-rollout.toml
    proctor eval submit configs/eval/my-rollout.toml --yes --wait --fail-under 0.8
    """
    from proctor.cli.commands.recipes import read_secrets
    from proctor.client.dataset_files import locate
    from proctor.projects.settings import RowChoice, find_dataset
    from proctor.projects.submission import build_submission, read_dataset

    recipe = read_recipe(config)
    project = find_project(config.parent)
    checkout = read_checkout(project.root)
    choice = RowChoice(options["rows"], options["offset"])
    found = find_dataset(recipe, project, options["dataset_file"], os.environ)
    file = found if isinstance(found, Path) else locate(str(found), os.environ).path
    dataset = read_dataset(recipe, file, name_on_server(found), choice)
    given = {**os.environ, **read_secrets(options["secrets_file"])}
    values = {name: given[name] for name in recipe.recipe.secrets if given.get(name)}

    async def look_up(server: ServerConnection) -> tuple[NewSubmission, SubmissionPreview]:
        from proctor.client import sources

        source = await choose_source(server, options["source"], checkout)
        asked = build_submission(recipe, f"{source.owner}/{source.name}", dataset, checkout, choice, values)
        asked = add_options(asked, options)
        shown = await sources.preview(server, asked)
        return msgspec.structs.replace(asked, commit_sha=shown.commit_sha, branch=shown.branch), shown

    asked, preview = call_server(look_up)
    refuse_missing_secrets(recipe, preview)
    warnings = describe_left_out(checkout, preview.commit_sha)
    if not may_start(describe(recipe, dataset, preview), warnings, options["yes"], options["as_json"]):
        return
    run_submission(recipe, asked, dataset, options)


def name_on_server(found: Path | DatasetReference) -> DatasetReference:
    """A file of yours becomes a private dataset of yours, under its own name."""
    if not isinstance(found, Path):
        return found
    user = call_server(lambda server: server.get("/whoami", Whoami)).user.name
    return DatasetReference(user, NOT_IN_NAMES.sub("-", found.stem)[:100].strip("._-") or "dataset")


def add_options(asked: NewSubmission, options: dict[str, Any]) -> NewSubmission:
    return msgspec.structs.replace(
        asked,
        name=options["run_name"],
        permissions=Permissions(network=options["allow_network_access"]),
        timeout_minutes=options["timeout_minutes"],
        max_cost_usd=options["max_cost"],
    )


async def choose_source(server: ServerConnection, named: str | None, checkout: Checkout) -> SourceInfo:
    from proctor.cli.commands.source import find_source
    from proctor.client import sources

    if named is not None:
        return await find_source(server, named)
    if not checkout.repository:
        raise ConfigError(
            f"{checkout.root} has no remote 'origin'; `git remote add origin URL`, push, and add it with "
            f"`proctor source add URL`."
        )
    found = await sources.list_sources(server, checkout.repository)
    if not found:
        raise ConfigError(
            f"The server has no source for {checkout.repository}; add it with `proctor source add URL`."
        )
    if len(found) > 1:
        names = ", ".join(f"{each.owner}/{each.name}" for each in found)
        raise ConfigError(f"{checkout.repository} is {names} on the server; choose one with --source.")
    return found[0]


def refuse_missing_secrets(recipe: RecipeFile, preview: SubmissionPreview) -> None:
    if preview.missing_secrets:
        raise ConfigError(
            f"{recipe.locate('secrets', 'required')}: {', '.join(preview.missing_secrets)} not set; set the "
            f"variable, name a file with --secrets-file, or store it with `proctor secret set --env "
            f"{preview.environment}`."
        )


def describe(recipe: RecipeFile, dataset: SubmittedDataset, preview: SubmissionPreview) -> dict[str, Any]:
    """What the confirmation shows."""
    experiment, evaluation = recipe.recipe.experiment, recipe.recipe.evaluation
    rows, named = len(dataset.selection), dataset.version
    return {
        "rollout": experiment.rollout,
        "model": preview.model,
        "dataset": f"{dataset.path.name} as {named.owner}/{named.name}@{named.sha256[:12]}",
        "rows": rows,
        "selected": f"{dataset.selection.describe()}: {dataset.selection.short_ranges}",
        "attempts_per_row": evaluation.n,
        "attempts": rows * evaluation.n,
        "commit_sha": preview.commit_sha,
        "branch": preview.branch,
        "subject": preview.subject,
        "estimate": preview.estimate,
    }


def may_start(summary: dict[str, Any], warnings: list[str], yes: bool, as_json: bool) -> bool:
    """Show what would be played, and confirm; without a terminal, fail with the question."""
    from proctor.cli.views.submission import show_summary

    if as_json and not yes:
        print_json(
            {
                "code": "confirmation_required",
                "summary": summary,
                "warnings": warnings,
                "next_step": "pass --yes",
            }
        )
        exit_process(EXIT_USAGE)
    show_summary(summary, warnings)
    return yes or confirm("Submit it?", yes)


def run_submission(
    recipe: RecipeFile, asked: NewSubmission, dataset: SubmittedDataset, options: dict[str, Any]
) -> None:
    from proctor.cli.views.hosted_runs import show_run, started_text
    from proctor.client import sources

    key, url = secrets.token_hex(16), need_context(os.environ).url
    started = call_server(lambda server: sources.submit(server, asked, dataset.path, key))
    is_waited_for = options["wait"] or options["fail_under"] is not None
    if not is_waited_for:
        print_json({"run": started}) if options["as_json"] else echo(started_text(started, url))
        return
    echo(started_text(started, url), err=True)
    ended = follow_to_end(started, quiet=options["as_json"])
    coverage = float(recipe.recipe.advanced.get("min_coverage", 1.0))
    print_json({"run": ended}) if options["as_json"] else show_run(ended, url, coverage)
    code = hosted_exit_code(ended, coverage)
    exit_process(code or score_exit_code(ended, options["fail_under"]))


def follow_to_end(started: RunInfo, *, quiet: bool) -> RunInfo:
    from proctor.cli.live.hosted_follow import FollowInterruptedError, follow_all
    from proctor.cli.views.hosted_runs import detached_text
    from proctor.client.follow import FollowTimings
    from proctor.config.schema import Presentation

    async def follow(server: ServerConnection) -> RunInfo:
        shown = Presentation(disable_tui=quiet or not sys.stderr.isatty())
        followed = (await follow_all(server, [started], shown, FollowTimings()))[0]
        if followed.error is not None:
            raise followed.error
        return followed.run

    try:
        return call_server(follow)
    except FollowInterruptedError:
        echo(detached_text([started]), err=True)
        exit_process(EXIT_INTERRUPTED)
        raise


def score_exit_code(run: RunInfo, fail_under: float | None) -> int:
    """Whether the score reaches the bar: a failed attempt counts as 0, so that crashes cannot raise it."""
    if fail_under is None:
        return 0
    scores = (run.summary or {}).get("scores") or {}
    score = scores.get("reward_over_all")
    if isinstance(score, (int, float)) and score >= fail_under:
        return 0
    shown = "there is no score" if score is None else f"the score is {score:.3f}"
    echo(f"Failed: {shown}, and --fail-under asks for {fail_under:g}.", err=True)
    return EXIT_FAILED
