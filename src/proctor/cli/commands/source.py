"""`proctor source`: the git repositories that a server takes rollouts from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.api.sources import AddedSource, NewSource, SourceInfo
from proctor.cli.commands.server_calls import call_server, print_change
from proctor.cli.commands.shared_options import confirm, json_option, yes_option
from proctor.cli.hidden import STDIN
from proctor.cli.views.escape import echo
from proctor.cli.views.page import TableColumn, print_table
from proctor.cli.views.stdout import print_json
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.client.connection import ServerConnection


@click.group("source")
def source_group() -> None:
    """Git repositories that the server takes rollouts from."""


@source_group.command("add")
@click.argument("url")
@click.option("--name", default="", help="Its name on the server; default: the repository's.")
@click.option("--team", help="The team that owns it.")
@click.option(
    "--token-file", metavar="FILE", help="For https: a file with a token that may read it; - for stdin."
)
@click.option("--username", default="", help="For https: the user beside the token, where one is needed.")
@click.option("--key-file", metavar="FILE", help="For ssh: a private key, such as a deploy key; - for stdin.")
@json_option
def add_command(
    url: str,
    name: str,
    team: str | None,
    token_file: str | None,
    username: str,
    key_file: str | None,
    as_json: bool,
) -> None:
    """Add the git repository at URL, and fetch it once.

    \b
    proctor source add https://git.example.org/ada/agents.git --token-file token.txt
    proctor source add git@git.example.org:ada/agents.git --key-file deploy_key
    """
    from proctor.client import sources

    new = NewSource(
        url=url,
        name=name,
        team=team,
        token=read_credential(token_file).strip(),
        username=username,
        key=read_credential(key_file),
    )

    async def add(server: ServerConnection) -> tuple[AddedSource, str]:
        from proctor.client.connection import ServerError

        added = await sources.add_source(server, new)
        try:
            return AddedSource(
                source=await sources.sync_source(server, added.source.id, ""),
                webhook_secret=added.webhook_secret,
            ), ""
        except ServerError as error:
            return added, str(error)

    added, problem = call_server(add)
    if as_json:
        print_json({"source": added.source, "webhook_secret": added.webhook_secret, "problem": problem})
        return
    echo(f"Added {added.source.owner}/{added.source.name}: {describe_commit(added.source)}.")
    echo(
        f"To have pushes fetched at once, add a webhook with this address and secret:\n"
        f"  {added.source.webhook_url}\n  {added.webhook_secret}"
    )
    if problem:
        echo(f"Warning: it could not be fetched yet: {problem}", err=True)


def read_credential(file: str | None) -> str:
    if file is None:
        return ""
    try:
        return sys.stdin.read() if file == STDIN else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {file}: {error}.") from error


@source_group.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List your sources and your teams'."""
    from proctor.client import sources

    found = call_server(sources.list_sources)
    if as_json:
        print_json({"sources": found})
        return
    print_table(
        ("source", TableColumn("url", may_shrink=True), "commit", TableColumn("state", may_shrink=True)),
        (
            (f"{each.owner}/{each.name}", each.url, each.commit_sha[:12], describe_state(each))
            for each in found
        ),
        nothing="No sources; add one with proctor source add URL.",
    )


@source_group.command("sync")
@click.argument("source")
@click.option("--branch", default="", help="Fetch this branch; default: the repository's default branch.")
@json_option
def sync_command(source: str, branch: str, as_json: bool) -> None:
    """Fetch the newest commit of SOURCE now, as owner/name or by its id.

    Submitting fetches by itself; this shows whether the server can.
    """
    from proctor.client import sources

    async def sync(server: ServerConnection) -> SourceInfo:
        return await sources.sync_source(server, (await find_source(server, source)).id, branch)

    found = call_server(sync)
    print_change(found, f"{found.owner}/{found.name} is at {describe_commit(found)}.", as_json)


@source_group.command("remove")
@click.argument("source")
@yes_option
@json_option
def remove_command(source: str, yes: bool, as_json: bool) -> None:
    """Remove SOURCE and its credentials from the server; runs and versions made from it stay."""
    from proctor.client import sources

    found = call_server(lambda server: find_source(server, source))
    if not confirm(f"Remove {found.owner}/{found.name}?", yes):
        return
    call_server(lambda server: sources.remove_source(server, found.id))
    print_change({"removed": found.id}, f"Removed {found.owner}/{found.name}.", as_json)


async def find_source(server: ServerConnection, word: str) -> SourceInfo:
    """A source by its id, owner/name or, if that is clear, its name."""
    from proctor.client import sources

    known = await sources.list_sources(server)
    found = [each for each in known if word in (each.id, f"{each.owner}/{each.name}", each.name)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{each.owner}/{each.name}" for each in found)
        raise ConfigError(f"{word!r} can mean {names}; write one of them.")
    raise ConfigError(f"There is no source {word!r}; `proctor source list` lists yours.")


def describe_commit(source: SourceInfo) -> str:
    if not source.commit_sha:
        return "not fetched yet"
    count = len(source.rollouts)
    rollouts = f"{count} rollout{'' if count == 1 else 's'}"
    return f"{source.commit_sha[:12]} on {source.branch or 'no branch'} ({source.subject}), {rollouts}"


def describe_state(source: SourceInfo) -> str:
    return source.problem or (source.subject if source.commit_sha else "not fetched yet")
