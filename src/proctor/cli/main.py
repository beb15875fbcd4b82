"""Where the `proctor` command starts. Scripts ask for its version often, and that needs nothing loaded."""

import sys

from proctor import __version__


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"proctor, version {__version__}\n")
        return
    from proctor.cli.app import run

    run()
