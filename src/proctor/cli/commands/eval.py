"""`proctor eval`: read the arguments, run one evaluation or a suite, show the results."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import replace

from proctor.cli.commands.hosted_requests import (
    build_requests,
    refuse_hosted_fields,
    refuse_hosted_flags,
    refuse_local_flags,
)
from proctor.cli.commands.hud_flags import hud_options, translate_hud_flags
from proctor.cli.exits import exit_code, exit_process
from proctor.cli.options import complete_parameter, flag_of, parse_given, settings_options
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import adopt_context, need_context
from proctor.config.experiment import is_recipe, parse_recipe
from proctor.config.schema import EvalConfig, HostedOptions, Presentation, RecipeOptions
from proctor.config.sources import FLAG
from proctor.config.suite import Suite, ignored_flags, parse_environments, read_suite
from proctor.config.toml_file import TomlFile, read_toml
from proctor.errors import ConfigError, FileError, StoreError
from proctor.support.logs import log_printed, run_context
from proctor.support.output_capture import OutputCapture

if TYPE_CHECKING:  # --help must not load the engine
    from proctor.cli.live.watching import EvaluationRequest
    from proctor.config.suite import SuiteEntry
    from proctor.evaluation.evaluate import Prepared, Result
    from proctor.evaluation.suite import EvaluationOutcome


COMMANDS = {
    "list": "proctor.cli.commands.hosted_runs:list_command",
    "info": "proctor.cli.commands.hosted_runs:info_command",
    "logs": "proctor.cli.commands.hosted_runs:logs_command",
    "samples": "proctor.cli.commands.hosted_runs:samples_command",
    "edit": "proctor.cli.commands.hosted_runs:edit_command",
    "share": "proctor.cli.commands.hosted_runs:share_command",
    "stop": "proctor.cli.commands.hosted_runs:stop_command",
    "resume": "proctor.cli.commands.hosted_runs:resume_command",
    "wait": "proctor.cli.commands.hosted_runs:wait_command",
    "delete": "proctor.cli.commands.hosted_runs:delete_command",
    "submit": "proctor.cli.commands.submit:submit_command",
    "history": "proctor.cli.commands.history:history_command",
    "download": "proctor.cli.commands.submitted_runs:download_command",
    "push": "proctor.cli.commands.hosted_push:push_command",
    "export": "proctor.cli.commands.export:export_command",
    "rescore": "proctor.cli.commands.rescore:rescore_command",
    "rerun": "proctor.cli.commands.rerun:rerun_command",
    "changed": "proctor.cli.commands.rerun:changed_command",
    "compare": "proctor.cli.commands.compare:compare_command",
    "gate": "proctor.cli.commands.gate:gate_command",
    "label": "proctor.cli.commands.label:label_command",
    "agreement": "proctor.cli.commands.agreement:agreement_command",
    "plan": "proctor.cli.commands.plan:plan_command",
    "estimate": "proctor.cli.commands.estimate:estimate_command",
}
"""Imported when they are called."""
LIMITS_OVER_SUITES = ("max_cost",)
"""Settings whose flags act beside a suite as well: a budget that is silently ignored costs money."""
SYNONYMS = {"get": "info"}
"""What other tools call them."""


class EvalGroup(click.Group):
    """`proctor eval X …` means `proctor eval run X …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = [SYNONYMS.get(args[0], args[0]), *args[1:]] if args else args
        first = args[0] if args else ""
        if first and first not in self.list_commands(ctx) and first not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *COMMANDS]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Commands, and what may follow `run`, which may be left out."""
        environments = run_command.params[0].shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *environments]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group("eval", cls=EvalGroup)
def eval_group() -> None:
    """Evaluate a model on an environment."""


@eval_group.command("run")
@click.argument("env_id", metavar="ENVIRONMENT", shell_complete=complete_parameter)
@click.argument("agent", required=False, shell_complete=complete_parameter)
@click.option("--all", "all_tasks", is_flag=True, help="Evaluate every task, as -n -1 does.")
@settings_options(EvalConfig, Presentation, HostedOptions, RecipeOptions)
@hud_options
def run_command(**values: Any) -> None:
    """Evaluate a model on ENVIRONMENT: an installed package, a folder in ./environments, a path, or several
    separated by commas. A path to a TOML file is a suite of evaluations or, with [experiment], a recipe of
    one rollout in a project.

    Where the environment leaves its turns to an agent, AGENT works on the tasks: claude, openai, gemini,
    openai_compatible, your own as file.py:Name, or the name of a model, which works in the plain tool loop.

    \b
    proctor eval run echo -m scripted -n 3
    proctor eval run tasks.py claude --all --group 3
    proctor eval run my-env -m openai/gpt-4.1-mini -n 10 -r 3 -s
    proctor eval run configs/eval/my-benchmark.toml
    proctor eval run configs/eval/my-rollout.toml --rows 3,7,10-20
    proctor eval run ada/gsm8k@1.2.0 -m openai/gpt-4.1-mini --hosted --follow
    """
    words = parse_arguments(values)
    entries, shown, file = words.entries, words.shown, words.file
    if shown.disable_tui and shown.fullscreen:
        raise ConfigError("-d turns the live display off and -f makes it fill the screen; give one of them.")
    configure_logging(shown.verbose)
    if words.on_server:
        run_on_server(words)
        return
    asked = prepare_all(entries, shown, file)
    if words.fresh and not shown.dry_run:
        archive_earlier(asked)
    run_requests(asked, shown)


def run_requests(asked: Sequence[EvaluationRequest], shown: Presentation) -> None:
    """Run prepared evaluations, show their results and exit; or only show what would be played."""
    for why in dict.fromkeys(explain_endpoint(each) for each in asked):
        if why:
            echo(why, err=True)
    if shown.dry_run:
        from proctor.cli.views.dry_run import show_dry_runs

        show_dry_runs([each.prepared for each in asked], as_json=shown.json)
        return
    from proctor.cli.live.watching import run_with_display

    with redirect_stdout(sys.stderr):
        ended, interrupted = run_with_display(asked, shown)
    show_results(ended, shown)
    push(ended)
    codes = [exit_code(each.result, each.prepared.config.min_coverage, interrupted) for each in ended]
    exit_process(max(codes))


class EvalArguments(msgspec.Struct, frozen=True):
    """The options from the command line and from the suite it names, if any."""

    entries: Sequence[SuiteEntry]
    shown: Presentation
    hosted: dict[str, Any]
    """Flags for a server."""
    on_server: bool
    file: Path | None = None
    fresh: bool = False
    """Archive earlier runs first."""


def parse_recipe_arguments(
    file: TomlFile,
    settings: dict[str, Any],
    shown: dict[str, Any],
    hosted: dict[str, Any],
    beside: dict[str, Any],
) -> EvalArguments:
    """The evaluation that a recipe asks for, in this process or, first, in that of its rollout."""
    from proctor.cli.commands.recipes import build_entry, refuse_flags

    refuse_flags(file.path, settings, shown, hosted)
    options = RecipeOptions(**beside)
    entry = build_entry(parse_recipe(file), settings, shown, options)
    return EvalArguments([entry], Presentation(**shown), {}, False, fresh=options.fresh)


def parse_arguments(values: dict[str, Any]) -> EvalArguments:
    """The requested evaluations, where to run them, and how to show them."""
    values = translate_hud_flags(values)
    settings, shown = parse_given(values, EvalConfig), parse_given(values, Presentation)
    hosted = parse_given(values, HostedOptions)
    on_server = bool(hosted.pop("hosted", False))
    if values["all_tasks"]:
        settings = with_all_tasks(settings)
    beside = parse_given(values, RecipeOptions)
    path = Path(values["env_id"])
    if path.suffix == ".toml" and is_recipe(file := read_toml(path)):
        return parse_recipe_arguments(file, settings, shown, {**hosted, "hosted": on_server}, beside)
    if beside:
        raise ConfigError(f"{flag_of(RecipeOptions, next(iter(beside)))} is for recipes; see --help.")
    if path.suffix != ".toml":
        check_flags_for_target(settings, shown, hosted, on_server)
        return EvalArguments(parse_environments(settings), Presentation(**shown), hosted, on_server)
    suite = with_limits(read_suite(path), settings)
    on_server = on_server or suite.hosted
    check_flags_for_target(settings, {**suite.presentation, **shown}, hosted, on_server)
    if not on_server and any(entry.hosted for entry in suite.entries):
        refuse_hosted_fields(suite.entries, suite.path)
    if ignored := ignored_flags(settings, suite):
        echo(f"No effect, because {suite.path} sets the evaluations: {', '.join(ignored)}.", err=True)
    presentation = Presentation(**{**suite.presentation, **shown})
    return EvalArguments(suite.entries, presentation, hosted, on_server, suite.path)


def with_limits(suite: Suite, settings: dict[str, Any]) -> Suite:
    """The suite with the limits that were given as flags, which hold for each of its evaluations."""
    given = {name: settings[name] for name in LIMITS_OVER_SUITES if name in settings}
    entries = [
        replace(
            entry, given={**entry.given, **given}, origins={**entry.origins, **dict.fromkeys(given, FLAG)}
        )
        for entry in suite.entries
    ]
    return replace(suite, entries=tuple(entries))


def check_flags_for_target(
    settings: dict[str, Any], shown: dict[str, Any], hosted: dict[str, Any], on_server: bool
) -> None:
    """Refuse, by name, settings that make no sense where the evaluations will be played."""
    if not (on_server or hosted):
        return

    if on_server:
        refuse_local_flags(settings, shown)
    else:
        refuse_hosted_flags(hosted)


def run_on_server(words: EvalArguments) -> None:
    from proctor.cli.commands.hosted import run_hosted

    team = need_context(os.environ).team
    asked = build_requests(words.entries, words.hosted, team, words.file)
    exit_process(run_hosted(asked, HostedOptions(**words.hosted), words.shown))


def with_all_tasks(settings: dict[str, Any]) -> dict[str, Any]:
    count = settings.get("num_examples", -1)
    if count != -1:
        raise ConfigError(f"--all takes every task, and -n {count} does not; give one of them.")
    return {**settings, "num_examples": -1}


def prepare_all(
    entries: Sequence[SuiteEntry], shown: Presentation, file: Path | None
) -> list[EvaluationRequest]:
    """Load every environment and resolve every endpoint; report all problems at once."""
    from proctor.cli.live.watching import EvaluationRequest
    from proctor.evaluation.evaluate import LATEST, NEWEST
    from proctor.evaluation.resume import evaluation_folder, give_distinct_label
    from proctor.evaluation.suite import count_endpoint_sharers
    from proctor.store.resume_rules import check_accepted

    if len(entries) > 1 and shown.resume not in (None, LATEST):
        raise ConfigError(
            f"{shown.resume} holds one run, but you asked for {len(entries)} evaluations; pass --resume "
            f"without a value to continue all of them."
        )
    check_accepted(shown.accept_changed, any(entry.resume or shown.resume for entry in entries))
    if shown.reuse is not None:
        check_reuse(shown, len(entries))
    adopt_context(os.environ)
    asked: list[EvaluationRequest] = []
    problems = []
    taken: set[Path] = set()
    for entry in entries:
        try:
            with OutputCapture(log_printed), run_context(len(asked)):
                prepared = give_distinct_label(prepare_entry(entry), taken)
                taken.add(evaluation_folder(prepared))
                prepared.check_workers()
            if prepared.config.save_to_hf_hub and not shown.dry_run:
                from proctor.listeners.hf_hub import check_hub

                check_hub(prepared.config)
            resume = entry.resume or shown.resume
            asked.append(
                EvaluationRequest(prepared, NEWEST if resume == LATEST and len(entries) > 1 else resume)
            )
        except FileError:  # a broken registry is the same for all
            raise
        except ConfigError as error:
            if file is None:
                raise
            problems.append((entry.line, str(error)))
    if problems:
        raise FileError(str(file), problems)
    aware = count_endpoint_sharers([each.prepared for each in asked])
    requests = [EvaluationRequest(prepared, each.resume) for prepared, each in zip(aware, asked, strict=True)]
    if shown.reuse is not None and not shown.dry_run:
        from proctor.cli.commands.rerun import with_reuse

        return [with_reuse(each, shown.reuse) for each in requests]
    return requests


def check_reuse(shown: Presentation, count: int) -> None:
    if shown.resume is not None:
        raise ConfigError(
            "--resume continues a run, and --reuse starts a new one from an old one; give one of them."
        )
    if count > 1:
        raise ConfigError(
            f"--reuse takes rollouts of one run, but you asked for {count} evaluations; ask for one."
        )


def prepare_entry(entry: SuiteEntry) -> Prepared:
    """One evaluation, its environment fetched if only the hub has it."""
    from proctor.cli.commands.hub_fetch import find_or_fetch
    from proctor.evaluation.evaluate import prepare

    found = find_or_fetch(entry.given["env_id"], entry.given.get("env_dir_path"))
    return prepare(entry.given, os.environ, entry.origins, found=found)


def archive_earlier(asked: Sequence[EvaluationRequest]) -> None:
    from proctor.evaluation.resume import archive_runs

    for each in asked:
        archive = archive_runs(each.prepared)
        if archive is not None:
            echo(f"Moved earlier runs to {archive}.", err=True)


def explain_endpoint(asked: EvaluationRequest) -> str:
    endpoint = asked.prepared.endpoint
    return f"Model {endpoint.model}: {endpoint.why}." if endpoint.why else ""


def show_results(ended: Sequence[EvaluationOutcome], shown: Presentation) -> None:
    """Results on stdout: each run in full, and several side by side after that."""
    from proctor.cli.views.report import show_report

    if len(ended) == 1:
        only = ended[0]
        if only.result is None:
            raise only.error or ConfigError("The run ended without a result.")
        if shown.json:
            print_json(result_document(only.result))
        else:
            show_report(only.result, only.prepared, examples=not shown.abbreviated_summary)
        return
    from proctor.cli.views.suite_rows import SuiteRow, suite_document
    from proctor.cli.views.suite_table import show_suite

    rows = [
        SuiteRow(
            name=each.prepared.name,
            model=each.prepared.endpoint.model,
            label=each.prepared.config.label,
            result=each.result,
            error=str(each.error or ""),
            min_coverage=each.prepared.config.min_coverage,
            own_price=each.prepared.endpoint.price is not None,
        )
        for each in ended
    ]
    if shown.json:
        print_json(suite_document(rows))
        return
    for each in ended:
        if each.result is not None:
            show_report(each.result, each.prepared, examples=not shown.abbreviated_summary)
    show_suite(rows)


def result_document(result: Result) -> dict[str, Any]:
    document = {"run": result.run, "folder": str(result.folder), "summary": result.summary}
    return document if result.early_stop is None else {**document, "early_stop": result.early_stop}


def push(ended: Sequence[EvaluationOutcome]) -> None:
    """Push results to the Hugging Face Hub if requested; report each failure and keep the results here."""
    for each in ended:
        config = each.prepared.config
        if config.save_to_hf_hub and each.result is not None:
            from proctor.listeners.hf_hub import push

            try:
                echo(f"Pushed to {push(each.result.folder, config)}", err=True)
            except StoreError as error:
                echo(f"Error: {error}", err=True)


def configure_logging(verbose: bool) -> None:
    """Enable every logger: a run's log has all of them, the display shows ours and all warnings."""
    level = logging.DEBUG if verbose else logging.INFO
    logging.getLogger("proctor").setLevel(level)
    logging.getLogger().setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.INFO)
