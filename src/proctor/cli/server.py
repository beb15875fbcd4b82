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
    "--endpoints",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Registry of the models that can be asked here, a TOML file; keys are in the server's environment.",
)
@click.option(
    "--allow-endpoint-host",
    "allowed_hosts",
    multiple=True,
    metavar="HOST",
    help="Let runs name this host as their own endpoint, although it is not on the public internet.",
)
@click.option(
    "--default-balance",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="What new users and teams have to spend; nothing limits them unless this is given.",
)
def server_command(
    host: str,
    port: int,
    data: Path,
    database: str | None,
    public_url: str | None,
    endpoints: Path | None,
    allowed_hosts: tuple[str, ...],
    default_balance: float | None,
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
        endpoints=None if endpoints is None else endpoints.resolve(),
        allowed_endpoint_hosts=allowed_hosts,
        default_balance_usd=default_balance,
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
