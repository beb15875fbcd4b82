"""`proctor env`: create, install, list and check environments, here and on a hub."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.commands import hub
from proctor.cli.commands.shared_options import FiniteRange, env_dir_option, json_option
from proctor.cli.options import complete_parameter
from proctor.cli.views.environments import (
    checkup_document,
    open_status_line,
    show_entries,
    show_info,
    show_report,
)
from proctor.cli.views.escape import echo, strip_escapes
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import adopt_context
from proctor.config.sources import parse_json_object
from proctor.errors import ConfigError, InstallError
from proctor.packages import catalog, install, scaffold
from proctor.packages.scaffold import DEFAULT_STYLE, STYLES

if TYPE_CHECKING:
    from proctor.packages.install import InstallerCommand, InstallTarget

EXIT_FAILED = 1


@click.group("env")
def env_group() -> None:
    """Create, install, list and check environments; push them to a hub and pull them from it."""


for command in hub.COMMANDS:
    env_group.add_command(command)


@env_group.command("init")
@click.argument("name")
@click.option(
    "--style",
    metavar="STYLE",
    help=f"{', '.join([*STYLES][:-1])} or {[*STYLES][-1]}. [default: {DEFAULT_STYLE}]",
)
@env_dir_option
def init_command(name: str, style: str | None, env_dir: str) -> None:
    """Create an environment NAME that is ready to run.

    \b
    proctor env init my-env
    proctor env init my-shop --style tools
    """
    base = Path(env_dir)
    scaffold.plan(name, style or scaffold.DEFAULT_STYLE, base)  # refuse before asking anything
    chosen = style or (prompt_for_style() if sys.stdin.isatty() else scaffold.DEFAULT_STYLE)
    made = scaffold.plan(name, chosen, base)
    for path in scaffold.write(made):
        echo(f"wrote {path}")
    elsewhere = "" if base == Path("environments") else f" -p {shlex.quote(env_dir)}"
    echo(
        f"\nNext:\n"
        f"  proctor eval run {name} -m {scaffold.STYLES[chosen].model}{elsewhere}\n"
        f"  proctor env check {name}{elsewhere}\n"
        f"  pytest {shlex.quote(str(made.folder))}"
    )


def prompt_for_style() -> str:
    """A numbered choice with a default."""
    names = list(STYLES)
    for number, name in enumerate(names, 1):
        echo(f"  {number}  {name:<9} {STYLES[name].title}")
    default = names.index(DEFAULT_STYLE) + 1
    number = click.prompt("Which style", type=click.IntRange(1, len(names)), default=default)
    return names[number - 1]


@env_group.command("install")
@click.argument("what", nargs=-1, required=True, metavar="WHAT…")
@env_dir_option
@click.option("-U", "--upgrade", is_flag=True, help="Take the newest version even if one is installed.")
@click.option("--dry-run", is_flag=True, help="Print the commands; run nothing.")
def install_command(what: tuple[str, ...], env_dir: str, upgrade: bool, dry_run: bool) -> None:
    """Install environments: local ones by name or folder, published ones as owner/name, others as for pip.

    \b
    proctor env install my-env                     ./environments/my_env, linked
    proctor env install ./some/folder other==1.2 dist/third-0.1.0-py3-none-any.whl
    proctor env install owner/name@0.2.0           from the hub you are logged in to
    """
    chosen_hub = hub.current_hub(os.environ)
    targets = [install.resolve_target(word, env_dir, chosen_hub) for word in what]
    commands = install.commands_for(targets, upgrade=upgrade)
    if dry_run:
        for command in commands:
            echo(shlex.join(command.words))
        return
    before = catalog.installed_versions()
    for command in commands:
        run_installer(command)
    show_installed(targets, before)


def run_installer(command: InstallerCommand) -> None:
    echo(f"Running {shlex.join(command.words)}", err=True)
    try:
        install.run_installer(command, os.environ)
    except InstallError as error:
        for line in error.last_lines:
            echo(f"  {strip_escapes(line)}", err=True)
        raise


def show_installed(targets: Sequence[InstallTarget], before: dict[str, str]) -> None:
    """Say what was installed, and how to run it."""
    importlib.invalidate_caches()
    after = catalog.installed_versions()
    asked = {target.name: target for target in targets if target.name}
    environments = {catalog.canonical_name(entry.name): entry for entry in catalog.list_installed()}
    fresh = [name for name, version in after.items() if before.get(name) != version]
    for name in dict.fromkeys([*asked, *(name for name in fresh if name in environments)]):
        linked = asked[name].path if name in asked else None
        where = f" (linked to {linked})" if linked else ""
        echo(f"Installed {name} {after.get(name, '')}{where}.")
        if name in environments:
            echo(f"  proctor eval run {name} -m local")
        elif name in after:
            echo(f"  {name} has no load_environment(), so it is not an environment.", err=True)


@env_group.command("list")
@env_dir_option
@hub.listing_options
@json_option
def list_command(env_dir: str, as_json: bool, **wanted: object) -> None:
    """List environments: in ./environments, registered by plugins, installed. Imports none of them.

    With --hub, or any other option that applies to a hub, list those on the hub.
    """
    if any(wanted.values()):
        hub.list_hub(wanted, as_json)
        return
    entries = catalog.list_environments(env_dir)
    print_json(entries) if as_json else show_entries(entries)


@env_group.command("info")
@click.argument("name")
@click.option(
    "-a", "--env-args", default="{}", metavar="JSON", help="JSON object passed to load_environment()."
)
@env_dir_option
@json_option
def info_command(name: str, env_args: str, env_dir: str, as_json: bool) -> None:
    """Show environment NAME: its arguments, defaults, tasks, reward functions and tools.

    For one on a hub, owner/name or owner/name@version: its versions, who may see it, how its check went.
    """
    if hub.is_hub_reference(name):
        hub.show_hub_info(name, as_json)
        return

    from proctor.checkup.info import describe_environment

    arguments = parse_json_object(env_args, "--env-args")
    with redirect_stdout(sys.stderr):  # an environment's own output is not a result
        info = describe_environment(name, env_dir, arguments)
    print_json(info) if as_json else show_info(info)
    if info.problem:
        raise click.exceptions.Exit(EXIT_FAILED)


@env_group.command("check")
@click.argument("name")
@click.option(
    "-a", "--env-args", default="{}", metavar="JSON", help="JSON object passed to load_environment()."
)
@click.option(
    "-n", "--tasks", default=5, show_default=True, type=click.IntRange(min=1), help="Tasks to play."
)
@click.option("-m", "--model", help="Model for the environment's own calls, such as a judge's.")
@click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    type=FiniteRange(min=0, min_open=True),
    help="Seconds for each step: loading, and starting, playing or scoring a rollout.",
)
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option(
    "--with",
    "run",
    multiple=True,
    metavar="RUN",
    shell_complete=complete_parameter,
    help="Also examine the tasks with the results of this run, or of all runs in a folder; repeatable.",
)
@env_dir_option
@json_option
def check_command(
    name: str,
    env_args: str,
    tasks: int,
    model: str | None,
    timeout: float,
    strict: bool,
    run: tuple[str, ...],
    env_dir: str,
    as_json: bool,
) -> None:
    """Check whether environment NAME is fit to measure with. Exit code 1 if it is not.

    It is loaded twice, and played by agents of known quality: one gives the gold answers, one says nothing,
    two are wrong. docs/packages.md explains every code. With past runs, it names tasks that no model solves,
    that every model solves or answers alike, that are nearly the same, and that mislead.

    \b
    proctor env check my-env
    proctor env check my-env --with latest --with 1a2b --with results/evals
    """
    from proctor.checkup.checkup import run_checkup
    from proctor.checkup.messages import CheckupRequest

    order = CheckupRequest(
        env_id=name,
        env_dir=env_dir,
        arguments=parse_json_object(env_args, "--env-args"),
        tasks=tasks,
        seconds=timeout,
        model=model,
    )
    if model is not None:
        adopt_context(os.environ)
    with ExitStack() as stack:
        runs = locate_past_runs(run, stack)
        report_status = stack.enter_context(open_status_line())
        report = run_checkup(order, report_status, runs)
    if as_json:
        print_json(checkup_document(report))
    else:
        show_report(report)
    if not report.passes(strict):
        raise click.exceptions.Exit(EXIT_FAILED)


def locate_past_runs(words: Sequence[str], stack: ExitStack) -> list[Path]:
    from proctor.cli.commands.located_runs import locate_runs

    if not words:
        return []
    folders, exports = locate_runs(words, (), stack)
    if exports:
        raise ConfigError(f"{exports[0]} is an export, which has no conversations; name its run with --with.")
    return folders
