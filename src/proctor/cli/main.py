"""Where the `proctor` command starts. Its version is asked for by scripts, often, and needs nothing loaded."""

import sys

from proctor import __version__


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"proctor, version {__version__}\n")
        return
    from proctor.cli.app import run

    run()
