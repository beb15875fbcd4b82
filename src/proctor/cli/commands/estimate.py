"""`proctor eval estimate`: what an evaluation will take, from a pilot, a past run, or the server's books."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.commands.hud_flags import hud_options
from proctor.cli.options import complete_parameter, settings_options
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.config.schema import EvalConfig, HostedOptions, Presentation
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.cli.commands.eval import EvalArguments
    from proctor.cli.live.watching import EvaluationRequest
    from proctor.evaluation.forecast import Forecast

PILOT_TASKS = 5


@click.command("estimate", short_help="Estimate tokens, cost and time from a small pilot.")
@click.argument("env_id", metavar="ENVIRONMENT", shell_complete=complete_parameter)
@click.argument("agent", required=False, shell_complete=complete_parameter)
@click.option("--all", "all_tasks", is_flag=True, help="Estimate for every task, as -n -1 does.")
@click.option(
    "--pilot",
    type=click.IntRange(min=1),
    default=PILOT_TASKS,
    show_default=True,
    help="Play one rollout of this many tasks, chosen at random. You pay for them.",
)
@click.option("--from", "run", metavar="RUN", help="Play nothing; use this earlier run as the pilot.")
@settings_options(EvalConfig, Presentation, HostedOptions)
@hud_options
def estimate_command(pilot: int, run: str | None, **values: Any) -> None:
    """Estimate what `proctor eval run` with the same arguments will take: tokens, cost and time, each with a
    95% range. It plays a small pilot, which the run can take over with --reuse; with --hosted, the server
    estimates from earlier rollouts and nothing is played.

    \b
    proctor eval estimate my-env -m openai/gpt-4.1-mini -n 500 -r 4
    proctor eval estimate my-env -m openai/gpt-4.1-mini --all --from latest
    proctor eval estimate ada/gsm8k -m openai/gpt-4.1-mini -n 500 --hosted
    """
    from proctor.cli.commands.eval import configure_logging, parse_arguments, prepare_all

    words = parse_arguments(values)
    configure_logging(words.shown.verbose)
    refuse_run_options(words)
    if words.on_server:
        estimate_on_server(words)
        return
    asked = prepare_all(words.entries, words.shown, words.file)
    if len(asked) > 1 and run is not None:
        raise ConfigError(f"--from takes one evaluation, but you asked for {len(asked)}; name one.")
    found = (
        [forecast_from(asked[0], run)] if run is not None else forecast_by_pilot(asked, pilot, words.shown)
    )
    if words.shown.json:
        print_json(found[0] if len(found) == 1 else {"forecasts": found})
        return
    from proctor.cli.views.forecast import show_forecasts

    show_forecasts(found)


def refuse_run_options(words: EvalArguments) -> None:
    given = {
        "--resume": words.shown.resume,
        "--reuse": words.shown.reuse,
        "--follow": words.hosted.get("follow"),
    }
    for flag, value in given.items():
        if value:
            raise ConfigError(f"{flag} is for `proctor eval run`; an estimate starts no run of its own.")


def estimate_on_server(words: EvalArguments) -> None:
    """What the server says the runs may cost."""
    from proctor.cli.commands.hosted import describe_estimate, fetch_estimates
    from proctor.cli.commands.hosted_requests import build_requests
    from proctor.client.contexts import need_context
    from proctor.support.loop import run_in_loop

    context = need_context(os.environ)
    asked = build_requests(words.entries, words.hosted, context.team, words.file)
    figures = run_in_loop(fetch_estimates(context, asked))
    if words.shown.json:
        print_json({"estimates": figures})
        return
    for each in figures:
        echo(describe_estimate(each))


def forecast_from(asked: EvaluationRequest, run: str) -> Forecast:
    from proctor.evaluation.forecast import forecast
    from proctor.store.index import find_run, read_run, search_folders

    folder = find_run(run, search_folders())
    pilot, environment = read_run(folder), asked.prepared.name
    if pilot.env not in ("", environment):
        echo(
            f"Run {pilot.id} is of {pilot.env}, not of {environment}; the estimate holds if their rollouts "
            f"are alike.",
            err=True,
        )
    return forecast(asked.prepared, folder)


def forecast_by_pilot(asked: list[EvaluationRequest], tasks: int, shown: Presentation) -> list[Forecast]:
    """Play one rollout of a few tasks of each evaluation, and extrapolate."""
    from proctor.cli.live.watching import EvaluationRequest, run_with_display
    from proctor.evaluation.forecast import choose_pilot, forecast

    pilots = [EvaluationRequest(choose_pilot(each.prepared, tasks, 1)) for each in asked]
    echo(f"Playing a pilot of at most {tasks} rollouts for each evaluation.", err=True)
    with redirect_stdout(sys.stderr):
        ended, interrupted = run_with_display(pilots, shown)
    for each in ended:
        if each.result is None or each.result.run.status == "failed" or interrupted:
            raise each.error or ConfigError("The pilot did not finish, so there is nothing to estimate from.")
    return [
        forecast(each.prepared, done.result.folder)
        for each, done in zip(asked, ended, strict=True)
        if done.result is not None
    ]
