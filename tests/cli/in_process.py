"""The command line without a process of its own: for commands that read folders and print."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from click.testing import CliRunner

from proctor.cli.app import run


@dataclass(frozen=True)
class Printed:
    code: int
    out: str
    err: str


def run_command(*words: str, stdin: str = "") -> Printed:
    """What a command prints, and its exit code; stdin is not a terminal."""
    with CliRunner().isolation(input=stdin) as (out, err, _):
        try:
            run(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        sys.stdout.flush()
        sys.stderr.flush()
        return Printed(code, out.getvalue().decode(), err.getvalue().decode())
