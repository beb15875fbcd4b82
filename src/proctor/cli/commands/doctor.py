"""`proctor doctor`: what is missing in a project, and how to fix it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import msgspec

from proctor.cli.commands.shared_options import json_option
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import adopt_context
from proctor.projects.doctor import Diagnosis, examine
from proctor.projects.layout import find_project

EXIT_PROBLEMS = 1


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> None:
    """Check the project you are in: its repository, rollouts, recipes, datasets, secrets and models.

    Nothing is changed, and no model is called. Exits with 1 if something prevents a recipe from running.
    """
    adopt_context(os.environ)
    project = find_project(Path())
    checks = list(examine(project, os.environ))
    broken = [check for check in checks if check.problem and not check.is_warning]
    if as_json:
        print_json({"project": str(project.root), "checks": [msgspec.to_builtins(each) for each in checks]})
    else:
        echo(f"{project.root}\n")
        for check in checks:
            show_check(check)
        echo("" if broken else "\nReady to run.")
    sys.exit(EXIT_PROBLEMS if broken else 0)


def show_check(check: Diagnosis) -> None:
    if not check.problem:
        echo(f"  ok       {check.what}")
        return
    word = "warning" if check.is_warning else "problem"
    for number, line in enumerate(check.problem.splitlines()):
        echo(f"  {word}  {check.what}: {line}" if number == 0 else f"           {line}")
    if check.fix:
        echo(f"           → {check.fix}")
