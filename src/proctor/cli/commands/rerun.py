"""`proctor eval rerun` and `eval changed`: a recorded evaluation again, and what of it still holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from proctor.cli.commands.shared_options import dir_option, json_option, limit_option
from proctor.cli.options import complete_parameter, parse_given, settings_options
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.config.schema import EvalConfig, Presentation
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.cli.live.watching import EvaluationRequest
    from proctor.evaluation.prepare import Prepared
    from proctor.evaluation.reuse import ReusePlan

F = TypeVar("F", bound=Callable[..., Any])
SHOWN_DECISIONS = 20

run_argument = click.argument("run", metavar="RUN|latest", shell_complete=complete_parameter)
env_option = click.option(
    "--env",
    "env",
    metavar="ENVIRONMENT",
    help="The environment to use, if it is no longer where it was.",
)


@click.command("rerun", short_help="Run a recorded evaluation again.")
@run_argument
@env_option
@settings_options(EvalConfig, Presentation)
@dir_option
def rerun_command(run: str, env: str | None, dirs: tuple[str, ...], **values: Any) -> None:
    """Run an earlier evaluation again, with its recorded settings and today's code. Options you pass override
    the recorded ones.

    \b
    proctor eval rerun latest
    proctor eval rerun 1a2b3c4d -r 5
    proctor eval rerun 1a2b3c4d --reuse 1a2b3c4d
    """
    from proctor.cli.commands.eval import check_reuse, configure_logging, run_requests
    from proctor.cli.live.watching import EvaluationRequest

    shown = Presentation(**parse_given(values, Presentation))
    if shown.resume is not None:
        raise ConfigError("`eval rerun` starts a new run; continue one with `eval run … --resume`.")
    configure_logging(shown.verbose)
    prepared = prepare_recorded(run, env, dirs, parse_given(values, EvalConfig))
    prepared.check_workers()
    request = EvaluationRequest(prepared)
    if shown.reuse is not None:
        check_reuse(shown, 1)
        request = request if shown.dry_run else with_reuse(request, shown.reuse, dirs)
    run_requests([request], shown)


@click.command("changed", short_help="Say what is still valid in a run, and why.")
@run_argument
@env_option
@settings_options(EvalConfig)
@dir_option
@limit_option(SHOWN_DECISIONS, "--show")
@json_option
def changed_command(
    run: str, env: str | None, dirs: tuple[str, ...], most: int, as_json: bool, **values: Any
) -> None:
    """Compare a run with today's code, tasks and settings, and say for every rollout whether its row can be
    reused, must be scored again, or must be played again, and why. Nothing is run; `eval run --reuse RUN` and
    `eval rerun RUN --reuse RUN` do what this says.

    \b
    proctor eval changed latest
    proctor eval changed 1a2b3c4d -T 0.7
    """
    from proctor.cli.views.reuse import decision_lines, reuse_document
    from proctor.evaluation.reuse import plan_reuse
    from proctor.store.index import find_run, search_folders

    folder = find_run(run, search_folders(dirs))
    plan = plan_reuse(prepare_recorded(run, env, dirs, parse_given(values, EvalConfig)), folder)
    if as_json:
        print_json(reuse_document(plan))
        return
    from proctor.cli.views import page

    page.print_lines(decision_lines(plan, None if most < 0 else most, page.page_width()))


def prepare_recorded(run: str, env: str | None, dirs: tuple[str, ...], settings: dict[str, Any]) -> Prepared:
    """The evaluation that a run was of, with other settings where some are given."""
    from proctor.client.contexts import adopt_context
    from proctor.evaluation.recorded_settings import prepare_again, read_recorded_settings
    from proctor.store.index import find_run, search_folders
    from proctor.support.logs import log_printed, run_context
    from proctor.support.output_capture import OutputCapture

    adopt_context(os.environ)
    recorded = read_recorded_settings(find_run(run, search_folders(dirs)))
    overrides = {**settings, **({} if env is None else {"env_id": env})}
    with OutputCapture(log_printed), run_context(0):
        return prepare_again(recorded, overrides, os.environ)


def with_reuse(request: EvaluationRequest, run: str, dirs: tuple[str, ...] = ()) -> EvaluationRequest:
    """The same request, with what it takes from an earlier run."""
    from proctor.evaluation.reuse import plan_reuse
    from proctor.store.index import find_run, search_folders

    plan = plan_reuse(request.prepared, find_run(run, search_folders(dirs)))
    echo(describe_counts(plan), err=True)
    return msgspec.structs.replace(request, reuse=plan)


def describe_counts(plan: ReusePlan) -> str:
    from proctor.cli.views.reuse import count_text

    return f"From run {plan.origin.run_id}: {count_text(plan)}."
