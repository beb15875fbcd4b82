"""`proctor view`: the dashboard over run folders of this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json_line

PORT = 8710


@click.command("view")
@click.argument("dirs", metavar="[DIR]...", nargs=-1)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port to listen on; if it is in use, the next free one. 0 takes any.",
)
@click.option("--no-browser", is_flag=True, help="Print the address; open no browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON; implies --no-browser.")
def view_command(dirs: tuple[str, ...], port: int, no_browser: bool, as_json: bool) -> None:
    """Look at runs in the browser: those in DIR, or wherever runs are kept on this machine.

    DIR is a run's folder, a folder that you passed to -o, or a project. Runs in progress are shown live.
    Nothing is changed, nothing leaves this machine, and there is no login: only this machine can connect.

    \b
    proctor view
    proctor view ./outputs
    proctor view outputs/evals/gsm8k--gpt-5-mini/1a2b3c4d
    proctor view --port 9000 --no-browser
    """
    from proctor.reading.folders.find import check_folders
    from proctor.support.loop import raise_file_limit, run_in_loop

    folders = check_folders(dirs)
    raise_file_limit()
    run_in_loop(serve_view([folder.absolute() for folder in folders], port, not no_browser, as_json))


async def serve_view(folders: list[Path], port: int, has_browser: bool, as_json: bool) -> None:
    from proctor.pages.files import BuiltPages
    from proctor.reading.folders.find import find_run_folders
    from proctor.reading.folders.library import FolderLibrary
    from proctor.viewer.app import build_app
    from proctor.viewer.listen import bind_loopback, serve_app, wait_for_signal

    pages = BuiltPages()
    if not pages.are_built():
        echo("The dashboard's pages are not built; run make web in Proctor's source tree.", err=True)
    library = FolderLibrary(lambda: find_run_folders(folders))
    listener = bind_loopback(port)
    try:
        async with serve_app(build_app(library, pages), listener) as url:
            found = len(await library.readers())
            await announce(url, found, port, has_browser, as_json)
            await wait_for_signal()
    finally:
        library.close()


async def announce(url: str, found: int, port: int, has_browser: bool, as_json: bool) -> None:
    if as_json:
        print_json_line({"url": url, "runs": found})
        return
    if port and not url.endswith(f":{port}"):
        echo(f"Port {port} is in use; taking another one.", err=True)
    echo(f"{count_runs(found)} at {url}")
    if not found:
        echo("Start a run with proctor eval run ENVIRONMENT; it appears here by itself.", err=True)
    echo("Press Ctrl-C to stop.", err=True)
    if has_browser:
        from proctor.cli.commands.dashboard import open_browser

        await asyncio.to_thread(open_browser, url)


def count_runs(found: int) -> str:
    return "Looking for runs" if not found else f"Showing {found:,} run{'s' * (found != 1)}"
