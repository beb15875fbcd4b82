"""The `proctor` command: finds the subcommand, loads only that, and turns failures into exit codes."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from proctor import __version__

COMMANDS = {
    "eval": ("proctor.cli.eval:eval_group", "Evaluate a model on an environment."),
    "jobs": ("proctor.cli.jobs:jobs_command", "List runs, and the rollouts of one."),
    "trace": ("proctor.cli.trace:trace_group", "Show one rollout in full, or where two diverge."),
    "server": (
        "proctor.cli.server:server_command",
        "Start a server: a hub of environments and hosted evaluations.",
    ),
    "serve": ("proctor.cli.serve:serve_command", "Serve an environment, to be played from elsewhere."),
    "task": ("proctor.cli.task:task_group", "List, start and grade single tasks by hand."),
    "env": ("proctor.cli.env:env_group", "Make, install, list and check environments."),
    "models": ("proctor.cli.models:models_group", "Show which models can be asked by name."),
    "wallet": (
        "proctor.cli.wallet:wallet_group",
        "Show what one may spend on a server, and what was used.",
    ),
    "completion": ("proctor.cli.completion:completion_command", "Print a shell's completion script."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry[0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="proctor")
def proctor() -> None:
    """Evaluate language models and agents, and know whether to believe the number."""


def run() -> None:
    from proctor.errors import ConfigError, ProctorError

    try:
        code = proctor(prog_name="proctor", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except ConfigError as error:
        fail(error, 2)
    except ProctorError as error:
        fail(error, 1)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def fail(error: Exception, code: int) -> None:
    """One line for each problem, whatever somebody put into the messages."""
    for problem in getattr(error, "problems", (str(error),)):
        click.echo(f"Error: {' '.join(problem.split())}", err=True)
    sys.exit(code)
