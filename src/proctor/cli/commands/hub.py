"""The part of `proctor env` that talks to a hub: push, pull, versions, requirement, fork, share and more."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from proctor.api.hub import Collaborator, EnvironmentChange, EnvironmentInfo
from proctor.cli.commands.server_calls import call_server
from proctor.cli.commands.shared_options import confirm_deletion, env_dir_option, json_option, yes_option
from proctor.cli.views.environments import open_status_line
from proctor.cli.views.escape import echo, strip_escapes
from proctor.cli.views.hub import (
    describe_run_policy,
    show_check,
    show_collaborators,
    show_environment,
    show_environments,
    show_file,
    show_pushed,
    show_versions,
)
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import current_context, need_context
from proctor.errors import ConfigError, InstallError
from proctor.packages.install import HUB_VARIABLE, ON_A_HUB, Hub, local_folder
from proctor.packages.loading import module_name
from proctor.packages.requirement import pip_requirement, uv_project

if TYPE_CHECKING:
    from proctor.client.connection import ServerConnection
    from proctor.packages.install import Hub
    from proctor.packages.task_project import TaskProject

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

EXIT_FAILED = 1
MAX_BYTES = 100_000

visibility_option = click.option(
    "--visibility",
    type=click.Choice(["public", "private"]),
    help="Who can see it. [default for new environments: private]",
)
team_option = click.option("--team", metavar="NAME", help="The owning team, instead of you.")


def current_hub(environ: Mapping[str, str]) -> Hub | None:
    """The hub to install from: the one PROCTOR_HUB_URL names, or the server you are logged in to."""
    named = environ.get(HUB_VARIABLE, "").rstrip("/")
    context = current_context(environ)
    if context is not None and named in ("", context.url):
        return Hub(context.url, context.token)
    return Hub(named) if named else None  # a token of one server is not shown to another


def current_team(team: str | None) -> str | None:
    return team or need_context(os.environ).team


def is_hub_reference(word: str) -> bool:
    """Whether a word means something on a hub: owner/name, and no folder or file here."""
    return ON_A_HUB.fullmatch(word) is not None and not Path(word).exists()


# Pushing and pulling


@click.command("push")
@click.argument("what", default=".", metavar="[PATH|NAME]")
@env_dir_option
@visibility_option
@team_option
@click.option(
    "--name", metavar="NAME", help="Name for tasks without a pyproject.toml. [default: their folder's]"
)
@click.option("--auto-bump", is_flag=True, help="Bump the version in pyproject.toml if it is taken.")
@click.option(
    "--skip-existing", is_flag=True, help="Exit with 0 if the hub already has exactly this content."
)
@click.option("--wait/--no-wait", default=False, help="Wait for the server's check; exit code 1 if it fails.")
@json_option
def push_command(
    what: str,
    env_dir: str,
    visibility: str | None,
    team: str | None,
    name: str | None,
    auto_bump: bool,
    skip_existing: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Push an environment's wheel and source to the hub, as one immutable version.

    Tasks need no package: a tasks.py or env.py stands for its folder, and each change gets the next version.

    \b
    proctor env push                                 the current folder
    proctor env push my-env --visibility public      ./environments/my_env
    proctor env push my-env --auto-bump --wait
    proctor env push tasks.py --name letters         the folder of tasks.py, as letters
    """
    from proctor.cli.commands.hub_push import PushRequest, push, push_document

    folder, tasks = plan_push(what, env_dir, name)
    order = PushRequest(
        folder=folder,
        tasks=tasks,
        visibility=visibility,  # type: ignore[arg-type]
        team=current_team(team),
        auto_bump=auto_bump,
        wait=wait,
    )
    try:
        with open_status_line() as report_status:
            outcome = call_server(lambda server: push(server, order, report_status))
    except InstallError as error:
        for line in error.last_lines:
            echo(f"  {strip_escapes(line)}", err=True)
        raise
    pushed = outcome.pushed
    print_json(push_document(outcome)) if as_json else show_pushed(outcome)
    if wait and not as_json:
        show_check(pushed.version.check)
    if not pushed.created and not skip_existing:
        echo(
            "Error: the hub already has exactly this, so nothing was pushed; --skip-existing accepts that.",
            err=True,
        )
        raise click.exceptions.Exit(EXIT_FAILED)
    if wait and pushed.version.check.status == "failed":
        raise click.exceptions.Exit(EXIT_FAILED)


def plan_push(what: str, env_dir: str, name: str | None) -> tuple[Path, TaskProject | None]:
    """The folder to push, and the package to make of its tasks if it is none yet."""
    from proctor.packages.task_project import plan_task_project

    source = require_source(what, env_dir)
    tasks = plan_task_project(source, name)
    if name is not None and tasks is None:
        raise ConfigError(f"{source} takes its name from its pyproject.toml; leave out --name.")
    return source if source.is_dir() else source.parent, tasks


def require_source(what: str, env_dir: str) -> Path:
    """The folder of an environment, or a file of tasks."""
    path = Path(what).expanduser()
    if path.is_file():
        return path
    folder = local_folder(what, env_dir) or (path if path.is_dir() else None)
    if folder is None:
        raise ConfigError(
            f"No environment {what!r} here; give its folder, a file of tasks, or its name in {env_dir}."
        )
    return folder


@click.command("pull")
@click.argument("what", metavar="OWNER/NAME[@VERSION]")
@click.option(
    "-t", "--target", type=click.Path(path_type=Path), help="Folder to create. [default: ./NAME as a module]"
)
@json_option
def pull_command(what: str, target: Path | None, as_json: bool) -> None:
    """Download an environment's source into a new folder; existing files are never touched."""
    from proctor.cli.commands.hub_push import pull
    from proctor.client.hub import parse_reference

    wanted = parse_reference(what)
    folder = target or Path(module_name(wanted.slug.partition("/")[2]))
    version, files = call_server(lambda server: pull(server, wanted, folder))
    if as_json:
        print_json({"environment": wanted.slug, "version": version, "folder": str(folder), "files": files})
    else:
        echo(f"Wrote {len(files)} files of {wanted.slug} {version.version} to {folder}.")


# Looking


def listing_options(command: F) -> F:
    """Options that only apply to a hub."""
    for option in reversed(
        (
            click.option("--hub", is_flag=True, help="List the hub's environments."),
            click.option("-s", "--search", metavar="TEXT", help="On the hub: search names and descriptions."),
            click.option("--owner", metavar="NAME", help="On the hub: owned by this user or team."),
            click.option("--tag", metavar="TAG", help="On the hub: with this tag."),
            click.option(
                "--mine", is_flag=True, help="On the hub: yours, your teams', and those shared with you."
            ),
            click.option("--visibility", type=click.Choice(["public", "private"]), help="On the hub."),
            click.option(
                "--sort", type=click.Choice(["name", "created_at", "updated_at"]), help="On the hub."
            ),
            click.option(
                "-n", "--limit", type=click.IntRange(1, 1000), help="On the hub: at most this many."
            ),
            click.option(
                "--cursor", metavar="CURSOR", help="On the hub: continue where the last list ended."
            ),
        )
    ):
        command = option(command)
    return command


def list_hub(wanted: Mapping[str, object], as_json: bool) -> None:
    from proctor.client import hub

    given = {name: value for name, value in wanted.items() if value and name != "hub"}
    page = call_server(lambda server: hub.list_environments(server, **given))
    print_json(page) if as_json else show_environments(page)


def show_hub_info(what: str, as_json: bool) -> None:
    from proctor.client import hub

    wanted = hub.parse_reference(what)

    async def ask(server: ServerConnection) -> Any:
        info = await hub.read_environment(server, wanted)
        has_any = info.latest is not None or wanted.has_version
        return info, await hub.read_version(server, wanted) if has_any else None

    info, version = call_server(ask)
    if as_json:
        print_json({**msgspec.to_builtins(info), "version": version})
    else:
        show_environment(info, version)


@click.command("versions")
@click.argument("what", metavar="OWNER/NAME")
@json_option
def versions_command(what: str, as_json: bool) -> None:
    """List the versions of an environment on the hub, the newest first."""
    from proctor.client import hub

    found = call_server(lambda server: hub.list_versions(server, hub.parse_reference(what)))
    print_json({"items": found}) if as_json else show_versions(found)


@click.command("requirement")
@click.argument("what", metavar="OWNER/NAME[@VERSION]")
@click.option("--uv", is_flag=True, help="Print it for the pyproject.toml of a project that uv manages.")
def requirement_command(what: str, uv: bool) -> None:
    """Print a requirement for an environment on the hub, as a line for requirements.txt.

    No package of the same name on another index can be installed in its place.
    """
    from proctor.client import hub

    wanted = hub.parse_reference(what)
    version = call_server(lambda server: hub.read_version(server, wanted))
    owner, _, name = wanted.slug.partition("/")
    written = uv_project if uv else pip_requirement
    echo(written(need_context(os.environ).url, owner, name, version).rstrip())


@click.command("inspect")
@click.argument("what", metavar="OWNER/NAME[@VERSION]")
@click.argument("path", default="")
@click.option("--max-bytes", default=MAX_BYTES, show_default=True, type=click.IntRange(1, 2**20))
@json_option
def inspect_command(what: str, path: str, max_bytes: int, as_json: bool) -> None:
    """Read a file of an environment on the hub, or list a folder, without downloading it."""
    from proctor.client import hub

    found = call_server(lambda server: hub.read_file(server, hub.parse_reference(what), path, max_bytes))
    print_json(found) if as_json else show_file(found)


# Changing


@click.command("delete")
@click.argument("what", metavar="OWNER/NAME[@VERSION]")
@yes_option
@json_option
def delete_command(what: str, yes: bool, as_json: bool) -> None:
    """Delete an environment from the hub, or one version of it."""
    from proctor.client import hub

    wanted = hub.parse_reference(what)
    whole = what if wanted.has_version else f"{what} with all its versions"
    if not confirm_deletion(whole, yes):
        return
    call_server(lambda server: hub.delete(server, wanted))
    print_json({"deleted": what}) if as_json else echo(f"Deleted {whole}.")


@click.command("fork")
@click.argument("what", metavar="OWNER/NAME[@VERSION]")
@team_option
@json_option
def fork_command(what: str, team: str | None, as_json: bool) -> None:
    """Copy an environment on the hub to your own name or a team's. The copy is private."""
    from proctor.client import hub

    made = call_server(lambda server: hub.fork(server, hub.parse_reference(what), current_team(team)))
    print_json(made) if as_json else echo(f"{made.slug} is a copy of {made.forked_from}.")


@click.command("visibility")
@click.argument("what", metavar="OWNER/NAME")
@click.argument("visibility", type=click.Choice(["public", "private"]))
@json_option
def visibility_command(what: str, visibility: str, as_json: bool) -> None:
    """Change who can see an environment on the hub."""
    from proctor.client import hub

    change = EnvironmentChange(visibility=visibility)  # type: ignore[arg-type]
    info = call_server(lambda server: hub.change_environment(server, hub.parse_reference(what), change))
    print_json(info) if as_json else echo(f"{info.slug} is {info.visibility}.")


@click.command("run-policy")
@click.argument("what", metavar="OWNER/NAME")
@click.argument("policy", type=click.Choice(["readers", "writers", "default"]), required=False)
@json_option
def run_policy_command(what: str, policy: str | None, as_json: bool) -> None:
    """Show or change who may run an environment on the server.

    \b
    readers      everyone who may read it
    writers      only those who may change it
    default      as the server's operator has chosen
    """
    from proctor.client import hub

    wanted = hub.parse_reference(what)

    async def ask(server: ServerConnection) -> EnvironmentInfo:
        if policy is None:
            return await hub.read_environment(server, wanted)
        return await hub.change_environment(server, wanted, EnvironmentChange(run_policy=policy))  # type: ignore[arg-type]

    info = call_server(ask)
    print_json(info) if as_json else echo(describe_run_policy(info))


@click.command("share")
@click.argument("what", metavar="OWNER/NAME")
@click.argument("who", required=False)
@click.option("--role", type=click.Choice(["read", "write", "owner"]), default="read", show_default=True)
@click.option("--remove", is_flag=True, help="Remove the role.")
@json_option
def share_command(what: str, who: str | None, role: str, remove: bool, as_json: bool) -> None:
    """Give a user or a team a role on an environment; without WHO, list all roles."""
    from proctor.client import hub

    wanted = hub.parse_reference(what)
    if who is None and remove:
        raise ConfigError("--remove needs the user or team that loses the role.")

    async def ask(server: ServerConnection) -> list[Collaborator]:
        if who is not None and remove:
            await hub.unshare(server, wanted, who)
        elif who is not None:
            await hub.share(server, wanted, Collaborator(name=who, role=role))  # type: ignore[arg-type]
        return await hub.list_collaborators(server, wanted)

    found = call_server(ask)
    print_json({"items": found}) if as_json else show_collaborators(wanted.slug, found)


COMMANDS = (
    push_command,
    pull_command,
    versions_command,
    requirement_command,
    inspect_command,
    fork_command,
    visibility_command,
    run_policy_command,
    share_command,
    delete_command,
)
