"""`proctor server`: a hub of environments and hosted evaluations, on a machine of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.errors import ConfigError


@click.command("server", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8700, show_default=True, type=click.IntRange(0, 65535), help="Port.")
@click.option(
    "--data",
    default="./proctor-data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of everything the server keeps.",
)
@click.option("--database", metavar="URL", help="postgresql://… instead of a SQLite file in the data folder.")
@click.option("--public-url", metavar="URL", help="How others reach the server, if not by host and port.")
@click.option(
    "--forget-secrets",
    is_flag=True,
    help="Delete all secrets, if the key that sealed them is lost; without it such a server does not start.",
)
def server_command(
    host: str, port: int, data: Path, database: str | None, public_url: str | None, forget_secrets: bool
) -> None:
    """Start a server: a hub of environments, hosted evaluations, one door to every model.

    The first start makes the database and an admin, and prints a token to log in with.

    \b
    proctor server
    proctor server --host 0.0.0.0 --data /srv/proctor --database postgresql://localhost/proctor
    """
    try:
        from proctor.platform.server import http_server, open_server
    except ImportError as error:
        raise ConfigError(
            f"The server needs packages that are not installed ({error.name}); "
            f"install them with: pip install 'proctor[server]'"
        ) from error
    from proctor.platform.settings import Settings

    settings = Settings(
        data=data.resolve(),
        host=host,
        port=port,
        database=database,
        public_url=public_url,
        forget_secrets=forget_secrets,
    )
    opened = open_server(settings)
    click.echo(f"Proctor is at {settings.url}")
    if opened.first_token is not None:
        click.echo(
            f"The admin's token, kept in {opened.token_file}:\n\n"
            f"  {opened.first_token}\n\n"
            f"Log in with it: proctor login {settings.url}"
        )
    http_server(opened.platform).run()
