"""`proctor dataset`: validate dataset files, keep them on a server, and get them back."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.api.datasets import DatasetChange, DatasetPushResult, DatasetVersion
from proctor.cli.commands.server_calls import call_server
from proctor.cli.commands.shared_options import confirm_deletion, json_option, yes_option
from proctor.cli.views.datasets import (
    format_size,
    show_dataset,
    show_datasets,
    show_file_report,
    show_preview,
    show_pushed,
    show_validation,
)
from proctor.cli.views.environments import open_status_line
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import need_context
from proctor.datasets.cache import DatasetCache, copy_whole
from proctor.datasets.dataset import DatasetReport, preview, validate
from proctor.datasets.files import FORMATS, DataRow, find_scanner, hash_file
from proctor.datasets.references import LATEST, DatasetReference, find_reference, parse_reference
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.client.connection import ServerConnection

EXIT_FAILED = 1
MOST_PREVIEWED = 1_000


@click.group("dataset")
def dataset_group() -> None:
    """Validate datasets, push them to a server, and pull them from it.

    A dataset is a JSON Lines, CSV or Parquet file. On a server it is owner/name, and owner/name@hash is one
    content of it, which never changes.
    """


# Words


def is_file_word(word: str) -> bool:
    """Whether a word means a file here, rather than a dataset on a server."""
    return Path(word).exists() or (word.endswith(FORMATS) and find_reference(word) is None)


async def resolve_word(server: ServerConnection, word: str) -> DatasetReference:
    """owner/name, owner/name@hash, or the bare name of a dataset of yours or your teams'."""
    from proctor.client import datasets

    if "/" in word:
        return parse_reference(word)
    name, _, version = word.partition("@")
    found = await datasets.find_own(server, name)
    if found is None:
        raise ConfigError(f"Neither you nor your teams have a dataset {name!r}, and there is no such file.")
    return parse_reference(f"{found}@{version}") if version not in ("", LATEST) else found


# Pushing and pulling


@dataset_group.command("push")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="[default: the file's name without its ending]")
@click.option("--team", metavar="NAME", help="The owning team, instead of you.")
@click.option(
    "--visibility",
    type=click.Choice(["public", "private"]),
    help="Who can see it. [default for new datasets: private]",
)
@click.option("--description", metavar="TEXT", help="For lists. [default: unchanged]")
@click.option("--no-validate", is_flag=True, help="Do not read the rows first.")
@json_option
def push_command(
    file: Path,
    name: str | None,
    team: str | None,
    visibility: str | None,
    description: str | None,
    no_validate: bool,
    as_json: bool,
) -> None:
    """Push FILE to the server as a version of a dataset. Pushing the same content again adds no version.

    \b
    proctor dataset push data/capitals.jsonl
    proctor dataset push rows.parquet --name capitals --team geographers
    """
    from proctor.client.datasets import DatasetUpload

    find_scanner(file)
    with open_status_line() as report_status:
        report_status(f"Reading {file}")
        upload = DatasetUpload(
            path=file,
            format=file.suffix.lower().lstrip("."),
            visibility=visibility,  # type: ignore[arg-type]
            description=description,
            **({"sha256": hash_file(file)} if no_validate else read_facts(file)),
        )
        report_status(f"Pushing {file}")
        pushed = call_server(lambda server: push(server, name or file.stem, team, upload))
    print_json(pushed) if as_json else show_pushed(pushed)


def read_facts(file: Path) -> dict[str, Any]:
    """What the server shows of a file whose rows can all be read."""
    report = validate(file, for_recipes=False)
    report.raise_if_invalid()
    return {"sha256": report.sha256, "rows": report.rows, "columns": report.columns}


async def push(server: ServerConnection, name: str, team: str | None, upload: Any) -> DatasetPushResult:
    from proctor.api.people import Whoami
    from proctor.client import datasets

    owner = team or need_context(os.environ).team or (await server.get("/whoami", Whoami)).user.name
    return await datasets.push_dataset(server, owner, name, upload)


@dataset_group.command("pull")
@click.argument("what", metavar="NAME")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write. [default: the dataset's name in the current folder]",
)
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@json_option
def pull_command(what: str, output: Path | None, overwrite: bool, as_json: bool) -> None:
    """Download dataset NAME, verified, as a file. NAME is owner/name, owner/name@hash, or a name of yours.

    \b
    proctor dataset pull ada/capitals
    proctor dataset pull ada/capitals@3f2a1b4c5d6e -o data/capitals.jsonl
    """
    with open_status_line() as report_status:
        exact, version, path = call_server(
            lambda server: pull(server, what, output, overwrite, report_status)
        )
    if as_json:
        print_json({"dataset": str(exact), "file": str(path), "version": version})
    else:
        echo(f"Wrote {exact.short} to {path} ({format_size(version.size)}).")


async def pull(
    server: ServerConnection, what: str, output: Path | None, overwrite: bool, report_status: Any
) -> tuple[DatasetReference, DatasetVersion, Path]:
    from proctor.client import datasets

    reference = await resolve_word(server, what)
    version = await datasets.read_version(server, reference)
    exact = reference.pin(version.sha256)
    target = output or Path(f"{reference.name}.{version.format}")
    if target.exists() and not overwrite and (not target.is_file() or hash_file(target) != version.sha256):
        raise ConfigError(f"{target} already exists; name another file with -o, or pass --overwrite.")
    report_status(f"Pulling {exact.short}")
    _, cached = await datasets.fetch(server, exact, DatasetCache())
    copy_whole(cached, target)
    return exact, version, target


# Looking


@dataset_group.command("list")
@click.option("--owner", metavar="NAME", help="Owned by this user or team.")
@click.option("--mine", is_flag=True, help="Only yours and your teams'.")
@click.option("--visibility", type=click.Choice(["public", "private"]))
@click.option("-n", "--limit", type=click.IntRange(1, 1000), help="At most this many.")
@click.option("--cursor", metavar="CURSOR", help="Continue where the last list ended.")
@json_option
def list_command(as_json: bool, **wanted: Any) -> None:
    """List the datasets on the server that you may read, those changed last first."""
    from proctor.client import datasets

    given = {name: value for name, value in wanted.items() if value}
    page = call_server(lambda server: datasets.list_datasets(server, **given))
    print_json(page) if as_json else show_datasets(page)


@dataset_group.command("info")
@click.argument("what", metavar="NAME|FILE")
@json_option
def info_command(what: str, as_json: bool) -> None:
    """Show what a dataset on the server, or a file here, holds: rows, columns, size, versions."""
    from proctor.client import datasets

    if is_file_word(what):
        report = validate(Path(what), for_recipes=False)
        print_json(report) if as_json else show_file_report(report)
        return

    async def ask(server: ServerConnection) -> Any:
        reference = await resolve_word(server, what)
        found = await datasets.read_dataset(server, reference)
        versions = await datasets.list_versions(server, reference)
        exact = reference.is_pinned or versions
        return found, await datasets.read_version(server, reference) if exact else None, versions

    found, version, versions = call_server(ask)
    if as_json:
        print_json({**msgspec.to_builtins(found), "version": version, "versions": versions})
    else:
        show_dataset(found, version, versions)


@dataset_group.command("preview")
@click.argument("what", metavar="NAME|FILE")
@click.option("--rows", "count", default=5, show_default=True, type=click.IntRange(1, MOST_PREVIEWED))
@json_option
def preview_command(what: str, count: int, as_json: bool) -> None:
    """Show the first rows of a dataset on the server, or of a file here."""
    if is_file_word(what):
        rows = preview(Path(what), count)
    else:
        rows = call_server(lambda server: preview_remote(server, what, count))
    if as_json:
        print_json({"items": [{"index": row.index, "values": row.values} for row in rows]})
    else:
        show_preview(rows)


async def preview_remote(server: ServerConnection, what: str, count: int) -> list[DataRow]:
    """The first rows of a version; a Parquet file is fetched whole, because its end describes it."""
    from proctor.client import datasets

    reference = await resolve_word(server, what)
    version = await datasets.read_version(server, reference)
    cache = DatasetCache()
    cached = cache.find(version.sha256, version.format)
    if cached is None and version.format == "parquet":
        _, cached = await datasets.fetch(server, reference.pin(version.sha256), cache)
    if cached is not None:
        return preview(cached, count)
    with tempfile.TemporaryDirectory(prefix="proctor-preview-") as folder:
        beginning = Path(folder) / f"{reference.name}.{version.format}"
        is_all = await datasets.read_beginning(server, reference.pin(version.sha256), beginning)
        rows = preview(beginning, count, is_beginning=not is_all)
    if not rows and not is_all:
        raise ConfigError(f"The first row of {reference} is too long to preview; pull the dataset.")
    return rows


@dataset_group.command("validate")
@click.argument("what", metavar="FILE|NAME")
@json_option
def validate_command(what: str, as_json: bool) -> None:
    """Check that every row of a file, or of a dataset on the server, can be played by a recipe.

    Exit code 1 if not; all problems are listed with their lines.
    """
    if is_file_word(what):
        report = validate(Path(what))
    else:
        report = call_server(lambda server: validate_remote(server, what))
    if as_json:
        print_json({**msgspec.to_builtins(report), "is_valid": report.is_valid})
    else:
        show_validation(report)
    if not report.is_valid:
        raise click.exceptions.Exit(EXIT_FAILED)


async def validate_remote(server: ServerConnection, what: str) -> DatasetReport:
    from proctor.client import datasets

    reference = await resolve_word(server, what)
    _, path = await datasets.fetch(server, reference, DatasetCache())
    return validate(path)


# Changing


@dataset_group.command("visibility")
@click.argument("what", metavar="OWNER/NAME")
@click.argument("visibility", type=click.Choice(["public", "private"]))
@json_option
def visibility_command(what: str, visibility: str, as_json: bool) -> None:
    """Change who can see a dataset on the server."""
    from proctor.client import datasets

    change = DatasetChange(visibility=visibility)  # type: ignore[arg-type]
    found = call_server(lambda server: datasets.change_dataset(server, parse_reference(what), change))
    print_json(found) if as_json else echo(f"{found.slug} is {found.visibility}.")


@dataset_group.command("delete")
@click.argument("what", metavar="OWNER/NAME[@HASH]")
@yes_option
@json_option
def delete_command(what: str, yes: bool, as_json: bool) -> None:
    """Delete a dataset from the server, or one version of it. Runs keep their results."""
    from proctor.client import datasets

    reference = parse_reference(what)
    whole = what if reference.is_pinned else f"{what} with all its versions"
    if not confirm_deletion(whole, yes):
        return
    call_server(lambda server: datasets.delete_dataset(server, reference))
    print_json({"deleted": what}) if as_json else echo(f"Deleted {whole}.")
