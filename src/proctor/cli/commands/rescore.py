"""`proctor eval rescore`: score a run's rollouts again from their record."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from typing import Any

import click

from proctor.cli.commands.rerun import run_argument
from proctor.cli.commands.shared_options import dir_option, json_option, limit_option
from proctor.cli.exits import exit_code, exit_process
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.config.schema import Presentation
from proctor.config.sources import parse_json_object
from proctor.errors import ConfigError

SHOWN_TASKS = 20


@click.command("rescore", short_help="Score a run again from its record.")
@run_argument
@click.option(
    "--env", "env", metavar="ENVIRONMENT", help="Score with this environment instead of the run's own."
)
@click.option(
    "-a", "--env-args", metavar="JSON", help="Arguments of load_environment() instead of the run's."
)
@click.option("-o", "--output-dir", metavar="DIR", help="Base of the new run's folder; default: the run's.")
@click.option(
    "-c",
    "--max-concurrent",
    type=click.IntRange(min=1),
    help="Rollouts to score at once. [default: the run's]",
)
@click.option("-d", "--disable-tui", is_flag=True, help="No live display.")
@dir_option
@limit_option(SHOWN_TASKS)
@json_option
def rescore_command(
    run: str,
    env: str | None,
    dirs: tuple[str, ...],
    most: int,
    as_json: bool,
    disable_tui: bool,
    **values: Any,
) -> None:
    """Score the rollouts of a run again, from what was recorded: after a change to the rubric, the parser, a
    judge's prompt or the answers. The evaluated model is not called. A judge is called again only where its
    prompt, its model or its sampling has changed; otherwise its recorded reply counts.

    The result is a new run whose metadata names the old one, and a table of changed scores. Rollouts that
    failed before they could be scored are kept as they are. State that your own code kept for scoring must
    have been saved with -C.

    \b
    proctor eval rescore latest
    proctor eval rescore 1a2b3c4d --env ./stricter.py
    """
    from proctor.cli.commands.eval import configure_logging
    from proctor.cli.live.watching import EvaluationRequest, run_with_display
    from proctor.cli.views.report import show_report
    from proctor.cli.views.reuse import moves_document, show_moves
    from proctor.client.contexts import adopt_context
    from proctor.endpoints.endpoint import SharedEndpoint
    from proctor.evaluation.recorded_settings import prepare_rescoring, read_recorded_settings
    from proctor.evaluation.reuse import plan_rescore
    from proctor.evaluation.score_moves import find_moves
    from proctor.store.index import find_run, search_folders
    from proctor.support.logs import log_printed, run_context
    from proctor.support.output_capture import OutputCapture

    configure_logging(False)
    adopt_context(os.environ)
    folder = find_run(run, search_folders(dirs))
    overrides = parse_overrides(env, values)
    with OutputCapture(log_printed), run_context(0):
        prepared, model = prepare_rescoring(read_recorded_settings(folder), overrides, os.environ)
    plan = plan_rescore(prepared, folder)
    report_left_out(plan.left_out)
    shown = Presentation(disable_tui=disable_tui, json=as_json)
    with redirect_stdout(sys.stderr):
        request = EvaluationRequest(prepared, reuse=plan, service=SharedEndpoint(model))
        ended, interrupted = run_with_display([request], shown)
    result = ended[0].result
    if result is None:
        raise ended[0].error or ConfigError("The run ended without a result.")
    moves = find_moves(plan, result.folder)
    if as_json:
        print_json(moves_document(result, plan, moves))
    else:
        show_report(result, prepared, examples=False)
        show_moves(plan, moves, None if most < 0 else most)
    exit_process(exit_code(result, prepared.config.min_coverage, interrupted))


def parse_overrides(env: str | None, values: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in values.items() if value is not None}
    if "env_args" in given:
        given["env_args"] = parse_json_object(given["env_args"], "--env-args")
    return given if env is None else {**given, "env_id": env}


def report_left_out(left_out: tuple[Any, ...]) -> None:
    if left_out:
        some = ", ".join(map(str, left_out[:5])) + (" …" if len(left_out) > 5 else "")
        tasks = "1 task" if len(left_out) == 1 else f"{len(left_out):,} tasks"
        echo(f"{tasks} of the run {'is' if len(left_out) == 1 else 'are'} no longer there: {some}.", err=True)
